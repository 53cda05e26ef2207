"""Forecast of when the disk will be full, extrapolated from its recent use."""

from dataclasses import dataclass, replace

WINDOW_S = 900.0
EVERY_S = 30.0
SPAN_S_MIN = 60.0
FULL_S_MAX = 7 * 86_400


@dataclass(frozen=True)
class FreeSpaceSamples:
    """Samples of the free space, oldest first, as `(seconds, GiB)`."""

    seen: tuple[tuple[float, float], ...] = ()


def sensed(samples: FreeSpaceSamples, free_gib: float | None, now_s: float) -> FreeSpaceSamples:
    """Add a sample, unless the last one is less than `EVERY_S` seconds old, and drop samples older than
    `WINDOW_S` seconds.
    """
    if free_gib is None or (samples.seen and now_s - samples.seen[-1][0] < EVERY_S):
        return samples
    return replace(
        samples, seen=(*(row for row in samples.seen if now_s - row[0] <= WINDOW_S), (now_s, free_gib))
    )


def full_s(samples: FreeSpaceSamples) -> int | None:
    """Return the seconds until no space is free.

    Return None if the free space does not shrink, would last a week or more, or was sampled for too short a
    time.
    """
    if len(samples.seen) < 2 or samples.seen[-1][0] - samples.seen[0][0] < SPAN_S_MIN:
        return None
    (first_s, first), (last_s, last) = samples.seen[0], samples.seen[-1]
    shrinks_per_s = (first - last) / (last_s - first_s)
    left_s = last / shrinks_per_s if shrinks_per_s > 0 else FULL_S_MAX
    return int(left_s) if left_s < FULL_S_MAX else None
