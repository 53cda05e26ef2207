"""Every decision as one write: version, lease, history, and alerts."""

from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.runs import change as c
from prime_train.runs import decide as d
from prime_train.runs import ledger
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.budget import Exhausted, Limit
from prime_train.runs.change.parts import NOTICE_CHARS_MAX
from prime_train.runs.figures import figures
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.run import (
    ACTIVE_STATES,
    ATTEMPTS_KEPT_MAX,
    TERMINAL,
    Change,
    DesiredState,
    DrainReason,
    IllegalMove,
    Lease,
    NotificationRecord,
    Orphan,
    Run,
    RunState,
    Severity,
)
from prime_train.runs.verdict import PodStatus, Stalled
from prime_train.runs.wire import Deletions, Order, Outcome, Phase
from prime_train.spec.causes import POLICY, Cause, Retry
from prime_train.stores.memory import MemoryStore
from tests import builders as b
from tests.core.given import CAUSES, NOW_S, PROPERTY, TRAINS, a_run, as_expected, newest

S = RunState
POINT = ResumePoint(step=30, attempt=1, key="k")
POD = b.pod(pod_id="pod-x", name=f"pt-{b.RUN_ID}-e1", created_s=NOW_S - 100)
EXAMPLES: list[tuple[d.Decision, RunState]] = [
    (d.Wait(NOW_S + 5, "waiting"), S.TRAINING),
    (d.Wait(None, "healthy"), S.TRAINING),
    (d.Adopt("pod-1"), S.LAUNCHING),
    (d.PutAgent("pod-1"), S.BOOTING),
    (d.SeeHeartbeat(), S.BOOTING),
    (d.SeeStep(11), S.STARTING),
    (d.SeeUpload(11), S.TRAINING),
    (d.SeeDeletions(Deletions(checkpoints=2)), S.TRAINING),
    (d.SeeAfter(11), S.TRAINING),
    (d.Notify(AlertKind.SILENT, Severity.WARNING, "silent", "no heartbeat"), S.TRAINING),
    (d.AllClear((AlertKind.SILENT,)), S.TRAINING),
    (d.RequestEvidence(Cause.STALLED, "no step"), S.TRAINING),
    (d.Drain(DrainReason.USER, "stopped by the user"), S.TRAINING),
    (d.Recover(Cause.SILENT, "no heartbeat"), S.TRAINING),
    (d.Finish(S.SUCCEEDED, Cause.FINISHED, "finished"), S.TRAINING),
    (d.Terminate((POD,)), S.TRAINING),
    (d.Settle((1,), ()), S.STOPPED),
    (d.Hold(AlertKind.SECRETS, "secrets are missing", "HF_TOKEN is not set"), S.QUEUED),
]
FROM_OUTSIDE = (d.Launch, d.ChooseResume, d.CleanUp)


def ids(example: object) -> str:
    return type(example).__name__ if not isinstance(example, RunState) else example.value


def changed(decision: d.Decision, run: Run | None = None, now_s: int = NOW_S, **lease: Any) -> Change:
    run = run if run is not None else a_run()
    return c.change(run, b.lease(run, **lease), decision, now_s)


def recovered(cause: Cause, run: Run | None = None, **lease: Any) -> Run:
    return changed(d.Recover(cause, "so it was"), run, **lease).run


def offers_of(run: Run, offer_id: str) -> Run:
    return replace(run, attempts=(*run.attempts[:-1], replace(newest(run), offer=b.offer(offer_id))))


# -----------------------------------------------------------------------------------------------------------
# every decision


def test_every_decision_is_carried_by_a_change() -> None:
    assert {type(decision) for decision, _ in EXAMPLES} | set(FROM_OUTSIDE) == set(get_args(d.Decision))


@pytest.mark.parametrize("decision", [d.Launch(on_demand=False), d.ChooseResume()], ids=ids)
def test_what_needs_facts_from_outside_is_refused_without_them(decision: d.Decision) -> None:
    with pytest.raises(ValueError, match="needs external facts"):
        changed(decision, a_run(S.QUEUED))


@pytest.mark.parametrize(("decision", "state"), EXAMPLES, ids=ids)
def test_every_change_raises_the_version_by_one_and_names_the_lease_it_was_made_from(
    decision: d.Decision, state: RunState
) -> None:
    run = a_run(state, version=41)
    lease = b.lease(run, version=7)
    change = c.change(run, lease, decision, NOW_S)
    assert change.run.version == 42
    if change.lease is not None:
        assert change.lease_version == 7
        assert change.lease.version == 8


@pytest.mark.parametrize(
    ("decision", "state"), [e for e in EXAMPLES if not isinstance(e[0], d.Wait)], ids=ids
)
def test_every_change_but_a_wait_leaves_a_line_of_history_and_is_followed_up_soon(
    decision: d.Decision, state: RunState
) -> None:
    change = changed(decision, a_run(state))
    assert [line.at_s for line in change.events] == [NOW_S]
    assert change.run.next_check_s is not None
    assert NOW_S <= change.run.next_check_s <= NOW_S + d.CHECK_S


