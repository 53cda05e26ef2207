"""The address of a pod's SSH server, which Prime gives as a command line, or a part of one, in several forms.

The active pods of some providers never have such a line (observed at datacrunch: null, `[null]`, empty, or without the host). Their address
and the outer port of their SSH server are then in separate fields.
"""

import re
from collections.abc import Iterator

from prime_train.adapters.pods_prime.models import Rented
from prime_train.adapters.rental_api import ssh
from prime_train.ports import SSH_PORT, SshAddress

USER = "root"
"""The user to log in as if Prime names none."""
TEXT_CHARS_MAX = 500

_AT = re.compile(f"({ssh.USER})@({ssh.HOST})")
_NO_HOST = re.compile(f"({ssh.USER})@")


def connection_of(rented: Rented) -> SshAddress | None:
    """Return the pod's SSH address, from its SSH line, or else from its IP address and mapped port. None if Prime does not give it yet."""
    return read_connection(rented.id, rented.ssh_connection) or _by_address(rented)


def read_connection(pod_id: str, value: object) -> SshAddress | None:
    """Return the address in Prime's SSH line, or in the first usable one of a list (machines of several nodes). None if there is none yet,
    or it cannot be parsed."""
    found = (_read(pod_id, text) for text in _texts(value))
    return next((connection for connection in found if connection is not None), None)


def _by_address(rented: Rented) -> SshAddress | None:
    """Return the address from the IP address and the mapped port. If Prime's SSH line has a user but no host, the user is taken from it,
    and also the port if none is mapped."""
    line = next((words for words in map(str.split, _texts(rented.ssh_connection)) if any(map(_NO_HOST.fullmatch, words))), [])
    user = next((match.group(1) for match in map(_NO_HOST.fullmatch, line) if match), USER)
    host = next((text.strip("[]") for text in _texts(rented.ip) if re.fullmatch(ssh.HOST, text)), None)
    port = _mapped_port(rented) or (_port(line) if line else None)
    return SshAddress(rented.id, user, host, port) if host and port else None


def _mapped_port(rented: Rented) -> int | None:
    """Return the outer port that is mapped to the SSH server, or None if there is no such mapping."""
    entries = rented.prime_port_mapping if isinstance(rented.prime_port_mapping, list) else []
    outer = (entry.get("external") for entry in entries if isinstance(entry, dict) and str(entry.get("usedBy")).upper() == "SSH")
    return next((port for port in map(ssh.port_number, outer) if port), None)


def _texts(value: object) -> Iterator[str]:
    """Yield the non-empty texts, stripped, in a value that may be a text, a list of texts and nulls, or anything else."""
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str) and len(text) <= TEXT_CHARS_MAX and text.strip():
            yield text.strip()


def _read(pod_id: str, text: str) -> SshAddress | None:
    words = text.split()
    at = next((match for match in map(_AT.fullmatch, words) if match), None)
    port = _port(words)
    return SshAddress(pod_id, at.group(1), at.group(2).strip("[]"), port) if at and port else None


def _port(words: list[str]) -> int | None:
    """Return the port given by -p, as a separate word or not, or the default port if there is no -p; None if it is not a valid port."""
    given = next(
        (word[2:] or "".join(words[place + 1 : place + 2]) for place, word in enumerate(words) if word.startswith("-p")), str(SSH_PORT)
    )
    return ssh.port_number(given)
