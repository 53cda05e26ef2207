"""The facts of an alert besides its text."""

from dataclasses import replace

import pytest

from prime_train.alerts.card import AlertCard, card_of
from prime_train.alerts.facts import gap_usd
from prime_train.alerts.sparkline import BAR_COUNT, sparkline
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.run import Alert, DesiredState, Run, RunState
from prime_train.spec.causes import Cause
from tests import builders as b

NOW_S = b.T0_S + 30_000


def card(kind: str, run: Run, *, attempt: int | None = None) -> AlertCard:
    alert: Alert = b.alert(kind=AlertKind(kind), attempt=attempt if attempt is not None else run.attempt)
    return card_of(alert, run, NOW_S)


def facts(kind: str, run: Run, *, attempt: int | None = None) -> dict[str, str]:
    return dict(card(kind, run, attempt=attempt).facts)


def test_a_card_without_a_run_says_what_the_alert_says() -> None:
    made = card_of(b.alert(), None, NOW_S)

    assert (made.key, made.title, made.text, made.facts) == (
        b.alert().key,
        b.alert().title,
        b.alert().text,
        (),
    )


def test_a_machine_that_came_is_named_with_its_price() -> None:
    offer = b.offer(provider="prime", gpu="H100_80GB", gpu_count=2, usd_per_hour=4.5)
    run = b.run(RunState.BOOTING, attempts=(b.new_attempt(1, RunState.BOOTING, offer=offer),))

    assert facts("launched", run) == {"Machine": "2 × H100_80GB, prime, spot, $4.50 an hour"}


def test_a_machine_that_was_lost_is_reported_with_what_was_seen_of_it_also_when_the_next_one_is_there() -> (
    None
):
    run = b.run(
        RunState.TRAINING,
        attempt=2,
        attempts=(b.new_attempt(1, RunState.QUEUED, durable_step=8), b.new_attempt(2)),
    )

    reported = facts("lost", run, attempt=1)
    assert reported["Last step"] == "10, in the bucket up to 8"
    assert reported["Last heartbeat or commit"] == "20 s before the attempt was fenced"
    assert reported["It lasted"] == "10 min 20 s, $0.0640"
    assert reported["What to do"] == "Nothing to do: it resumes on another machine."
    assert reported["Evidence"] == "evidence/tiny-1/e1/ in the bucket, if the machine could still upload it"


def test_a_machine_that_never_came_up_has_left_no_evidence() -> None:
    run = b.run(
        RunState.QUEUED,
        attempts=(b.new_attempt(1, RunState.QUEUED, first_heartbeat_s=None, cause=Cause.BOOT_LOST),),
        attempt=1,
    )

    assert "Evidence" not in facts("lost", run)


def test_a_run_that_is_back_says_what_the_gap_cost() -> None:
    before = b.new_attempt(1, RunState.QUEUED, last_step=10, durable_step=6)
    after = b.new_attempt(2, resumed_step=6, best_step_before=10, last_step=7)
    reported = facts("recovered", b.run(RunState.TRAINING, attempt=2, attempts=(before, after)))

    # 4 of 10 steps of 540 s, 20 s until it was noticed, 20 s until it was gone, and 60 s until the next first
    # step, at 0.0001 $ a second.
    assert reported["Resumed from"] == "step 6; 4 steps are repeated"
    assert reported["The gap cost"] == "$0.0316"
    assert gap_usd(before, after, NOW_S) == pytest.approx(0.0316)


def test_a_budget_says_for_how_long_it_lasts() -> None:
    reported = facts("budget", b.run(RunState.TRAINING))

    assert reported["Spent"] == "$3.00 of $5.00, 8 h 20 min of paid time"
    assert reported["The budget lasts for"].endswith("at $0.36 an hour")


def test_a_run_that_stopped_says_what_its_last_attempts_share() -> None:
    ends = [
        b.new_attempt(n, RunState.QUEUED, cause=Cause.CUDA_ERROR, detail=f"at {n}", last_step=50)
        for n in (1, 2, 3)
    ]
    reported = facts("stopped", b.run(RunState.STOPPED, attempt=3, attempts=tuple(ends)))

    assert (
        reported["The last 3 attempts share"]
        == "cause: CUDA error; provider: local; offer: local-spot; last step: 50"
    )
    assert reported["What to do"] == "If the error repeats, the cause is the code."


def test_attempts_that_share_nothing_say_so() -> None:
    ends = [
        b.new_attempt(
            1, RunState.QUEUED, offer=b.offer("a", provider="x"), cause=Cause.CUDA_ERROR, last_step=1
        ),
        b.new_attempt(
            2,
            RunState.QUEUED,
            offer=b.offer("b", provider="y"),
            cause=Cause.KILLED,
            detail="else",
            last_step=2,
        ),
    ]
    reported = facts("failed", b.run(RunState.FAILED, attempt=2, attempts=tuple(ends)))

    assert reported["The last 2 attempts share"] == "nothing: each ended for a different reason"


def test_a_run_that_succeeded_shows_its_ledger_and_its_way() -> None:
    made = card("succeeded", b.run(RunState.SUCCEEDED))

    assert (
        dict(made.facts)["Paid time"]
        == "useful 85%, machines starting up 3%, set-up 6%, noticing losses 3%, giving back 3%"
    )
    assert dict(made.facts)["Attempts"] == "1; $0.0100 of $0.0640 produced no new step"
    assert made.image.startswith("▁")
    assert made.image.endswith("█")


def test_a_person_is_called_for_what_needs_one_but_not_for_what_one_requested() -> None:
    assert card("failed", b.run(RunState.FAILED)).calls
    assert card("stopped", b.run(RunState.STOPPED)).calls
    assert not card("stopped", b.run(RunState.STOPPED, desired=DesiredState.STOP)).calls
    assert not card("lost", b.run(RunState.TRAINING)).calls


def test_no_secret_is_in_a_card() -> None:
    secret = "hf_" + "a" * 30
    ends = tuple(b.new_attempt(n, RunState.QUEUED, detail=f"401 for {secret}") for n in (1, 2))
    made = card_of(
        b.alert(kind=AlertKind.FAILED, title=secret, text=secret),
        b.run(RunState.FAILED, attempt=2, attempts=ends),
        NOW_S,
    )

    assert "(hidden)" in made.title
    assert secret not in repr(made)


def test_every_kind_of_every_state_has_a_card() -> None:
    for state in RunState:
        for kind in AlertKind:
            assert card(kind, b.run(state)).kind == kind


def test_a_chart_falls_where_steps_are_done_again() -> None:
    first = b.new_attempt(1, RunState.QUEUED, first_step_s=b.T0_S, last_sign_s=b.T0_S + 9_000, last_step=80)
    second = b.new_attempt(2, first_step_s=b.T0_S + 15_000, resumed_step=20, last_step=20)
    run = b.run(RunState.TRAINING, attempt=2, attempts=(first, second))
    bars = sparkline(run, b.lease(run, heartbeat=b.heartbeat(5, attempt=2, step=100)), NOW_S)

    assert len(bars) == BAR_COUNT
    assert bars[10] == "▇"
    assert bars[12] in "▂▃"
    assert bars[-1] == "█"


@pytest.mark.parametrize(
    "run", [b.run(), b.run(RunState.BOOTING), replace(b.run(RunState.SUCCEEDED), ended_s=b.T0_S)]
)
def test_there_is_no_chart_before_the_first_step(run: Run) -> None:
    assert sparkline(run, b.lease(run), NOW_S) == ""