@pytest.mark.parametrize(("decision", "state"), EXAMPLES, ids=ids)
def test_people_are_notified_of_every_change_of_state_once(decision: d.Decision, state: RunState) -> None:
    reported = [alert.kind for alert in changed(decision, a_run(state)).alerts]
    expected = {
        d.SeeStep: ["training"],
        d.Notify: ["silent"],
        d.RequestEvidence: ["stalled"],
        d.Drain: ["draining"],
    }
    expected |= {d.Hold: ["secrets"], d.Recover: ["lost"], d.Finish: ["succeeded"], d.Adopt: ["launched"]}
    assert reported == expected.get(type(decision), [])


def test_no_two_changes_of_a_run_are_the_same_alert() -> None:
    keys = [changed(EXAMPLES[11][0], a_run(version=v)).alerts[0].key for v in range(1, 5)]
    assert len(set(keys)) == 4


# ------------------------------------------------------------------------------------------------------------
# compare and set


WITH_LEASE: list[d.Decision] = [
    d.Recover(Cause.SILENT, "no heartbeat"),
    d.Finish(S.STOPPED, Cause.BUDGET_SPENT, "spent"),
    d.Drain(DrainReason.BUDGET, "nearly spent"),
    d.RequestEvidence(Cause.STALLED, "no step"),
]


def stored(run: Run) -> MemoryStore:
    """Return a store with a queued run, advanced to the state of `run`."""
    store = MemoryStore()
    assert store.create(replace(a_run(S.QUEUED), version=run.version - 1))
    assert store.save(Change(run, b.lease(run), store_version(store)))
    return store


def store_version(store: MemoryStore) -> int:
    record = store.load(b.RUN_ID)
    assert record is not None
    return record.lease.version


@pytest.mark.parametrize("decision", WITH_LEASE, ids=ids)
def test_a_save_that_a_heartbeat_overtook_is_lost(decision: d.Decision) -> None:
    store = stored(a_run(version=9))
    record = store.load(b.RUN_ID)
    assert record is not None
    assert store.heartbeat(b.heartbeat(99), NOW_S).outcome is Outcome.OK
    assert not store.save(c.change(record.run, record.lease, decision, NOW_S))
    again = store.load(b.RUN_ID)
    assert again is not None
    assert again.run == record.run
    assert again.lease.open


@pytest.mark.parametrize("decision", WITH_LEASE[:2], ids=ids)
def test_a_save_that_a_commit_overtook_is_lost_so_that_the_step_counts(decision: d.Decision) -> None:
    store = stored(a_run(version=9))
    record = store.load(b.RUN_ID)
    assert record is not None
    assert store.commit(b.commit(120), NOW_S).outcome is Outcome.OK
    assert not store.save(c.change(record.run, record.lease, decision, NOW_S))


@pytest.mark.parametrize("decision", WITH_LEASE[:2], ids=ids)
def test_after_the_fence_the_old_attempt_can_neither_send_heartbeats_nor_commit(decision: d.Decision) -> None:
    store = stored(a_run(version=9))
    record = store.load(b.RUN_ID)
    assert record is not None
    assert store.save(c.change(record.run, record.lease, decision, NOW_S))
    assert store.heartbeat(b.heartbeat(99), NOW_S).outcome is Outcome.FENCED
    assert store.commit(b.commit(120), NOW_S).outcome is Outcome.FENCED


# ------------------------------------------------------------------------------------------------------------
# launch


def launched(run: Run | None = None, **lease: Any) -> Change:
    run = run if run is not None else a_run(S.QUEUED)
    return c.launch(run, b.lease(run, **lease), b.offer("cheap"), NOW_S)


def test_a_launch_raises_the_attempt_and_opens_a_fresh_lease_for_it() -> None:
    change = launched(
        a_run(S.QUEUED, attempt=2),
        version=30,
        seq=99,
        order=Order.DRAIN,
        order_reason="user",
        committed_step=5,
    )
    assert change.run.attempt == 3
    assert change.lease == Lease(b.RUN_ID, attempt=3, open=True, version=31)
    assert change.run.state is S.LAUNCHING


def test_a_launch_goes_on_from_the_chosen_checkpoint() -> None:
    change = launched(a_run(S.QUEUED, attempt=1, resume=POINT, best_step=90))
    attempt = newest(change.run)
    assert (attempt.resumed_step, attempt.durable_step, attempt.last_step, attempt.best_step_before) == (
        30,
        30,
        30,
        90,
    )
    assert change.lease is not None
    assert change.lease.committed_step == 30


@pytest.mark.parametrize("state", [state for state in S if state is not S.QUEUED])
def test_nothing_but_a_queued_run_is_launched(state: RunState) -> None:
    with pytest.raises(IllegalMove):
        launched(a_run(state))


def test_a_run_that_was_launched_a_hundred_times_stays_a_small_record() -> None:
    run = a_run(S.QUEUED, attempt=ATTEMPTS_KEPT_MAX + 36)
    change = launched(run)
    assert len(change.run.attempts) == ATTEMPTS_KEPT_MAX
    assert newest(change.run).number == change.run.attempt
    later_s = newest(run).launched_s + 10**6
    settled = replace(newest(change.run), ended_s=newest(change.run).launched_s)
    cheap = replace(change.run, attempts=(*change.run.attempts[:-1], settled))
    assert ledger.totals(cheap, later_s).paid_s == ledger.totals(run, later_s).paid_s


