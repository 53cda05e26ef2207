"""Timing of heartbeats: at most one is in flight, the next is sent at its interval, and news at once.

A failed heartbeat is never resent: the next one carries current facts and a higher sequence number. While the control plane is unavailable,
heartbeats are sent at most once per interval.
"""

import zlib
from dataclasses import dataclass, replace

JITTER_SHARE = 0.1
SEQ_LEAP_MIN, SEQ_LEAP_MAX = 1000, 1_000_000


@dataclass(frozen=True)
class Link:
    """State of the heartbeats. Times are seconds of the machine's monotonic clock."""

    heartbeat_s: int
    """Seconds between heartbeats, as requested in the last reply."""
    seq: int = 0
    """Sequence number of the last heartbeat sent."""
    flying: bool = False
    said_news: bool = False
    """Whether the heartbeat in flight carries the news."""
    news: bool = False
    """Whether there is news that the control plane should act on at once, and that no accepted heartbeat has carried."""
    next_s: float = 0.0
    failures: int = 0
    """Consecutive heartbeats without a reply."""


def is_due(link: Link, now_s: float) -> bool:
    """Return whether to send a heartbeat now: at its time, or at once for news unless the last heartbeat failed."""
    return not link.flying and (now_s >= link.next_s or (link.news and link.failures == 0))


def due_s(link: Link) -> float | None:
    """Return when the next heartbeat is due; None while one is in flight."""
    return None if link.flying else link.next_s


def sent(link: Link, now_s: float, *, salt: str) -> Link:
    """Return the link after a heartbeat with the number `link.seq` was handed over for sending."""
    seq = link.seq + 1
    return replace(link, seq=seq, flying=True, said_news=link.news, news=False, next_s=now_s + link.heartbeat_s * _jitter(f"{salt}/{seq}"))


def answered(link: Link, *, heartbeat_s: int) -> Link:
    """Return the link after an accepted heartbeat; `heartbeat_s` is the interval that the reply requests, in seconds."""
    return replace(link, flying=False, said_news=False, failures=0, heartbeat_s=max(1, heartbeat_s))


def refused(link: Link) -> Link:
    """Return the link after a refusal because the number was already used, by an earlier agent of this attempt. The next heartbeat is sent
    at once with a far higher number."""
    leap = min(max(link.seq, SEQ_LEAP_MIN), SEQ_LEAP_MAX)
    return replace(link, flying=False, said_news=False, news=True, failures=0, seq=link.seq + leap)


def failed(link: Link) -> Link:
    """Return the link after a heartbeat without a reply; its news stays to be sent."""
    return replace(link, flying=False, news=link.news or link.said_news, said_news=False, failures=link.failures + 1)


def with_news(link: Link) -> Link:
    return replace(link, news=True)


def _jitter(text: str) -> float:
    """Return a factor from 0.9 to 1.1, always the same for the same heartbeat, so that agents started together do not all send at the same
    time."""
    return 1 + JITTER_SHARE * (2 * zlib.crc32(text.encode()) / (2**32 - 1) - 1)
