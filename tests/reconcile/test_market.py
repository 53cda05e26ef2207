"""Which machine a run gets when the price per hour and the price to the end disagree."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from prime_train.errors import TemporaryError
from prime_train.providers.memory import MemoryPods
from prime_train.runs.forecast import Forecast, StepEstimate
from prime_train.runs.offer import Offer
from prime_train.runs.run import Change, Run, RunState
from prime_train.runs.store import Store
from prime_train.spec.causes import Cause
from tests import builders as b
from tests.reconcile.ports import Outside, RacedStore

SPOT = Offer("memory", "spot", 2.0, spot=True, gpu="H100_80GB", gpu_count=1, gpu_gb=80, disk_gib=1000)
STEADY = replace(SPOT, offer_id="steady", usd_per_hour=3.0, spot=False)
SLOW = replace(SPOT, offer_id="slow", gpu="A100_80GB", usd_per_hour=1.5)
SPEC = {
    "trainer": {"kind": "torchrun", "command": "train.py", "steps": 1000},
    "hardware": {"gpus": ["A100_80GB", "H100_80GB"]},
}
FORECAST = Forecast(
    (StepEstimate("H100_80GB", 1, 20, 45), StepEstimate("A100_80GB", 1, 50, 110)), every_steps=60
)


class Unreadable:
    """A store in which single runs can be read, but not the list of all."""

    def __init__(self, store: RacedStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        if name == "list_runs":
            raise TemporaryError("HTTP 503")
        return getattr(self._store, name)


def outside(
    *offers: Offer, forecast: Forecast = FORECAST, budget: Mapping[str, object] | None = None
) -> Outside:
    """Return an environment with these offers and one run that waits for its first machine."""
    w = Outside({**SPEC, "budget": budget or {"usd": 500}})
    w.pods.real = MemoryPods(offers=offers, clock=lambda: w.now_s)
    run = w.run()
    assert w.store.save(Change(replace(run, version=run.version + 1, forecast=forecast)))
    return w


def earlier(*, losses: int, hours_each: float) -> Run:
    """Return a run of another config that has lost that many spot machines of this provider, each after so
    many hours.
    """
    each_s = round(hours_each * 3600)
    attempts = [
        b.new_attempt(
            number,
            RunState.QUEUED,
            offer=SPOT,
            launched_s=start_s,
            **_ended(start_s + each_s),
            cause=Cause.PREEMPTED,
        )
        for number in range(1, losses + 1)
        for start_s in (b.T0_S - number * each_s,)
    ]
    spec = b.spec(name="other")
    return replace(
        b.run(RunState.STOPPED), run_id="other-1", spec=spec, attempts=tuple(attempts), attempt=losses
    )


def _ended(at_s: int) -> dict[str, int]:
    return {
        "first_heartbeat_s": at_s - 900,
        "first_step_s": at_s - 600,
        "last_sign_s": at_s - 60,
        "fenced_s": at_s,
        "ended_s": at_s,
    }


def rented(w: Outside) -> str:
    w.settle()
    attempt = w.run().current_attempt
    assert attempt is not None
    return attempt.offer.offer_id


def requested(w: Outside) -> str:
    return next(line.text for line in w.store.history(b.RUN_ID) if line.text.startswith("requesting"))


def test_a_cheaper_spot_machine_is_rented_while_few_were_lost() -> None:
    w = outside(SPOT, STEADY)
    assert rented(w) == "spot"
    assert (
        "$18 to the end: 8.3 h of training (estimated) at $2.00/h, 0.7 losses expected, 29 min each"
        in requested(w)
    )


def test_on_demand_is_rented_where_this_account_has_lost_spot_machines_again_and_again() -> None:
    w = outside(SPOT, STEADY)
    w.store.create(earlier(losses=40, hours_each=0.5))
    assert rented(w) == "steady"
    assert "hardly any losses expected" in requested(w)


@pytest.mark.parametrize("high_s", [-1.0, 0.0, 1e308, float("inf"), float("nan")])
def test_an_estimate_that_cannot_be_true_keeps_no_other_run_from_its_machine(high_s: float) -> None:
    w = outside(SPOT, STEADY)
    forged = replace(
        earlier(losses=1, hours_each=0.5), forecast=Forecast((StepEstimate("H100_80GB", 1, 1.0, high_s),))
    )
    w.store.create(forged)
    assert rented(w) == "spot"


def test_the_faster_machine_is_rented_although_the_other_is_cheaper_an_hour_and_named_first() -> None:
    assert rented(outside(SLOW, SPOT)) == "spot"


def test_the_users_order_of_kinds_decides_while_their_speed_is_not_known() -> None:
    assert rented(outside(SLOW, SPOT, forecast=Forecast())) == "slow"


def test_a_machine_that_would_end_after_the_deadline_is_rented_only_if_there_is_no_other() -> None:
    until = datetime.fromtimestamp(b.T0_S + 12 * 3600, UTC).isoformat()
    cheap, budget = replace(SLOW, usd_per_hour=0.2), {"usd": 500, "deadline": until}
    assert rented(outside(cheap, SPOT)) == "slow"
    assert rented(outside(cheap, SPOT, budget=budget)) == "spot"
    alone = outside(cheap, budget=budget)
    assert rented(alone) == "slow"
    assert "not expected to end by the deadline" in requested(alone)


def test_a_run_is_launched_although_the_other_runs_cannot_be_read() -> None:
    w = outside(SPOT, STEADY)
    w.world = replace(w.world, store=cast("Store", Unreadable(w.store)))
    assert rented(w) == "spot"
    assert "RunsUnread" in w.received