def test_a_launch_that_was_refused_ends_its_attempt_at_no_cost() -> None:
    intent = launched()
    assert intent.lease is not None
    change = c.refused(intent.run, intent.lease, Cause.NO_CAPACITY, "none left", NOW_S + 9)
    assert change.run.state is S.QUEUED
    assert ledger.totals(change.run, NOW_S + 5000).paid_s == 0
    assert change.run.excluded == ("cheap",)
    assert change.run.not_before_s == NOW_S + 9 + d.QUICK_RETRY_S
    assert change.lease is not None
    assert not change.lease.open


def test_no_machine_that_fits_backs_off_further_each_time_and_is_reported_once() -> None:
    run, waits, reported = a_run(S.QUEUED), [], []
    for _ in range(8):
        change = c.no_offer(run, "none for rent", NOW_S)
        run = change.run
        assert run.next_check_s == run.not_before_s
        waits.append(run.not_before_s - NOW_S)
        reported += [alert.kind for alert in change.alerts]
    assert waits == [15, 30, 60, 120, 240, 480, 600, 600]
    assert reported == ["no_capacity"]
    assert run.version == a_run(S.QUEUED).version + 8


def test_when_capacity_is_gone_again_after_a_machine_was_had_people_are_notified_again() -> None:
    short = c.no_offer(a_run(S.QUEUED), "none for rent", NOW_S).run
    booting = c.adopted(launched(short).run, "pod-1", NOW_S).run
    lost = recovered(Cause.PREEMPTED, booting)
    assert c.no_offer(lost, "none for rent", NOW_S).alerts


# ------------------------------------------------------------------------------------------------------------
# resume


def test_what_the_next_attempt_restores_is_saved_in_the_run() -> None:
    change = c.resume_chosen(a_run(S.QUEUED, attempt=1, resume_chosen=False), POINT, NOW_S)
    assert change.run.resume == POINT
    assert change.run.resume_chosen


def test_a_checkpoint_found_only_after_the_fence_counts_as_progress() -> None:
    run = a_run(S.QUEUED, attempt=3, resume_chosen=False, strikes=(Cause.SILENT,) * 3, durable_step=29)
    assert c.resume_chosen(run, POINT, NOW_S).run.strikes == ()
    assert c.resume_chosen(run, POINT, NOW_S).run.durable_step == 30


@pytest.mark.parametrize("durable_step", [30, 31])
def test_a_checkpoint_that_is_no_newer_is_no_progress(durable_step: int) -> None:
    run = a_run(S.QUEUED, attempt=3, resume_chosen=False, strikes=(Cause.SILENT,), durable_step=durable_step)
    after = c.resume_chosen(run, POINT, NOW_S).run
    assert after.strikes == (Cause.SILENT,)
    assert after.durable_step == durable_step


# ------------------------------------------------------------------------------------------------------------
# good days


def test_an_adopted_machine_is_the_attempts_own() -> None:
    change = changed(d.Adopt("pod-7"), a_run(S.LAUNCHING))
    assert (newest(change.run).pod_id, change.run.state, change.run.next_check_s) == (
        "pod-7",
        S.BOOTING,
        NOW_S,
    )


def test_the_first_step_ends_the_back_off_and_all_that_was_reported_but_the_money() -> None:
    notices = tuple(
        NotificationRecord(kind, 0) for kind in (AlertKind.BUDGET, AlertKind.SILENT, AlertKind.NO_CAPACITY)
    )
    after = changed(d.SeeStep(31), a_run(S.STARTING, backoffs=4, notices=notices)).run
    assert (after.backoffs, [notice.kind for notice in after.notices], newest(after).last_step) == (
        0,
        ["budget"],
        31,
    )


@pytest.mark.parametrize(("age_s", "first_step_s"), [(0, NOW_S - 4), (50, NOW_S - 54), (10**6, b.T0_S + 20)])
def test_the_first_step_was_made_when_the_agent_says_and_never_before_the_first_heartbeat(
    age_s: int, first_step_s: int
) -> None:
    after = changed(
        d.SeeStep(1),
        a_run(S.STARTING),
        heartbeat=b.heartbeat(7, step=1, step_age_s=age_s),
        heartbeat_s=NOW_S - 4,
    ).run
    assert newest(after).first_step_s == first_step_s


def test_an_agent_whose_clock_runs_ahead_made_its_first_step_no_later_than_now() -> None:
    after = changed(
        d.SeeStep(1), a_run(S.STARTING), heartbeat=b.heartbeat(7, step=1), heartbeat_s=NOW_S + 500
    ).run
    assert newest(after).first_step_s == NOW_S


def test_an_order_reaches_the_agent_with_the_reply_to_its_next_heartbeat() -> None:
    for decision, order in ((WITH_LEASE[2], Order.DRAIN), (WITH_LEASE[3], Order.EVIDENCE)):
        change = changed(decision)
        assert change.lease is not None
        assert change.lease.order is order
        assert change.lease.open


def test_a_drain_is_remembered_with_its_reason_and_its_second() -> None:
    after = changed(WITH_LEASE[2]).run
    assert (after.state, after.drain, after.drain_s) == (S.DRAINING, DrainReason.BUDGET, NOW_S)


