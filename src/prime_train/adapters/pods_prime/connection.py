"""Where a pod's SSH server is: Prime tells it as a command line, or a part of one, in several forms."""

import re
from dataclasses import dataclass
from typing import Protocol

from prime_train.core.wire import Ticket

PORT = 22
TEXT_CHARS_MAX = 500

# Neither can begin with a dash: they become arguments of ssh.
_AT = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]*)@(\[?[A-Za-z0-9:][A-Za-z0-9.:-]*\]?)")


@dataclass(frozen=True)
class Connection:
    """How to reach one pod. The user is not always root."""

    pod_id: str
    user: str
    host: str
    port: int = PORT


class Pusher(Protocol):
    """Brings the agent to a machine and starts it with the ticket; where it runs already, nothing happens.

    TemporaryError: the machine could not be reached, or it is not known what became of it. PermanentError: it can not run there.
    """

    def __call__(self, connection: Connection, ticket: Ticket) -> None: ...


def read_connection(pod_id: str, told: object) -> Connection | None:
    """Of a list (machines of several nodes) the first that is there. None: nothing is told yet, or it is not understood."""
    texts = told if isinstance(told, list) else [told]
    found = (_read(pod_id, text) for text in texts if isinstance(text, str) and len(text) <= TEXT_CHARS_MAX)
    return next((connection for connection in found if connection is not None), None)


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
    return int(given) if re.fullmatch(r"[1-9][0-9]{0,4}", given) and int(given) < 2**16 else None
