"""The talk with the control plane: one heartbeat under way at most, the next at its time, news at once.

A heartbeat that fails is never repeated as it was: the next one carries fresh facts and a higher number. While the control plane is away,
nobody is asked more often than once a heartbeat interval.
"""

import zlib
from dataclasses import dataclass, replace

JITTER_SHARE = 0.1
SEQ_LEAP_MIN, SEQ_LEAP_MAX = 1000, 1_000_000


@dataclass(frozen=True)
class Link:
    heartbeat_s: int
    """Between heartbeats, as the last reply asked."""
    seq: int = 0
    """Number of the last heartbeat sent."""
    flying: bool = False
    said_news: bool = False
    """The heartbeat under way carries the news."""
    news: bool = False
    """There is something the control plane should look at at once, and no accepted heartbeat has said so."""
    next_s: float = 0.0
    failures: int = 0
    """Heartbeats in a row that brought no answer."""


def is_due(link: Link, now_s: float) -> bool:
    return not link.flying and (now_s >= link.next_s or (link.news and link.failures == 0))


def due_s(link: Link) -> float | None:
    """When the next heartbeat is due; None while one is under way."""
    return None if link.flying else link.next_s


def sent(link: Link, now_s: float, *, salt: str) -> Link:
    """After a heartbeat was handed over, with the number `link.seq`."""
    seq = link.seq + 1
    return replace(link, seq=seq, flying=True, said_news=link.news, news=False, next_s=now_s + link.heartbeat_s * _jitter(f"{salt}/{seq}"))


def answered(link: Link, *, heartbeat_s: int) -> Link:
    return replace(link, flying=False, said_news=False, failures=0, heartbeat_s=max(1, heartbeat_s))


def refused(link: Link) -> Link:
    """The number was used before: an agent of this attempt was here earlier. Numbers go on far above it, at once."""
    leap = min(max(link.seq, SEQ_LEAP_MIN), SEQ_LEAP_MAX)
    return replace(link, flying=False, said_news=False, news=True, failures=0, seq=link.seq + leap)


def failed(link: Link) -> Link:
    return replace(link, flying=False, news=link.news or link.said_news, said_news=False, failures=link.failures + 1)


def with_news(link: Link) -> Link:
    return replace(link, news=True)


def _jitter(text: str) -> float:
    """Between 0.9 and 1.1, the same for the same heartbeat: agents started together do not send heartbeats together."""
    return 1 + JITTER_SHARE * (2 * zlib.crc32(text.encode()) / (2**32 - 1) - 1)