def test_what_has_passed_is_forgotten_and_what_has_not_is_kept() -> None:
    run = a_run(
        notices=(
            NotificationRecord(AlertKind.SILENT, 1),
            NotificationRecord(AlertKind.BUDGET, 2),
            NotificationRecord(AlertKind.BLIND, 3),
        )
    )
    assert changed(d.AllClear((AlertKind.SILENT, AlertKind.BLIND)), run).run.notices == (
        NotificationRecord(AlertKind.BUDGET, 2),
    )


def test_a_machine_ends_what_was_reported_while_there_was_none() -> None:
    kinds = (
        AlertKind.SECRETS,
        AlertKind.BUCKET,
        AlertKind.FUNDS,
        AlertKind.NO_CAPACITY,
        AlertKind.BUDGET,
        AlertKind.BLIND,
    )
    run = a_run(S.LAUNCHING, notices=tuple(NotificationRecord(kind, 1) for kind in kinds))
    assert [notice.kind for notice in changed(d.Adopt("pod-7"), run).run.notices] == [
        AlertKind.BUDGET,
        AlertKind.BLIND,
    ]


def test_a_stall_is_reported_until_it_has_passed() -> None:
    after = changed(d.RequestEvidence(Cause.STALLED, "waited 900 s")).run
    assert [(notice.kind, notice.text) for notice in after.notices] == [
        (AlertKind.STALLED, "no step within its deadline: waited 900 s")
    ]
    assert changed(d.AllClear((AlertKind.STALLED,)), after).run.notices == ()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (AlertKind.UNTRACKED, "the tracker receives data again"),
        (AlertKind.SILENT, "heartbeats arrive again"),
        (AlertKind.FUNDS, "the wallet has credit again"),
    ],
)
def test_an_all_clear_says_in_the_history_what_has_passed(kind: AlertKind, words: str) -> None:
    assert [event.text for event in changed(d.AllClear((kind,))).events] == [words]


def test_the_words_of_an_alert_are_kept_without_secrets_and_at_a_limited_length() -> None:
    secret = "hf_" + "a1B2" * 9
    (notice,) = changed(
        d.Notify(AlertKind.UPLOADS, Severity.WARNING, "x" * 470, f"refused: {secret}")
    ).run.notices
    assert "hf_" not in notice.text
    (notice,) = changed(d.Notify(AlertKind.UPLOADS, Severity.WARNING, "title", "y" * 10_000)).run.notices
    assert len(notice.text) == NOTICE_CHARS_MAX


def test_a_kind_without_words_for_its_end_has_no_all_clear() -> None:
    with pytest.raises(ValueError, match="budget"):
        d.AllClear((AlertKind.BUDGET,))


@pytest.mark.parametrize(
    ("before", "after"), [(Order.EVIDENCE, Order.NONE), (Order.DRAIN, Order.DRAIN), (Order.NONE, Order.NONE)]
)
def test_a_stall_that_has_passed_takes_back_its_own_order_and_no_other(before: Order, after: Order) -> None:
    run = a_run(attempts=(b.new_attempt(evidence_requested_s=NOW_S - 60),))
    change = changed(d.AllClear((AlertKind.STALLED,)), run, order=before)
    assert newest(change.run).evidence_requested_s is None
    assert (change.lease.order if change.lease else before) is after


def test_an_all_clear_of_anything_else_leaves_orders_alone() -> None:
    assert changed(d.AllClear((AlertKind.SILENT,)), order=Order.EVIDENCE).lease is None


# ------------------------------------------------------------------------------------------------------------
# the fence


@pytest.mark.parametrize("state", sorted(ACTIVE_STATES))
@pytest.mark.parametrize(
    "end", [d.Recover(Cause.SILENT, ""), d.Finish(S.STOPPED, None, ""), d.Finish(S.FAILED, None, "")], ids=ids
)
def test_the_lease_is_closed_in_the_same_write_as_any_move_out_of_a_state_with_an_attempt(
    state: RunState, end: d.Decision
) -> None:
    change = changed(end, a_run(state), order=Order.DRAIN, order_reason="user")
    assert change.lease is not None
    assert (change.lease.open, change.lease.order, change.lease.attempt) == (False, Order.NONE, 1)
    assert change.run.state not in ACTIVE_STATES
    assert newest(change.run).fenced_s == NOW_S
    assert not change.run.resume_chosen
    assert change.run.drain is None


def test_the_fence_keeps_all_that_the_last_heartbeat_and_commit_taught() -> None:
    after = recovered(
        Cause.SILENT,
        heartbeat=b.heartbeat(7, step=55, step_slow_s=2.5),
        heartbeat_s=NOW_S - 301,
        committed_step=50,
    )
    attempt = newest(after)
    assert (attempt.last_step, attempt.durable_step, attempt.last_sign_s, attempt.cause) == (
        55,
        50,
        NOW_S - 301,
        Cause.SILENT,
    )
    assert (after.best_step, after.durable_step, after.step_slow_s) == (55, 50, 2.5)


def test_a_stalled_attempts_last_sign_of_life_is_its_last_step() -> None:
    after = recovered(Cause.STALLED, heartbeat=b.heartbeat(7, step=55, step_age_s=400), heartbeat_s=NOW_S - 5)
    assert newest(after).last_sign_s == NOW_S - 405


