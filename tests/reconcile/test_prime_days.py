"""Days at a fake Prime Intellect, in virtual time: the effect of its faults on a run, beside those of
`tests/adapters/rental_apis`.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.providers.by_name import PodsByProvider
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.ledger import spent
from prime_train.runs.run import RunState
from prime_train.spec.causes import Cause
from tests import builders as b
from tests.adapters.pods_prime.prime_pods import MARK, PrimeDays, days_of, guarded
from tests.adapters.rented_days import HEARTBEAT_S
from tests.fakes.http import ALWAYS, Hang, LoseResponse, Response
from tests.fakes.prime import NO_STOCK_400, SERVER_ERROR, SPOT, FakePrime, Plan

DAY_S = 24 * 3600
TIMEOUTS = 25
ANSWER_S_MAX = 0.1
"""Time limit in seconds of a response; the fake responds within a few milliseconds."""


@pytest.fixture(name="days")
def _days(tmp_path: Path) -> Iterator[PrimeDays]:
    with FakePrime(tmp_path / "prime", machines=False) as fake:
        yield days_of(fake, tmp_path, read_s=ANSWER_S_MAX)
        assert fake.violations == []


@pytest.mark.exhaustive
def test_a_day_with_25_status_timeouts_on_a_healthy_run_has_no_recovery(days: PrimeDays) -> None:
    days.pass_by(300)
    assert days.run().state is RunState.TRAINING
    for _ in range(TIMEOUTS):
        days.fake.fail(Hang(), method="GET", path="/pods/", times=ALWAYS)
        days.world.store.wake(b.RUN_ID, days.now_s)
        days.pass_by(HEARTBEAT_S)
        days.fake.heal()
        days.pass_by(DAY_S // TIMEOUTS - HEARTBEAT_S)
    assert (
        len([request for request in days.fake.requests_to("GET", "/pods/") if request.status == 0])
        >= TIMEOUTS
    )
    run = days.run()
    assert (run.attempt, run.state) == (1, RunState.TRAINING)
    assert len(days.fake.world.pods) == 1
    assert days.now_s - b.T0_S >= DAY_S * 0.99


def test_no_capacity_for_an_hour_is_waited_for(days: PrimeDays) -> None:
    days.fake.rows = [row.model_copy(update={"stockStatus": "Unavailable"}) for row in days.fake.rows]
    days.pass_by(3600)
    assert days.run().state is RunState.QUEUED
    assert not days.fake.requests_to("POST", "/pods/")
    days.fake.rows = [SPOT]
    days.pass_by(900)
    assert days.run().state is RunState.TRAINING
    assert [alert.kind for alert in days.world.store.outbox(100)].count(AlertKind.NO_CAPACITY) == 0
    assert [line.kind for line in days.world.store.history(b.RUN_ID)].count("no_capacity") == 1


def test_orders_that_are_refused_for_an_hour_for_lack_of_stock_are_made_seldom_and_end_well(
    days: PrimeDays,
) -> None:
    days.fake.fail(NO_STOCK_400, method="POST", path="/pods/", times=ALWAYS)
    days.pass_by(3600)
    assert 5 <= len(days.fake.requests_to("POST", "/pods/")) <= 20
    days.fake.heal()
    days.pass_by(900)
    run = days.run()
    assert run.state is RunState.TRAINING
    assert {attempt.cause for attempt in run.attempts[:-1]} == {Cause.NO_CAPACITY}
    assert spent(run, days.now_s).usd < 1.0


def test_the_limit_of_the_account_is_waited_for_and_no_offer_is_put_last_for_it(days: PrimeDays) -> None:
    days.fake.terms.instances_max = 0
    days.pass_by(3600)
    run = days.run()
    assert (run.state, run.excluded, run.strikes) == (RunState.QUEUED, (), ())
    assert {attempt.cause for attempt in run.attempts} == {Cause.LIMIT_REACHED}
    assert 5 <= len(days.fake.requests_to("POST", "/pods/")) <= 20
    days.fake.terms.instances_max = 1
    days.pass_by(900)
    assert days.run().state is RunState.TRAINING


def test_lists_that_are_cut_short_for_an_hour_cost_no_machine_and_make_no_second_one(days: PrimeDays) -> None:
    days.fake.terms.cut_listings = ALWAYS
    days.fake.fail(LoseResponse(), method="POST", path="/pods/")
    days.pass_by(3600)
    assert len(days.fake.world.pods) == 1
    assert days.run().attempt == 1
    days.fake.terms.cut_listings = 0
    days.pass_by(600)
    assert (days.run().attempt, days.run().state) == (1, RunState.TRAINING)
    days.fake.terms.cut_listings = ALWAYS
    days.pass_by(3600)
    assert (days.run().attempt, days.run().state) == (1, RunState.TRAINING)
    assert len(days.fake.world.pods) == 1


@pytest.mark.parametrize(
    "unusual", [SERVER_ERROR, Response(200, b"{}"), Response(401, b'{"detail": "who?"}')]
)
def test_the_machine_of_a_run_that_is_stopped_is_given_back_whatever_whoami_says(
    days: PrimeDays, tmp_path: Path, unusual: Response
) -> None:
    def restart() -> None:
        """Let a new process watch, that has not asked whose key it is."""
        pods = guarded(days.fake, tmp_path, pusher=days.pushed, mark=MARK)
        days.world = replace(days.world, pods=PodsByProvider({"prime": pods}, ("prime",)))

    restart()
    days.pass_by(300)
    assert days.run().state is RunState.TRAINING
    restart()
    days.fake.fail(unusual, path="/user/whoami", times=ALWAYS)
    days.fake.fail(SERVER_ERROR, method="DELETE", times=3)
    days.cancel()
    days.pass_by(900)
    assert days.run().state is RunState.CANCELLED
    assert not days.fake.alive


def test_what_prime_bills_is_what_the_ledger_says_in_the_end(days: PrimeDays) -> None:
    days.fake.plan = Plan(usd_per_hour=0.64)
    days.pass_by(3600)
    (pod,) = days.fake.alive
    days.fake.preempt(pod.pod_id)
    days.pass_by(3600)
    first = days.run().attempts[0]
    assert first.offer.usd_per_hour == 0.64
    assert first.billed_usd == pytest.approx(days.fake.pod(pod.pod_id).billed_usd)
    assert days.run().state is RunState.TRAINING
