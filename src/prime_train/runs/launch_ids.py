"""The ids of runs that are launched from GitHub: the same request gives the same id, and an id belongs to one
repository.

The last characters are a hash of the others and the repository. So the control plane can tell, before it
knows anything else of a run, that a launch key asks for a run of its own repository, and not for the coming
run of another one, whose code it could replace.
"""

import hashlib

ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
KEY_CHARS = 6
OWNER_CHARS = 4


def launch_id(name: str, key: str, repository: str) -> str:
    """Return the run id for a request. `key`: the request's, as hex digits."""
    stem = f"{name}-{_letters(int(key, 16), KEY_CHARS)}"
    return stem + _owner(stem, repository)


def is_id_of(run_id: str, repository: str) -> bool:
    """Return whether the id is one of the repository's."""
    stem = run_id[:-OWNER_CHARS]
    return run_id == stem + _owner(stem, repository)


def _owner(stem: str, repository: str) -> str:
    digest = hashlib.sha256(f"{stem}\n{repository.lower()}".encode()).hexdigest()
    return _letters(int(digest, 16), OWNER_CHARS)


def _letters(number: int, count: int) -> str:
    letters = []
    for _ in range(count):
        number, rest = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[rest])
    return "".join(letters)