def test_an_attempt_that_trained_between_two_looks_was_not_only_set_up() -> None:
    after = recovered(
        Cause.PREEMPTED,
        a_run(S.STARTING),
        heartbeat=b.heartbeat(7, step=55, step_age_s=3),
        heartbeat_s=NOW_S - 5,
    )
    assert newest(after).first_step_s == NOW_S - 8


def test_what_is_known_never_goes_back_at_a_fence() -> None:
    run = a_run(best_step=900, durable_step=800, step_slow_s=4.0)
    after = recovered(
        Cause.SILENT, run, heartbeat=b.heartbeat(7, step=55, step_slow_s=None), committed_step=50
    )
    assert (after.best_step, after.durable_step, after.step_slow_s) == (900, 800, 4.0)


def test_the_step_that_was_shown_does_not_drop_when_the_attempt_ends() -> None:
    """A commit may contain a later step than the last heartbeat that arrived."""
    run, lease = (
        a_run(),
        dict[str, Any](heartbeat=b.heartbeat(7, step=48), heartbeat_s=NOW_S - 9, committed_step=50),
    )
    shown = figures(run, b.lease(run, **lease), NOW_S)
    ended = figures(recovered(Cause.SILENT, run, **lease), None, NOW_S)
    assert (shown.step, shown.best_step, shown.durable_step) == (50, 50, 50)
    assert (ended.step, ended.best_step, ended.durable_step) == (50, 50, 50)


def test_a_second_fence_changes_nothing_of_a_past_attempt() -> None:
    run = a_run(S.QUEUED, attempt=1)
    change = changed(d.Finish(S.STOPPED, None, "stopped by the user"), run, now_s=NOW_S + 99)
    assert newest(change.run) == newest(run)
    assert change.lease is not None
    assert not change.lease.open


def test_a_long_detail_is_cut_short() -> None:
    assert len(newest(changed(d.Recover(Cause.SILENT, "x" * 10_000)).run).detail) == 500


# ----------------------------------------------------------------------------------------------------- what a
# cause leads to


@pytest.mark.parametrize("cause", list(Cause))
def test_what_counts_backs_off_and_is_left_out_is_the_causes_row_in_the_policy_table(cause: Cause) -> None:
    run, policy = a_run(backoffs=2), POLICY[cause]
    after = recovered(cause, run)
    assert after.strikes == ((cause,) if policy.retry is Retry.COUNTED else ())
    assert after.excluded == (("local-spot",) if policy.exclude_offer else ())
    waits = (
        (2, NOW_S + d.QUICK_RETRY_S)
        if cause is Cause.NO_CAPACITY
        else (3, NOW_S + 60)
        if policy.backs_off
        else (2, NOW_S)
    )
    assert (after.backoffs, after.not_before_s) == waits


def test_preemption_does_not_count() -> None:
    run = a_run(strikes=(Cause.STALLED,))
    after = recovered(Cause.PREEMPTED, run)
    assert after.strikes == (Cause.STALLED,)
    assert after.preempted_s == (NOW_S,)


def test_an_attempt_that_made_a_new_durable_step_ends_the_row_of_those_that_did_not() -> None:
    after = recovered(Cause.CUDA_ERROR, a_run(strikes=(Cause.STALLED,) * 2, durable_step=5), committed_step=6)
    assert after.strikes == ()


def test_a_step_that_was_durable_before_is_no_new_one() -> None:
    after = recovered(Cause.CUDA_ERROR, a_run(strikes=(Cause.STALLED,) * 2, durable_step=6), committed_step=6)
    assert after.strikes == (Cause.STALLED, Cause.STALLED, Cause.CUDA_ERROR)


def test_only_the_last_offers_that_failed_are_left_out() -> None:
    run = a_run()
    for name in "abcdef":
        after = recovered(Cause.CUDA_ERROR, offers_of(run, name))
        run = a_run(excluded=after.excluded)
    assert run.excluded == ("c", "d", "e", "f")


def test_an_offer_that_fails_twice_is_left_out_once() -> None:
    run = offers_of(a_run(excluded=("a", "b")), "a")
    assert recovered(Cause.CUDA_ERROR, run).excluded == ("b", "a")


def test_an_offer_that_worked_after_all_is_no_longer_left_out() -> None:
    assert recovered(Cause.PREEMPTED, offers_of(a_run(excluded=("a", "b")), "a")).excluded == ("b",)


def test_preemptions_are_remembered_no_further_than_needed() -> None:
    run = a_run(preempted_s=tuple(range(c.PREEMPTIONS_KEPT_MAX)))
    assert recovered(Cause.PREEMPTED, run).preempted_s == (*range(1, c.PREEMPTIONS_KEPT_MAX), NOW_S)


# ------------------------------------------------------------------------------------------------------------
# the end


@pytest.mark.parametrize(
    ("state", "severity"),
    [
        (S.SUCCEEDED, Severity.INFO),
        (S.FAILED, Severity.ERROR),
        (S.STOPPED, Severity.WARNING),
        (S.CANCELLED, Severity.INFO),
    ],
)
def test_every_end_is_reported_once_with_what_it_cost(state: RunState, severity: Severity) -> None:
    (alert,) = changed(d.Finish(state, Cause.TRAINER_ERROR, "so it ended")).alerts
    assert (alert.kind, alert.severity) == (state.value, severity)
    assert "so it ended" in alert.text
    assert "$0.07" in alert.text


