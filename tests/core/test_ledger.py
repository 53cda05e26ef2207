"""The use of paid time and money: the parts always add up to what was paid."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.buckets.keys import pod_name
from prime_train.runs import change as c
from prime_train.runs import ledger
from prime_train.runs.decision import Terminate
from prime_train.runs.run import (
    ATTEMPTS_KEPT_MAX,
    Attempt,
    Lease,
    Orphan,
    Run,
    RunState,
    Totals,
    with_heartbeat,
)
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.runs.wire import Traffic
from tests import builders as b
from tests.core.given import NOW_S, PROPERTY, a_run

T0_S = b.T0_S
MARK = st.one_of(st.none(), st.integers(T0_S - 50, T0_S + 1000))
STEP = st.integers(0, 40)
ATTEMPTS = st.builds(
    Attempt,
    number=st.just(1),
    offer=st.builds(b.offer, usd_per_hour=st.sampled_from([0.0, 0.36, 36.0])),
    launched_s=st.integers(T0_S, T0_S + 100),
    pod_id=st.sampled_from([None, "pod-1"]),
    first_heartbeat_s=MARK,
    first_step_s=MARK,
    last_sign_s=MARK,
    fenced_s=MARK,
    ended_s=MARK,
    resumed_step=STEP,
    best_step_before=STEP,
    last_step=STEP,
)
PARTS = ("provision_s", "restore_s", "useful_s", "recomputed_s", "detection_s", "teardown_s")


def parts(totals: Totals) -> dict[str, int]:
    return {name: getattr(totals, name) for name in PARTS}


def lived(**changes: Any) -> Attempt:
    """Return an attempt launched at 0, with its first heartbeat at 20, first step at 60, last sign of life at
    600, fenced at 620, gone at 640.
    """
    marks: dict[str, Any] = {
        name: None if at_s is None else T0_S + at_s for name, at_s in changes.items() if name.endswith("_s")
    }
    rest: dict[str, Any] = {name: value for name, value in changes.items() if not name.endswith("_s")}
    return replace(b.new_attempt(1, RunState.QUEUED), **marks, **rest)


def spent(attempt: Attempt, after_s: int = 5000) -> Totals:
    return ledger.attempt_totals(attempt, T0_S + after_s)


def test_an_attempts_seconds_are_split_into_what_they_were_paid_for() -> None:
    totals = spent(lived())
    assert parts(totals) == {
        "provision_s": 20,
        "restore_s": 40,
        "useful_s": 540,
        "recomputed_s": 0,
        "detection_s": 20,
        "teardown_s": 20,
    }
    assert totals.paid_s == 640
    assert totals.usd == pytest.approx(0.064)
    assert totals.usd_wasted == pytest.approx(0.010)


def test_steps_an_earlier_attempt_had_reached_are_recomputed_and_not_useful() -> None:
    totals = spent(lived(resumed_step=10, best_step_before=40, last_step=100))
    assert (totals.recomputed_s, totals.useful_s) == (180, 360)


def test_an_attempt_that_died_before_it_caught_up_was_all_recomputation() -> None:
    totals = spent(lived(resumed_step=10, best_step_before=500, last_step=100))
    assert (totals.recomputed_s, totals.useful_s) == (540, 0)


def test_a_first_attempt_recomputes_nothing() -> None:
    assert spent(lived(resumed_step=0, best_step_before=0, last_step=100)).recomputed_s == 0


def test_a_machine_that_is_not_proven_gone_is_paid_for_until_now() -> None:
    totals = spent(lived(ended_s=None), after_s=1000)
    assert (totals.paid_s, totals.teardown_s) == (1000, 380)


def test_a_machine_whose_agent_never_sent_a_heartbeat_was_all_provision_until_the_fence() -> None:
    totals = spent(lived(first_heartbeat_s=None, first_step_s=None, last_sign_s=None))
    assert parts(totals) == dict.fromkeys(PARTS, 0) | {"provision_s": 620, "teardown_s": 20}


def test_a_machine_that_sent_a_heartbeat_but_made_no_step_was_provision_and_restore() -> None:
    totals = spent(lived(first_step_s=None))
    assert (totals.provision_s, totals.restore_s, totals.useful_s, totals.detection_s) == (20, 580, 0, 20)


def test_an_attempt_under_way_is_training_up_to_now() -> None:
    totals = spent(replace(b.new_attempt(1), last_step=100), after_s=100)
    assert parts(totals) == dict.fromkeys(PARTS, 0) | {"provision_s": 20, "restore_s": 40, "useful_s": 40}


def test_a_launch_that_never_made_a_machine_cost_nothing() -> None:
    assert spent(lived(ended_s=0)).paid_s == 0
    assert spent(lived(ended_s=0)).usd == 0


@PROPERTY
@given(attempt=ATTEMPTS, after_s=st.integers(-100, 2000))
def test_the_parts_always_sum_to_the_paid_seconds_and_none_is_negative(
    attempt: Attempt, after_s: int
) -> None:
    totals = spent(attempt, after_s)
    assert sum(parts(totals).values()) == totals.paid_s
    assert min(parts(totals).values()) >= 0
    assert 0 <= totals.usd_wasted <= totals.usd + 1e-9


@PROPERTY
@given(attempt=ATTEMPTS, earlier_s=st.integers(0, 1000), later_s=st.integers(0, 1000))
def test_what_is_paid_never_falls_as_time_goes_on(attempt: Attempt, earlier_s: int, later_s: int) -> None:
    assert spent(attempt, earlier_s).usd <= spent(attempt, earlier_s + later_s).usd


def with_attempts(count: int, *, open_attempts: tuple[int, ...] = ()) -> Run:
    run = b.run(RunState.TRAINING, attempt=count)
    return replace(
        run,
        attempts=tuple(replace(a, ended_s=None) if a.number in open_attempts else a for a in run.attempts),
    )


@pytest.mark.parametrize("count", [1, ATTEMPTS_KEPT_MAX, ATTEMPTS_KEPT_MAX + 1, ATTEMPTS_KEPT_MAX + 30])
def test_folding_old_attempts_keeps_the_totals_equal(count: int) -> None:
    run = with_attempts(count)
    before, after = ledger.totals(run, NOW_S + 10**6), ledger.totals(ledger.fold(run), NOW_S + 10**6)
    assert after == replace(before, usd=after.usd, usd_wasted=after.usd_wasted)
    assert after.usd == pytest.approx(before.usd)
    assert after.usd_wasted == pytest.approx(before.usd_wasted)
    assert len(ledger.fold(run).attempts) == min(count, ATTEMPTS_KEPT_MAX)


def test_an_attempt_whose_machine_is_not_proven_gone_is_never_folded() -> None:
    run = ledger.fold(with_attempts(ATTEMPTS_KEPT_MAX + 3, open_attempts=(2,)))
    assert [a.number for a in run.attempts][:3] == [2, 4, 5]
    late = replace(run, attempts=tuple(replace(a, ended_s=a.launched_s + 640) for a in run.attempts))
    assert [a.number for a in ledger.fold(late).attempts][:2] == [4, 5]


def test_folding_twice_is_folding_once() -> None:
    once = ledger.fold(with_attempts(ATTEMPTS_KEPT_MAX + 3))
    assert ledger.fold(once) == once


def test_the_complete_runs_ledger_counts_dead_attempts() -> None:
    run = b.run(RunState.TRAINING, attempt=3)
    totals = ledger.totals(run, newest_launch_s(run) + 100)
    assert (totals.attempts, totals.paid_s) == (3, 640 + 640 + 100)


def newest_launch_s(run: Run) -> int:
    return run.attempts[-1].launched_s


@PROPERTY
@given(attempts=st.lists(ATTEMPTS, max_size=3), after_s=st.integers(-100, 2000), before=st.integers(0, 100))
def test_what_decisions_are_made_of_are_the_figures_of_the_complete_ledger(
    attempts: list[Attempt], after_s: int, before: int
) -> None:
    run = a_run(attempts=tuple(attempts), folded=Totals(paid_s=before, usd=before / 7))
    complete, short = ledger.totals(run, T0_S + after_s), ledger.spent(run, T0_S + after_s)
    assert short.paid_s == complete.paid_s
    assert short.usd == pytest.approx(complete.usd)


def test_every_machine_that_is_not_proven_gone_burns_money_now() -> None:
    run = with_attempts(3, open_attempts=(1, 3))
    assert ledger.burn_usd_per_s(run) == pytest.approx(0.72 / 3600)
    assert ledger.burn_usd_per_s(b.run(RunState.STOPPED)) == 0


def test_a_second_machine_of_the_same_name_is_paid_for_from_its_first_second() -> None:
    orphan = Orphan(
        "pod-x",
        f"pt-{b.RUN_ID}-e1",
        requested_s=NOW_S,
        first_requested_s=NOW_S,
        created_s=T0_S,
        usd_per_hour=0.36,
    )
    run = a_run(orphans=(orphan,))
    assert ledger.totals(run, NOW_S).paid_s == 700 + 700
    assert ledger.burn_usd_per_s(run) == pytest.approx(0.72 / 3600)


@pytest.mark.parametrize("ahead_s", [-86_400, 0, 86_400])
def test_a_machine_too_many_costs_what_it_was_there_whatever_the_clock_of_its_provider_says(
    ahead_s: int,
) -> None:
    record = b.run(RunState.TRAINING)
    attempt = record.current_attempt
    assert attempt is not None
    now_s = attempt.launched_s + 600
    second = Pod(
        "local-2",
        pod_name(record.run_id, 1),
        PodStatus.ACTIVE,
        created_s=attempt.launched_s + ahead_s,
        usd_per_hour=6.0,
    )
    after = c.change(record, b.lease(record), Terminate((second,)), now_s).run
    assert (
        0
        <= ledger.spent(after, now_s + 60).usd - ledger.spent(record, now_s + 60).usd
        <= 660 * 6.0 / 3600 + 1e-9
    )
    assert after.orphans[0].created_s in (attempt.launched_s, now_s)


DEAR: dict[str, Any] = {"usd_per_gib_down": 0.01, "usd_per_gib_up": 0.02}


def test_traffic_counts_while_the_run_trains_and_not_only_once_it_is_billed() -> None:
    traffic = Traffic(down_bytes=100 * 2**30, up_bytes=2_000 * 2**30, seconds=36_000)
    run = b.run(RunState.TRAINING, attempts=(b.new_attempt(offer=b.offer(**DEAR), traffic=traffic),))
    now_s = T0_S + 36_000
    assert ledger.totals(run, now_s).traffic_usd == pytest.approx(41.0)
    assert ledger.spent(run, now_s).usd == pytest.approx(3.6 + 41.0)
    assert ledger.totals(run, now_s).usd == pytest.approx(3.6 + 41.0)


def test_a_bill_contains_the_traffic() -> None:
    traffic = Traffic(up_bytes=2_000 * 2**30, seconds=600)
    totals = spent(lived(offer=b.offer(**DEAR), traffic=traffic, billed_usd=7.0))
    assert (totals.usd, totals.traffic_usd) == (7.0, 0.0)


def test_a_machine_without_a_price_of_traffic_costs_what_it_did() -> None:
    traffic = Traffic(up_bytes=2_000 * 2**30, seconds=600)
    assert spent(lived(traffic=traffic)) == spent(lived())


def test_an_agent_that_was_started_again_takes_no_traffic_back() -> None:
    run = b.run(RunState.TRAINING)
    for seq, gib in ((1, 30), (2, 1), (3, 40)):
        heartbeat = b.heartbeat(seq, traffic=Traffic(up_bytes=gib * 2**30, seconds=60 * gib))
        run = with_heartbeat(run, Lease(run.run_id, attempt=1, open=True, heartbeat=heartbeat))
    assert run.attempts[-1].traffic == Traffic(up_bytes=40 * 2**30, seconds=2400)


def test_the_rate_of_traffic_is_known_to_the_budget_before_the_next_machine_has_reported_any() -> None:
    traffic = Traffic(up_bytes=36 * 2**30, seconds=3600)
    first = b.new_attempt(1, RunState.QUEUED, offer=b.offer(**DEAR), traffic=traffic)
    second = b.new_attempt(2, offer=b.offer(**DEAR))
    run = b.run(RunState.TRAINING, attempt=2, attempts=(first, second))
    assert ledger.burn_usd_per_s(run) == pytest.approx(0.36 / 3600 + 36 * 0.02 / 3600)


def test_a_models_download_is_not_taken_for_a_lasting_rate() -> None:
    traffic = Traffic(down_bytes=180 * 2**30, seconds=60)
    run = b.run(RunState.TRAINING, attempts=(b.new_attempt(offer=b.offer(**DEAR), traffic=traffic),))
    assert ledger.burn_usd_per_s(run) == pytest.approx(0.36 / 3600 + 1.8 / ledger.RATE_S_MIN)
