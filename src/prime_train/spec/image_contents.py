"""The contents of an image that is built here, and the hashes by which a machine recognises them.

What an image holds is in folders that are named after the hash of what was installed: `agent-HASH` and
`environment-HASH` below `FOLDER`. Each has `files` (what was installed), `venv` (the result), `sums` (the
SHA-256 of every file in both) and `links` (the target of every symbolic link). A machine computes the hash of
what it needs, looks for the folder, and compares each file with its hash before it uses the folder.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prime_train.spec.spec import ImageSpec

FOLDER = "/opt/prime-train"
AGENT, ENVIRONMENT = "agent", "environment"
SUMS, LINKS = "sums", "links"
DESCRIPTION = "image.txt"
DIGEST_CHARS = 16


def digest_of(files: Mapping[str, bytes]) -> str:
    """Return the hash over these files: that of the lines which sha256sum prints for them in the order of
    their names, so that a shell can compute it as well.
    """
    lines = (f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(files.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:DIGEST_CHARS]


def environment_files(image: "ImageSpec", read: Callable[[str], bytes]) -> dict[str, bytes]:
    """Return the files that determine a trainer's environment, by name. `read` returns the content of a file
    in the working tree.
    """
    description = f"base {image.base}\n" + "".join(
        f"package {name}\n" for name in sorted(set(image.packages))
    )
    named = {
        f"requirements-{number:02}.txt": read(path)
        for number, path in enumerate(dict.fromkeys(image.requirements), start=1)
    }
    return {DESCRIPTION: description.encode(), **named}
