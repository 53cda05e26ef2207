"""What this account has seen of machines: computed from the attempts of all runs in the store, of which each
tells when its machine was ordered, was heard first, made its first step, was lost and why.

Everything fades: an observation counts half after `HALF_LIFE_H`, because providers and prices change.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prime_train.market.reputation import Reputation, reputation
from prime_train.market.run_lengths import Lengths, lengths_of
from prime_train.market.step_times import Measurement, measured_in, training_key
from prime_train.runs.forecast import Forecast, Kind
from prime_train.runs.ledger import paid_from_s
from prime_train.runs.run import Attempt, Run
from prime_train.spec.causes import Cause

if TYPE_CHECKING:
    from prime_train.spec.spec import RunSpec

HALF_LIFE_H = 14 * 24.0
TIMES_WEIGHT = 2.0
"""How many observed times the prior of a time weighs as much as."""

TIME_S_MAX = 4 * 3600
"""The longest observed time that counts: a longer one, such as of a day on which a provider could not be
read, says little of the next.
"""

LOSSES = frozenset(
    {
        Cause.PREEMPTED,
        Cause.MACHINE_LOST,
        Cause.SILENT,
        Cause.BOOT_LOST,
        Cause.BOOT_FAILED,
        Cause.BOOT_TIMEOUT,
        Cause.PREFLIGHT_FAILED,
        Cause.GPU_HARDWARE,
    }
)
"""The causes for which the machine is to blame. A refusal costs no machine hours, and a trainer's own errors
happen on any machine.
"""


@dataclass(frozen=True)
class Losses:
    """Machine hours and the losses in them, both faded."""

    hours: float = 0.0
    count: float = 0.0

    def per_h(self, prior_every_h: float) -> float:
        """Return the losses per hour to expect: the mean of a gamma posterior whose prior is one loss in
        `prior_every_h` hours.
        """
        return (self.count + 1) / (self.hours + prior_every_h)


@dataclass(frozen=True)
class Times:
    """The sum of observed seconds, and the weight of the observations, both faded."""

    weight: float = 0.0
    total_s: float = 0.0

    def mean_s(self, prior_s: float) -> float:
        """Return the seconds to expect; the prior weighs as much as `TIMES_WEIGHT` observations."""
        return (self.total_s + TIMES_WEIGHT * prior_s) / (self.weight + TIMES_WEIGHT)


@dataclass(frozen=True)
class Observations:
    """What was seen. `losses` by provider and whether the machine was spot; `boot` (from the order to the
    first heartbeat) by provider; `setup` (from there to the first step) by the name of the config, of
    attempts from step 0, and `resume` of attempts that restored a checkpoint; `detection`: from the last sign
    of life of a lost machine to its fence. `steps`: what was measured of steps by kind of machine, of each
    training by its key, in its newest run on that kind; `similar`: the same of each model with its trainer
    (`Forecast.family_key`).
    """

    losses: Mapping[tuple[str, bool], Losses] = field(default_factory=dict)
    boot: Mapping[str, Times] = field(default_factory=dict)
    setup: Mapping[str, Times] = field(default_factory=dict)
    resume: Mapping[str, Times] = field(default_factory=dict)
    detection: Times = Times()
    steps: Mapping[str, Mapping[Kind, Measurement]] = field(default_factory=dict)
    similar: Mapping[str, Mapping[Kind, Measurement]] = field(default_factory=dict)
    machines: int = 0
    """Number of machines that were seen, without fading."""
    lengths: Mapping[str, Lengths] = field(default_factory=dict)
    """How long finished runs were, by what was trained (`market.run_lengths`)."""
    reputation: Reputation = field(default_factory=Reputation)
    """What failed, and comes last for a while."""

    def losses_of(self, provider: str, *, spot: bool) -> Losses:
        return self.losses.get((provider, spot), Losses())

    def steps_of(self, spec: "RunSpec") -> Mapping[Kind, Measurement]:
        """Return what was measured of a step of this config, by kind of machine."""
        return self.steps.get(training_key(spec), {}) if self.steps else {}

    def similar_to(self, forecast: Forecast) -> Mapping[Kind, Measurement]:
        """Return what was measured of steps of the same model with the same trainer, by kind of machine."""
        return self.similar.get(forecast.family_key, {}) if forecast.family else {}


NOTHING_SEEN = Observations()


def observations(runs: Iterable[Run], now_s: int) -> Observations:
    """Return what the attempts of these runs, the newest first, show at `now_s`. Attempts that a run no
    longer lists are forgotten. A run with figures that cannot be computed with shows nothing, and keeps no
    other from its machines.
    """
    every = tuple(runs)
    try:
        return _observations(every, now_s)
    except _NO_FIGURES:
        return _observations(tuple(run for run in every if _can_be_computed(run, now_s)), now_s)


_NO_FIGURES = (ArithmeticError, ValueError, TypeError)


def _can_be_computed(run: Run, now_s: int) -> bool:
    try:
        _observations((run,), now_s)
    except _NO_FIGURES:
        return False
    return True


def _observations(runs: tuple[Run, ...], now_s: int) -> Observations:
    losses: dict[tuple[str, bool], Losses] = {}
    boot: dict[str, Times] = {}
    setup: dict[str, Times] = {}
    resume: dict[str, Times] = {}
    steps: dict[str, dict[Kind, Measurement]] = {}
    similar: dict[str, dict[Kind, Measurement]] = {}
    detection, machines = Times(), 0
    for run in runs:
        measured = measured_in(run, run.attempts)
        if measured:
            key, family = training_key(run.spec), run.forecast.family_key
            steps[key], similar[family] = measured | steps.get(key, {}), measured | similar.get(family, {})
        for attempt in run.attempts:
            if attempt.pod_id is None:
                continue
            machines += 1
            offer, end_s = attempt.offer, _last_s(attempt, now_s)
            weight = float(0.5 ** (max(0, now_s - end_s) / (HALF_LIFE_H * 3600)))
            known = losses.get((offer.provider, offer.spot), Losses())
            hours = max(0, end_s - paid_from_s(attempt, now_s)) / 3600
            lost = attempt.cause in LOSSES and attempt.fenced_s is not None
            losses[offer.provider, offer.spot] = Losses(
                known.hours + weight * hours, known.count + weight * lost
            )
            heard_s, first_step_s = attempt.first_heartbeat_s, attempt.first_step_s
            if heard_s is not None:
                _add(boot, offer.provider, weight, heard_s - attempt.launched_s)
                if first_step_s is not None:
                    _add(
                        resume if attempt.resumed_step else setup, run.config, weight, first_step_s - heard_s
                    )
            if lost and attempt.last_sign_s is not None and attempt.fenced_s is not None:
                detection = _with(detection, weight, attempt.fenced_s - attempt.last_sign_s)
    return Observations(
        losses,
        boot,
        setup,
        resume,
        detection,
        steps,
        similar,
        machines,
        lengths_of(runs),
        reputation(runs, now_s),
    )


def _last_s(attempt: Attempt, now_s: int) -> int:
    """Return the last second at which the machine is known to have been rented."""
    ends = [at_s for at_s in (attempt.fenced_s, attempt.ended_s) if at_s is not None]
    return min([*ends, now_s])


def _add(times: dict[str, Times], key: str, weight: float, seconds: int) -> None:
    times[key] = _with(times.get(key, Times()), weight, seconds)


def _with(times: Times, weight: float, seconds: int) -> Times:
    return Times(times.weight + weight, times.total_s + weight * min(TIME_S_MAX, max(0, seconds)))
