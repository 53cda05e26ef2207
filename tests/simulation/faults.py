"""The faults of one seed: drawn once, each kind switched on or off for the entire seed.

A seed in which everything fails a little finds less than one in which few things fail often; so each kind is
on in about every second seed only. No fault starts after `quiet_s`, so that progress can be promised.
"""

import random
from dataclasses import dataclass

from tests.simulation.loop import START_S, Loop

QUIET_MIN_S, QUIET_MAX_S = 3000, 6600
"""Seconds with faults; the following time without faults is longer than 40 % of the total."""


@dataclass(frozen=True)
class Window:
    start_s: float
    end_s: float

    def has(self, at_s: float) -> bool:
        return self.start_s <= at_s < self.end_s


Windows = tuple[Window, ...]


@dataclass(frozen=True)
class Faults:
    """The faults. Shares are probabilities per call, message or pod; windows are virtual seconds."""

    quiet_s: float
    lost: float = 0.0
    late: float = 0.0
    late_s_max: float = 0.0
    repeated: float = 0.0
    server_error: float = 0.0
    webhook_down: Windows = ()
    provider_error: float = 0.0
    provider_down: Windows = ()
    empty_list: float = 0.0
    list_new_s_max: float = 0.0
    list_dead_s_max: float = 0.0
    unusual: float = 0.0
    """Share of responses that report an unknown status for a living pod."""
    create_lost: float = 0.0
    create_failed: float = 0.0
    create_slow: float = 0.0
    create_refused: float = 0.0
    no_capacity: Windows = ()
    boot_never: float = 0.0
    put_fails: float = 0.0
    terminate_ignored: float = 0.0
    zombie: float = 0.0
    rebel: float = 0.0
    """Share of replaced attempts that do not obey `fenced`."""
    preempt_each_s: float = 0.0
    """Mean seconds of a pod until it is preempted; 0: never."""
    notice: float = 0.0
    hang_each_s: float = 0.0
    """Mean seconds of a pod until it freezes silently while the provider reports it as active."""
    cut_each_s: float = 0.0
    """Mean seconds of a pod until it cannot reach the webhook for a while."""
    bucket_error: float = 0.0
    bucket_down: Windows = ()
    canary_lost: float = 0.0
    tracker_lost: float = 0.0
    notifier_error: float = 0.0
    crash: float = 0.0
    """Probability that a sweep ends at one of its effects."""
    pause: float = 0.0
    """Probability that a port call takes seconds in which others act."""
    watchers_down: tuple[Windows, ...] = ()
    asleep: Windows = ()
    """Times at which the machine of webhook and watchers sleeps; afterwards they continue."""
    suspended: float = 0.0
    """Probability that a watcher's process stands still for minutes at one of its port calls."""
    time_lost: float = 0.0
    """Probability that the store does not report its time."""
    trainer: float = 0.0
    """Probability that an attempt's trainer has a fault of its own."""
    lasting: float = 0.0
    """Probability that a trainer's fault occurs on every machine."""
    user: float = 0.0
    cut_list: float = 0.0
    """Share of the lists that lack some machines; half of them are detected as incomplete."""


class Luck:
    """The seed's only source of randomness; `hit` is never true once the time of faults is over."""

    def __init__(self, rng: random.Random, loop: Loop, quiet_s: float) -> None:
        self.rng, self._loop, self.quiet_s = rng, loop, quiet_s

    @property
    def quiet(self) -> bool:
        return self._loop.now_s >= self.quiet_s

    def hit(self, share: float) -> bool:
        return share > 0 and self._loop.now_s < self.quiet_s and self.rng.random() < share

    def falls_s(self, mean_s: float) -> float | None:
        """Return when something that happens once in `mean_s` happens next, or None if that is too late for a
        fault.
        """
        if mean_s <= 0:
            return None
        at_s = self._loop.now_s + self.rng.expovariate(1 / mean_s)
        return at_s if at_s < self.quiet_s else None