def test_an_ended_run_is_looked_at_again_until_its_machine_is_gone() -> None:
    after = changed(d.Finish(S.STOPPED, None, "")).run
    assert (after.next_check_s, after.ended_s) == (NOW_S, NOW_S)


# ------------------------------------------------------------------------------------------------------------
# their pods


def test_a_machine_that_was_terminated_is_remembered_until_it_is_gone() -> None:
    run = changed(d.Terminate((POD,))).run
    again = changed(d.Terminate((POD,)), run, now_s=NOW_S + 30).run
    assert again.orphans == (
        Orphan(
            "pod-x",
            POD.name,
            requested_s=NOW_S + 30,
            first_requested_s=NOW_S,
            times=2,
            created_s=NOW_S - 100,
            usd_per_hour=0.36,
        ),
    )
    assert changed(d.Settle((), ("pod-x",)), again).run.orphans == ()


def test_a_machine_that_a_lost_create_call_made_is_paid_for_by_its_attempt_though_it_had_been_written_off() -> (
    None
):
    written_off = replace(b.new_attempt(1, S.LAUNCHING), fenced_s=NOW_S - 300, ended_s=b.T0_S)
    run = a_run(S.QUEUED, attempts=(written_off,), attempt=1)
    assert ledger.totals(run, NOW_S).paid_s == 0
    after = changed(d.Terminate((POD,)), run).run
    assert (newest(after).pod_id, newest(after).terminate_requested_s) == ("pod-x", NOW_S)
    assert ledger.totals(after, NOW_S).paid_s == 100
    assert (
        ledger.totals(changed(d.Settle((1,), ("pod-x",)), after, now_s=NOW_S + 50).run, NOW_S + 5000).paid_s
        == 150
    )


def test_a_machine_that_died_while_nobody_looked_is_paid_for_until_it_died() -> None:
    lost = replace(b.new_attempt(1, S.QUEUED), ended_s=None)
    gone = replace(b.pod(attempt=1), status=PodStatus.GONE, ended_s=b.T0_S + 630)
    after = changed(
        d.Settle((1,), (), (gone,)), a_run(S.QUEUED, attempts=(lost,), attempt=1), now_s=NOW_S + 3600
    ).run
    assert newest(after).ended_s == b.T0_S + 630


@pytest.mark.parametrize(
    ("told_s", "ended_s"), [(b.T0_S + 1, b.T0_S + 540), (NOW_S + 9_999, NOW_S), (None, NOW_S)]
)
def test_no_machine_ended_a_minute_before_its_last_sign_of_life_was_read_or_in_the_future(
    told_s: int | None, ended_s: int
) -> None:
    lost = replace(b.new_attempt(1, S.QUEUED), ended_s=None)
    gone = replace(b.pod(attempt=1), status=PodStatus.GONE, ended_s=told_s)
    after = changed(d.Settle((1,), (), (gone,)), a_run(S.QUEUED, attempts=(lost,), attempt=1)).run
    assert newest(after).ended_s == ended_s


def test_a_machine_that_was_made_during_a_crash_and_is_gone_again_is_paid_for_by_its_attempt() -> None:
    lost = replace(b.new_attempt(1, S.LAUNCHING), fenced_s=NOW_S - 300)
    gone = replace(POD, status=PodStatus.GONE, ended_s=NOW_S - 40)
    run = a_run(S.QUEUED, attempts=(lost,), attempt=1)
    after = changed(d.Settle((1,), (), (gone,)), run).run
    assert (newest(after).pod_id, newest(after).ended_s) == ("pod-x", NOW_S - 40)
    assert ledger.totals(after, NOW_S + 5000).paid_s == 60
    assert ledger.totals(after, NOW_S + 5000).usd == pytest.approx(0.006)


def test_a_bill_for_a_machine_that_nobody_ever_saw_is_booked_by_its_name() -> None:
    lost = replace(b.new_attempt(1, S.LAUNCHING), fenced_s=NOW_S - 300, ended_s=b.T0_S)
    bill = replace(POD, status=PodStatus.GONE, ended_s=NOW_S - 40)
    after = c.billed(a_run(S.QUEUED, attempts=(lost,), attempt=1), 1, bill, 0.5, NOW_S).run
    assert (newest(after).pod_id, newest(after).billed_usd) == ("pod-x", 0.5)
    assert ledger.totals(after, NOW_S).paid_s == 60


def test_a_machine_that_is_in_no_attempt_is_paid_for_too_and_only_once() -> None:
    run = a_run(S.STOPPED)
    paid_s = ledger.totals(run, NOW_S).paid_s
    requested = changed(d.Terminate((POD,)), run).run
    after = changed(d.Settle((), ("pod-x",)), requested, now_s=NOW_S + 50).run
    assert ledger.totals(after, NOW_S + 5000).paid_s == paid_s + 150
    assert changed(d.Settle((), ("pod-x",)), after, now_s=NOW_S + 90).run.folded == after.folded


