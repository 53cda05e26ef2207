"""The product's choice of machines on seeded traces of the market, compared with a choice that knows the
future.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

import pytest

from prime_train.runs.offer import Offer
from tests.market.clairvoyant import least_usd
from tests.market.comparison import (
    ON_DEMAND,
    PRODUCT,
    PRODUCT_STAYS,
    SPOT,
    TABLE,
    Compared,
    compare_all,
    table,
)
from tests.market.policies import OnDemand
from tests.market.simulator import Seen, Turn, cost
from tests.market.traces import STEP_MIN, Job, Market, Trace, trace

TRACES = 200
QUICK = range(0, TRACES, 10)
OVER_LEAST, OVER_ON_DEMAND = 1.05, 1.10
JOB = Job(600.0, {"H100_80GB": 1.0}, save_min=30, flush_min=2.0, set_up_min=5.0, restore_min=3.0)


def flat(
    usd_per_hour: float,
    *,
    spot: bool = True,
    losses: tuple[int, ...] = (),
    name: str = "flat",
    steps: int = 200,
) -> Market:
    offer = Offer("prime", name, usd_per_hour, spot, "H100_80GB", 1, 1000)
    return Market(offer, 10, (usd_per_hour,) * steps, (True,) * steps, (0.1,) * steps, losses)


@dataclass
class Anything:
    """Rents whatever there is, and leaves it at any time."""

    random: Random

    def choose(self, seen: Seen) -> Offer | None:
        return self.random.choice(seen.offers) if seen.offers else None

    def leaves(self, seen: Seen, held: Turn) -> bool:
        return self.random.random() < 0.02


def test_a_seed_gives_the_same_trace_each_time() -> None:
    assert trace(7) == trace(7)
    assert trace(7) != trace(8)


def test_losses_come_more_often_in_dear_times_and_on_demand_prices_are_constant() -> None:
    dear, cheap = [0, 0], [0, 0]
    for market in (market for seed in range(40) for market in trace(seed).markets):
        if not market.offer.spot:
            assert len(set(market.prices)) == 1
            continue
        usual = statistics.median(market.prices)
        lost = {loss // STEP_MIN for loss in market.losses}
        for step, price in enumerate(market.prices):
            count = dear if price > usual * 1.1 else cheap if price < usual / 1.1 else [0, 0]
            count[0] += 1
            count[1] += step in lost
    assert dear[1] / dear[0] > 1.5 * cheap[1] / cheap[0]


def test_what_a_job_costs_on_one_machine_is_the_whole_time_at_its_price() -> None:
    one = Trace(0, JOB, (flat(3.0, spot=False),))
    assert cost(one, OnDemand(one)).usd == pytest.approx(3.0 * (10 + 5 + 3 + 600 + 2) / 60)
    assert least_usd(one) == pytest.approx(cost(one, OnDemand(one)).usd)


def test_a_loss_repeats_the_work_since_the_last_save_and_starts_again() -> None:
    one = Trace(0, JOB, (flat(3.0, spot=False, losses=(150,)),))
    paid = cost(one, OnDemand(one))
    # The first machine trains from minute 18 to 150; of its 132 minutes of work four saves of 30 are durable.
    assert paid.usd == pytest.approx(3.0 * (150 + 18 + 480 + 2) / 60)
    assert paid.losses == 1
    assert least_usd(one) == pytest.approx(3.0 * (150 + 18 + (600 - 130) + 2) / 60), (
        "the clairvoyant saves just before"
    )


def test_the_clairvoyant_leaves_for_a_cheaper_machine_and_one_that_may_not_stays() -> None:
    cheap = flat(1.0, name="cheap")
    later = replace(cheap, stock=tuple(step >= 8 for step in range(200)))
    one = Trace(0, JOB, (flat(3.0, name="dear"), later))
    moved = 3.0 * 120 / 60 + 1.0 * (18 + (600 - 100) + 2) / 60
    assert least_usd(one) == pytest.approx(moved)
    assert least_usd(one, moves=False) == pytest.approx(3.0 * 620 / 60)


@pytest.mark.parametrize("seed", [2, 5, 7, 16])
def test_no_choice_is_cheaper_than_the_clairvoyant(seed: int) -> None:
    one = trace(seed)
    least = least_usd(one)
    assert least <= least_usd(one, moves=False) + 1e-9
    for attempt in range(100):
        assert cost(one, Anything(Random(f"{seed} {attempt}"))).usd >= least - 1e-9


def holds(compared: Sequence[Compared]) -> None:
    print(table(compared))
    assert statistics.median(one.ratio(PRODUCT) for one in compared) <= OVER_LEAST
    assert (
        statistics.median(one.costs[PRODUCT_STAYS].usd / one.least_staying_usd for one in compared)
        <= OVER_LEAST
    )
    for product in (PRODUCT, PRODUCT_STAYS):
        assert max(one.ratio(product, ON_DEMAND) for one in compared) <= OVER_ON_DEMAND
    for other in (SPOT, ON_DEMAND):
        assert statistics.mean(one.ratio(PRODUCT, other) for one in compared) < 0.95
    assert all(cost.usd >= one.least_usd - 1e-6 for one in compared for cost in one.costs.values())


def test_the_product_is_close_to_the_clairvoyant_on_some_traces() -> None:
    holds(compare_all(QUICK))


@pytest.mark.exhaustive
def test_the_product_is_close_to_the_clairvoyant_on_all_traces() -> None:
    compared = compare_all(range(TRACES), jobs=2)
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text(table(compared) + "\n", encoding="utf-8")
    holds(compared)
