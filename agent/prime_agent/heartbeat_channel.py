"""Timing of heartbeats: at most one is in flight, the next is sent at its interval, and news at once.

A failed heartbeat is never resent: the next one carries current facts and a higher sequence number. While the
control plane is unavailable, heartbeats are sent at most once per interval.
"""

import zlib
from dataclasses import dataclass, replace

JITTER_SHARE = 0.1
SEQ_LEAP_MIN, SEQ_LEAP_MAX = 1000, 1_000_000


@dataclass(frozen=True)
class HeartbeatChannel:
    """State of the heartbeats. Times are seconds of the machine's monotonic clock."""

    heartbeat_s: int
    """Seconds between heartbeats, as requested in the last reply."""
    seq: int = 0
    """Sequence number of the last heartbeat sent."""
    flying: bool = False
    sent_news: bool = False
    """Whether the heartbeat in flight carries the news."""
    news: bool = False
    """Whether there is news that the control plane should act on at once, and that no accepted heartbeat has
    carried.
    """
    next_s: float = 0.0
    failures: int = 0
    """Consecutive heartbeats without a reply."""


def is_due(channel: HeartbeatChannel, now_s: float) -> bool:
    """Return whether to send a heartbeat now: at its time, or at once for news unless the last heartbeat
    failed.
    """
    return not channel.flying and (now_s >= channel.next_s or (channel.news and channel.failures == 0))


def due_s(channel: HeartbeatChannel) -> float | None:
    """Return when the next heartbeat is due; None while one is in flight."""
    return None if channel.flying else channel.next_s


def sent(channel: HeartbeatChannel, now_s: float, *, salt: str) -> HeartbeatChannel:
    """Return the channel after a heartbeat with the number `channel.seq` was handed over for sending."""
    seq = channel.seq + 1
    return replace(
        channel,
        seq=seq,
        flying=True,
        sent_news=channel.news,
        news=False,
        next_s=now_s + channel.heartbeat_s * _jitter(f"{salt}/{seq}"),
    )


def answered(channel: HeartbeatChannel, *, heartbeat_s: int) -> HeartbeatChannel:
    """Return the channel after an accepted heartbeat; `heartbeat_s` is the interval that the reply requests,
    in seconds.
    """
    return replace(channel, flying=False, sent_news=False, failures=0, heartbeat_s=max(1, heartbeat_s))


def refused(channel: HeartbeatChannel) -> HeartbeatChannel:
    """Return the channel after a refusal because the number was already used, by an earlier agent of this
    attempt. The next heartbeat is sent at once with a far higher number.
    """
    leap = min(max(channel.seq, SEQ_LEAP_MIN), SEQ_LEAP_MAX)
    return replace(channel, flying=False, sent_news=False, news=True, failures=0, seq=channel.seq + leap)


def failed(channel: HeartbeatChannel) -> HeartbeatChannel:
    """Return the channel after a heartbeat without a reply; its news is sent with the next one."""
    return replace(
        channel,
        flying=False,
        news=channel.news or channel.sent_news,
        sent_news=False,
        failures=channel.failures + 1,
    )


def with_news(channel: HeartbeatChannel) -> HeartbeatChannel:
    return replace(channel, news=True)


def _jitter(text: str) -> float:
    """Return a factor from 0.9 to 1.1, always the same for the same heartbeat, so that agents started
    together do not all send at the same time.
    """
    return 1 + JITTER_SHARE * (2 * zlib.crc32(text.encode()) / (2**32 - 1) - 1)
