"""The range of what a measured run costs: played runs end within it, and it is as narrow as docs/market.md
says.

Steps vary around their mean, 10 of them are measured, and machines are lost at random with the expected rate.
Each number in the tests is a share of runs, or high / low of a range.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from statistics import mean, median, stdev

import pytest

from prime_train.estimate.cost.bill import Bill, bill_of
from prime_train.estimate.cost.duration import HOUR_S
from prime_train.market.observations import Losses, Observations, Times
from prime_train.market.quotes import Market, Work
from prime_train.market.step_times import Measurement, StepTime, TimeSource
from prime_train.runs.offer import Offer

PLAYED = 400
STEP_S, EVERY, CHECKPOINT_BYTES = 20.0, 90, 5e9
BOOT_S, SETUP_S, DETECTION_S = 150.0, 400.0, 150.0
SEEN_H = 100_000.0
"""Machine hours in which losses were seen: so many that their rate is known."""


@dataclass(frozen=True)
class Case:
    """A run of that many steps. `varies`: the standard deviation of a step as a share of its mean;
    `lost_every_h`: 0 on demand.
    """

    steps: int
    varies: float
    lost_every_h: float = 0.0

    def step_s(self, random: Random) -> float:
        sigma_2 = math.log(1 + self.varies**2)
        return random.lognormvariate(math.log(STEP_S) - sigma_2 / 2, math.sqrt(sigma_2))

    def bill(self, random: Random, measured: int) -> Bill:
        seen_s = [self.step_s(random) for _ in range(measured)]
        one = StepTime(
            mean(seen_s), TimeSource.MEASURED, Measurement(mean(seen_s), measured, spread_s=stdev(seen_s))
        )
        offer = Offer(
            "prime", "a", 2.0, spot=bool(self.lost_every_h), gpu="H100_80GB", gpu_count=1, disk_gib=100
        )
        work = Work(
            "played",
            self.steps,
            {("H100_80GB", 1): one},
            interval_steps=EVERY,
            checkpoint_bytes=CHECKPOINT_BYTES,
        )
        market = Market(replace(work, upload_s=0.0), self.seen)
        found = bill_of(market, market.quote(offer))
        assert found is not None
        return found

    @property
    def seen(self) -> Observations:
        """What one machine has shown of starts, and many of losses."""
        hours, count = (SEEN_H, SEEN_H / self.lost_every_h) if self.lost_every_h else (SEEN_H, 0.0)
        known = {("prime", bool(self.lost_every_h)): Losses(hours, count)}
        return Observations(known, {"prime": Times(1, BOOT_S)}, {"played": Times(1, SETUP_S)})

    @property
    def losses_per_h(self) -> float:
        return 1 / self.lost_every_h if self.lost_every_h else 0.0

    def played_s(self, random: Random) -> float:
        """Return the seconds that a run takes, from the order of its first machine to its last step."""
        spent_s, done = _start_s(random), 0
        while done < self.steps:
            lost_s = random.expovariate(self.losses_per_h / HOUR_S) if self.lost_every_h else math.inf
            began_s = spent_s
            for number in range(done + 1, self.steps + 1):
                spent_s += self.step_s(random) + (random.uniform(2, 30) if number % EVERY == 0 else 0)
                if spent_s - began_s > lost_s:
                    spent_s = (
                        began_s
                        + lost_s
                        + DETECTION_S
                        + _start_s(random)
                        + CHECKPOINT_BYTES / random.uniform(1e8, 1e9)
                    )
                    break
                done = number if number % EVERY == 0 or number == self.steps else done
        return spent_s


def _start_s(random: Random) -> float:
    return (BOOT_S + SETUP_S) * random.lognormvariate(-0.02, 0.15)


def outcomes(case: Case, measured: int = 10) -> Iterator[tuple[bool, float]]:
    """Yield for each played run whether it ended within the range, and high / low of that range."""
    random = Random(7)
    for _ in range(PLAYED):
        time = case.bill(random, measured).time
        yield time.low <= case.played_s(random) <= time.high, time.high / time.low


@pytest.mark.parametrize("varies", [0.05, 0.2])
@pytest.mark.parametrize(("lost_every_h", "ratio_max"), [(0.0, 1.4), (12.0, 1.5), (6.0, 1.6)])
def test_ten_measured_steps_tell_the_cost_within_a_narrow_range(
    varies: float, lost_every_h: float, ratio_max: float
) -> None:
    found = list(outcomes(Case(700, varies, lost_every_h)))
    assert mean(within for within, _ in found) >= 0.95
    assert median(ratio for _, ratio in found) <= ratio_max


def test_if_steps_differ_more_the_range_of_ten_is_wider_and_more_steps_narrow_it() -> None:
    case = Case(700, 0.4)
    few, many = list(outcomes(case)), list(outcomes(case, measured=40))
    assert mean(within for within, _ in few) >= 0.88
    assert median(ratio for _, ratio in few) > 1.45
    assert mean(within for within, _ in many) >= 0.95
    assert median(ratio for _, ratio in many) <= 1.4