def test_a_machine_that_comes_back_after_it_was_called_gone_is_paid_for_again() -> None:
    run = a_run(S.STOPPED)
    after = changed(d.Terminate((b.pod(run),)), run, now_s=NOW_S).run
    assert ledger.totals(after, NOW_S).paid_s == 700


def test_two_machines_that_one_lost_create_call_made_are_both_paid_for() -> None:
    lost = replace(b.new_attempt(1, S.LAUNCHING), fenced_s=NOW_S - 300)
    run = a_run(S.QUEUED, attempts=(lost,), attempt=1)
    requested = changed(d.Terminate((POD, replace(POD, pod_id="pod-y"))), run).run
    after = changed(d.Settle((1,), ("pod-x", "pod-y")), requested).run
    assert ledger.totals(after, NOW_S + 5000).paid_s == 100 + 100


def test_a_launch_that_never_made_a_machine_is_settled_at_no_cost() -> None:
    lost = replace(b.new_attempt(1, S.LAUNCHING), fenced_s=NOW_S - 300)
    after = changed(d.Settle((1,)), a_run(S.QUEUED, attempts=(lost,), attempt=1)).run
    assert ledger.totals(after, NOW_S + 5000).paid_s == 0


def test_settling_twice_is_settling_once() -> None:
    run = a_run(S.STOPPED, attempts=(replace(b.new_attempt(1, S.QUEUED), ended_s=None),))
    once = changed(d.Settle((1,)), run).run
    assert newest(changed(d.Settle((1,)), once, now_s=NOW_S + 500).run) == newest(once)


# ------------------------------------------------------------------------------------------------------------
# the user


@pytest.mark.parametrize("state", [state for state in S if state not in TERMINAL])
@pytest.mark.parametrize("desired", [DesiredState.STOP, DesiredState.CANCEL])
def test_a_wish_is_saved_and_looked_at_at_once(state: RunState, desired: DesiredState) -> None:
    change = c.requested(a_run(state), desired, NOW_S)
    assert (change.run.desired, change.run.next_check_s, change.run.state) == (desired, NOW_S, state)
    assert change.lease is None


@pytest.mark.parametrize("state", sorted(TERMINAL))
@pytest.mark.parametrize("desired", [DesiredState.STOP, DesiredState.CANCEL])
def test_a_run_that_is_over_cannot_be_stopped(state: RunState, desired: DesiredState) -> None:
    with pytest.raises(IllegalMove, match=state.value):
        c.requested(a_run(state), desired, NOW_S)


@pytest.mark.parametrize("state", [S.FAILED, S.STOPPED, S.CANCELLED])
def test_a_run_that_was_stopped_goes_on_where_it_was_with_a_clean_slate_and_a_larger_budget(
    state: RunState,
) -> None:
    run = a_run(
        state,
        desired=DesiredState.STOP,
        strikes=(Cause.STALLED,) * 3,
        backoffs=5,
        not_before_s=NOW_S + 999,
        resume=POINT,
        excluded=("a",),
    )
    after = c.resumed(
        replace(run, notices=(NotificationRecord(AlertKind.BUDGET, 1),)), NOW_S, {Limit.USD: 50.0}
    ).run
    assert (after.state, after.desired, after.strikes, after.backoffs, after.notices, after.why) == (
        S.QUEUED,
        DesiredState.RUN,
        (),
        0,
        (),
        "",
    )
    assert (after.spec.budget.usd, after.spec.budget.hours, after.resume, after.attempt, after.ended_s) == (
        50.0,
        None,
        POINT,
        1,
        None,
    )
    assert (after.not_before_s, after.next_check_s) == (NOW_S, NOW_S)


def test_what_a_resumed_run_restores_is_chosen_anew_if_its_last_attempt_was_fenced_by_the_stop() -> None:
    stopped = changed(d.Finish(S.STOPPED, Cause.STOPPED_GRACEFULLY, "stopped by the user")).run
    again = c.resumed(stopped, NOW_S + 9).run
    assert d.decide(again, None, as_expected(again), NOW_S + 9) == d.ChooseResume()


@pytest.mark.parametrize("state", [S.SUCCEEDED, S.QUEUED, S.TRAINING])
def test_a_run_that_was_not_stopped_cannot_be_resumed(state: RunState) -> None:
    with pytest.raises(IllegalMove):
        c.resumed(a_run(state), NOW_S)


@pytest.mark.parametrize(
    ("limit", "budget", "more"),
    [
        (Limit.USD, {"usd": 5.0}, 50.0),
        (Limit.HOURS, {"usd": 90.0, "hours": 1.0}, 2.0),
        (Limit.DEADLINE, {"usd": 90.0, "deadline": "1970-01-12"}, "1970-02-01T12:00+02:00"),
    ],
)
def test_a_resume_is_refused_until_the_limit_that_is_used_up_is_raised(
    limit: Limit, budget: dict[str, Any], more: Any
) -> None:
    spent = a_run(S.STOPPED, budget=budget)
    spent = replace(spent, folded=replace(spent.folded, paid_s=9000, useful_s=3600, usd=4.9))
    with pytest.raises(Exhausted) as refused:
        c.resumed(spent, NOW_S + 90_000)
    assert refused.value.limits == (limit,)
    again = c.resumed(spent, NOW_S + 90_000, {limit: more}).run
    assert isinstance(d.decide(again, None, as_expected(again), NOW_S + 90_000), d.Launch)


