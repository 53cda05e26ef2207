"""The table of legal transitions, compared with the one written out here from the design."""

from dataclasses import replace

import pytest

from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.run import (
    ACTIVE_STATES,
    TERMINAL,
    TRANSITIONS,
    Event,
    IllegalMove,
    NotificationRecord,
    RunState,
    move,
    with_attempt,
)
from tests import builders as b
from tests.core.given import NOW_S, a_run, newest

ENDS = {"fail": "failed", "stop": "stopped", "cancel": "cancelled"}
ON_A_MACHINE = {
    "drain": "draining",
    "upload": "uploading",
    "finish": "finishing",
    "succeed": "succeeded",
    "lost": "queued",
}
LEGAL: dict[str, dict[str, str]] = {
    "queued": {"launch": "launching", "succeed": "succeeded"} | ENDS,
    "launching": {"pod_created": "booting", "lost": "queued"} | ENDS,
    "booting": {"first_heartbeat": "starting", "lost": "queued"} | ENDS,
    "starting": {"first_step": "training"} | ON_A_MACHINE | ENDS,
    "training": ON_A_MACHINE | ENDS,
    "draining": {"succeed": "succeeded", "lost": "queued"} | ENDS,
    "uploading": {"drain": "draining", "finish": "finishing", "succeed": "succeeded", "lost": "queued"}
    | ENDS,
    "finishing": {"drain": "draining", "upload": "uploading", "succeed": "succeeded", "lost": "queued"}
    | ENDS,
    "succeeded": {},
    "failed": {"resume": "queued"},
    "cancelled": {"resume": "queued"},
    "stopped": {"resume": "queued"},
}
PAIRS = [(state, event) for state in RunState for event in Event]


@pytest.mark.parametrize(
    ("state", "event"), [pair for pair in PAIRS if pair[1].value in LEGAL[pair[0].value]]
)
def test_every_move_of_the_table_leads_where_the_design_says(state: RunState, event: Event) -> None:
    before = a_run(state)
    after = move(before, event)
    assert after.state.value == LEGAL[state.value][event.value]
    assert replace(after, state=state) == before


@pytest.mark.parametrize(
    ("state", "event"), [pair for pair in PAIRS if pair[1].value not in LEGAL[pair[0].value]]
)
def test_any_other_move_is_an_error_that_names_run_state_and_event(state: RunState, event: Event) -> None:
    with pytest.raises(IllegalMove) as refused:
        move(a_run(state), event)
    for word in (b.RUN_ID, state.value, event.value, *LEGAL[state.value]):
        assert word in str(refused.value)
    assert (refused.value.run_id, refused.value.state, refused.value.event) == (b.RUN_ID, state, event)


def test_every_state_can_be_reached_from_queued() -> None:
    reached = {RunState.QUEUED}
    for _ in RunState:
        reached |= {after for (before, _), after in TRANSITIONS.items() if before in reached}
    assert reached == set(RunState)


def test_a_state_either_is_over_or_has_an_attempt_or_waits_for_one() -> None:
    assert not TERMINAL & ACTIVE_STATES
    assert set(RunState) - TERMINAL - ACTIVE_STATES == {RunState.QUEUED}


@pytest.mark.parametrize("state", list(RunState))
def test_only_the_user_wakes_a_run_that_is_over(state: RunState) -> None:
    assert a_run(state).is_over == (state in TERMINAL)
    if state in TERMINAL:
        assert {event for before, event in TRANSITIONS if before is state} <= {Event.RESUME}


def test_only_the_attempt_of_that_attempt_is_replaced() -> None:
    run = a_run(attempt=3)
    changed = with_attempt(run, b.new_attempt(2, RunState.QUEUED, detail="new"))
    assert [a.detail == "new" for a in changed.attempts] == [False, True, False]
    assert newest(changed) == newest(run)


def test_a_run_knows_when_people_were_notified() -> None:
    run = a_run(notices=(NotificationRecord(AlertKind.SILENT, NOW_S),))
    assert run.noted_s(AlertKind.SILENT) == NOW_S
    assert run.noted_s(AlertKind.BLIND) is None