def draw(rng: random.Random, watchers: int) -> Faults:
    """Draw the faults of a seed."""
    quiet_s = START_S + rng.randint(QUIET_MIN_S, QUIET_MAX_S)

    def on(low: float, high: float, chance: float = 0.5) -> float:
        return rng.uniform(low, high) if rng.random() < chance else 0.0

    def spans(chance: float, most: int, low_s: int, high_s: int) -> Windows:
        return windows(rng, quiet_s, rng.randint(1, most) if rng.random() < chance else 0, low_s, high_s)

    return Faults(
        quiet_s=quiet_s,
        lost=on(0.01, 0.25),
        late=on(0.01, 0.15),
        late_s_max=rng.choice((5, 40, 180)),
        repeated=on(0.01, 0.2),
        server_error=on(0.01, 0.15, 0.3),
        webhook_down=spans(0.5, 2, 60, 1200),
        provider_error=on(0.01, 0.2),
        provider_down=spans(0.3, 2, 60, 1200),
        empty_list=on(0.02, 0.2, 0.4),
        list_new_s_max=on(5, 400, 0.4),
        list_dead_s_max=on(5, 900, 0.4),
        unusual=on(0.01, 0.3, 0.3),
        create_lost=on(0.05, 0.4),
        create_failed=on(0.05, 0.3, 0.3),
        create_slow=on(0.1, 0.6, 0.4),
        create_refused=on(0.05, 0.3, 0.3),
        no_capacity=spans(0.3, 2, 60, 1200),
        boot_never=on(0.03, 0.2, 0.3),
        put_fails=on(0.05, 0.4, 0.3),
        terminate_ignored=on(0.05, 0.4, 0.4),
        zombie=on(0.1, 0.6),
        rebel=0.3,
        preempt_each_s=on(600, 4000, 0.7),
        notice=rng.random(),
        hang_each_s=on(1500, 6000, 0.4),
        cut_each_s=on(1000, 6000, 0.4),
        bucket_error=on(0.02, 0.2, 0.4),
        bucket_down=spans(0.2, 1, 60, 900),
        canary_lost=on(0.01, 0.1, 0.3),
        tracker_lost=on(0.05, 0.3),
        notifier_error=on(0.05, 0.4),
        crash=on(0.02, 0.3, 0.6),
        pause=on(0.005, 0.06, 0.7),
        watchers_down=tuple(spans(0.4, 2, 60, 1200) for _ in range(watchers)),
        trainer=on(0.1, 0.7, 0.6),
        lasting=on(0.05, 0.5, 0.4),
        user=on(0.1, 0.6, 0.4),
        cut_list=on(0.02, 0.4, 0.4),
        asleep=spans(0.25, 1, 60, 3600),
        suspended=on(0.001, 0.01, 0.4),
        time_lost=on(0.01, 0.1, 0.3),
    )


def windows(rng: random.Random, quiet_s: float, count: int, low_s: float, high_s: float) -> Windows:
    """Draw windows of these lengths that open while there are faults."""
    starts = [rng.uniform(START_S, quiet_s) for _ in range(count)]
    return tuple(Window(at_s, at_s + rng.uniform(low_s, high_s)) for at_s in starts)


def edges(faults: Faults) -> list[float]:
    """Yield every second at which a window opens or closes."""
    groups = (
        faults.asleep,
        faults.webhook_down,
        faults.provider_down,
        faults.bucket_down,
        faults.no_capacity,
        *faults.watchers_down,
    )
    return sorted(edge for windows in groups for window in windows for edge in (window.start_s, window.end_s))


def unheard(faults: Faults) -> Windows:
    """Return the windows in which no call of an agent arrives."""
    return faults.webhook_down + faults.asleep


def within(windows: Windows, at_s: float) -> bool:
    return any(window.start_s <= at_s < window.end_s for window in windows)
