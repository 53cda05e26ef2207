"""Where a pod's SSH server is: Prime tells it as a command line, or a part of one, in several forms.

Some providers' pods are active and never have such a line (seen at datacrunch: null, `[null]`, empty, or without the host). Their address
and the outer port of their SSH server are then in fields of their own.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from prime_train.adapters.pods_prime.models import Rented
from prime_train.core.wire import Ticket

PORT = 22
USER = "root"
"""Who logs in where no user is named."""
TEXT_CHARS_MAX = 500

# Neither can begin with a dash: they become arguments of ssh.
_USER, _HOST = r"[A-Za-z0-9_][A-Za-z0-9_.-]*", r"\[?[A-Za-z0-9:][A-Za-z0-9.:-]*\]?"
_AT = re.compile(f"({_USER})@({_HOST})")
_NO_HOST = re.compile(f"({_USER})@")


@dataclass(frozen=True)
class Connection:
    """How to reach one pod. The user is not always root."""

    pod_id: str
    user: str
    host: str
    port: int = PORT


class Pusher(Protocol):
    """Brings the agent to a machine and starts it with the ticket; where it runs already, nothing happens.

    TemporaryError: the machine could not be reached, or it is not known what became of it. PermanentError: it cannot run there.
    """

    def __call__(self, connection: Connection, ticket: Ticket) -> None: ...


def connection_of(rented: Rented) -> Connection | None:
    """How to reach the pod: its SSH line, or else its address with the outer port of its SSH server. None: it does not say yet."""
    return read_connection(rented.id, rented.ssh_connection) or _by_address(rented)


def read_connection(pod_id: str, told: object) -> Connection | None:
    """Of a list (machines of several nodes) the first that is there. None: nothing is told yet, or it is not understood."""
    found = (_read(pod_id, text) for text in _texts(told))
    return next((connection for connection in found if connection is not None), None)


def _by_address(rented: Rented) -> Connection | None:
    """A line without a host still tells the user, and the port where no mapping does."""
    line = next((words for words in map(str.split, _texts(rented.ssh_connection)) if any(map(_NO_HOST.fullmatch, words))), [])
    user = next((match.group(1) for match in map(_NO_HOST.fullmatch, line) if match), USER)
    host = next((text.strip("[]") for text in _texts(rented.ip) if re.fullmatch(_HOST, text)), None)
    port = _mapped_port(rented) or (_port(line) if line else None)
    return Connection(rented.id, user, host, port) if host and port else None


def _mapped_port(rented: Rented) -> int | None:
    """The outer port of the SSH server; None: no mapping is for it."""
    entries = rented.prime_port_mapping if isinstance(rented.prime_port_mapping, list) else []
    outer = (entry.get("external") for entry in entries if isinstance(entry, dict) and str(entry.get("usedBy")).upper() == "SSH")
    return next((port for port in map(_port_number, outer) if port), None)


def _texts(told: object) -> Iterator[str]:
    """Of what may be text, a list of texts and nulls, or anything else: the texts, without blanks around them."""
    for text in told if isinstance(told, list) else [told]:
        if isinstance(text, str) and len(text) <= TEXT_CHARS_MAX and text.strip():
            yield text.strip()


def _read(pod_id: str, text: str) -> Connection | None:
    words = text.split()
    at = next((match for match in map(_AT.fullmatch, words) if match), None)
    port = _port(words)
    return Connection(pod_id, at.group(1), at.group(2).strip("[]"), port) if at and port else None


def _port(words: list[str]) -> int | None:
    """What follows -p, or is written in one word with it; None for what is no port."""
    given = next(
        (word[2:] or "".join(words[place + 1 : place + 2]) for place, word in enumerate(words) if word.startswith("-p")), str(PORT)
    )
    return _port_number(given)


def _port_number(given: object) -> int | None:
    """None for what is no port; it comes as text or as a number."""
    text = str(given)
    return int(text) if re.fullmatch(r"[1-9][0-9]{0,4}", text) and int(text) < 2**16 else None