@pytest.mark.parametrize("limits", [{Limit.USD: 1e308}, {Limit.HOURS: -1.0}, {Limit.DEADLINE: "soon"}])
def test_a_resume_with_a_limit_that_could_not_be_stored_is_refused(limits: dict[Limit, float | str]) -> None:
    with pytest.raises(ValueError, match=next(iter(limits)).value):
        c.resumed(a_run(S.STOPPED), NOW_S, limits)


def test_a_run_goes_on_with_another_config_from_its_checkpoint() -> None:
    run = a_run(S.FAILED, resume=POINT)
    after = c.resumed(
        run, NOW_S, renewed=c.Renewed(b.spec(trainer={"command": "python fixed.py"}), "c0ffee")
    ).run
    assert (after.spec.trainer.command, after.commit, after.revision, after.resume) == (
        "python fixed.py",
        "c0ffee",
        1,
        POINT,
    )


@pytest.mark.parametrize(
    "changes",
    [{"name": "other"}, {"trainer": {"kind": "torchrun"}}, {"checkpoints": {"pattern": "ckpt-{step}"}}],
)
def test_a_config_that_could_not_find_the_runs_checkpoints_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(changes))):
        c.resumed(a_run(S.FAILED), NOW_S, renewed=c.Renewed(b.spec(**changes), ""))


def decided(run: Run, verdict: Any = None, now_s: int = NOW_S) -> d.Decision:
    return d.decide(run, verdict, as_expected(run), now_s)


# ------------------------------------------------------------------------------------------------------------
# when to look


HEALTHY = d.Wait(None, "healthy")


def next_look_s(run: Run | None = None, wait: d.Wait = HEALTHY, **lease: Any) -> int:
    """Return the seconds until the next check of a healthy run."""
    at_s = changed(wait, run, **lease).run.next_check_s
    assert at_s is not None
    return at_s - NOW_S


def test_a_healthy_run_is_next_looked_at_when_its_heartbeat_would_be_missing() -> None:
    assert next_look_s(heartbeat=b.heartbeat(7, step=10), heartbeat_s=NOW_S) == 38


def test_a_run_near_its_step_deadline_is_looked_at_one_second_past_it() -> None:
    assert next_look_s(heartbeat=b.heartbeat(7, step=10, step_age_s=290), heartbeat_s=NOW_S) == 11


def test_a_wait_with_a_second_of_its_own_is_kept() -> None:
    assert next_look_s(wait=d.Wait(NOW_S + 77, "silent")) == 77


def test_an_ended_run_with_nothing_left_to_do_is_never_looked_at_again() -> None:
    assert changed(d.Wait(None, ""), a_run(S.STOPPED)).run.next_check_s is None


@pytest.mark.parametrize(("age_s", "next_s"), [(37, 1), (38, 15), (60, 15), (76, 15), (80, 11), (90, 1)])
def test_a_run_whose_heartbeats_are_missing_is_looked_at_at_the_usual_pace_and_when_it_is_overdue(
    age_s: int, next_s: int
) -> None:
    assert next_look_s(heartbeat=b.heartbeat(7, step=10), heartbeat_s=NOW_S - age_s) == next_s


def test_a_run_that_flushes_of_itself_is_looked_at_at_the_usual_pace_and_not_each_second() -> None:
    assert next_look_s(
        heartbeat=b.heartbeat(7, step=10, step_age_s=600, phase=Phase.FLUSH), heartbeat_s=NOW_S
    ) >= d.check_s(a_run())


def test_a_second_stall_of_the_same_attempt_is_asked_for_evidence_again() -> None:
    late = Stalled(Cause.STALLED, 400, 300)
    run = changed(decided(a_run(), late)).run
    for now_s in (NOW_S + 30, NOW_S + 60, NOW_S + 90):
        run = changed(decided(run, TRAINS, now_s), run, now_s=now_s).run
    assert isinstance(decided(run, replace(late, evidence=True), NOW_S + 4000), d.RequestEvidence)


# ------------------------------------------------------------------------------------------------------------
# always


@PROPERTY
@given(
    state=st.sampled_from(sorted(ACTIVE_STATES)),
    cause=CAUSES,
    committed=st.integers(0, 50),
    before=st.integers(0, 50),
    step=st.integers(0, 60),
    age_s=st.integers(-50, 900),
)
def test_a_fence_never_opens_a_lease_and_never_loses_a_durable_step(
    state: RunState, cause: Cause, committed: int, before: int, step: int, age_s: int
) -> None:
    run = a_run(state, durable_step=before, best_step=before)
    change = changed(
        d.Recover(cause, ""),
        run,
        committed_step=committed,
        heartbeat=b.heartbeat(7, step=step),
        heartbeat_s=NOW_S - age_s,
    )
    assert change.lease is not None
    assert not change.lease.open
    assert change.run.durable_step == max(before, committed)
    totals = ledger.totals(change.run, NOW_S + 100)
    parts = (
        totals.provision_s,
        totals.restore_s,
        totals.useful_s,
        totals.recomputed_s,
        totals.detection_s,
        totals.teardown_s,
    )
    assert min(parts) >= 0
    assert sum(parts) == totals.paid_s
