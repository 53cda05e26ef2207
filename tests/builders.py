"""Values for tests: each builder gives a small, consistent one, and takes the fields a test is about as
keywords.

    spec(health={"heartbeat_s": 10})             sections are merged into the smallest useful spec
    run(RunState.TRAINING)                  attempt 1, one attempt with a pod, a first heartbeat and a first
    step run(RunState.QUEUED, attempt=2)           two attempts, both lost and gone
    held(run(RunState.TRAINING), seq=7)     with the lease that fits: open, of the newest attempt, last
    heartbeat number 7 heartbeat(8, step=120)

Attempt n is launched at `T0_S + (n - 1) * ATTEMPT_S`.
"""

from dataclasses import replace
from typing import Any

from prime_train.buckets.keys import manifest_key, pod_name
from prime_train.checkpoints.manifest import Chunk, ManifestFile
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.offer import Offer
from prime_train.runs.run import (
    ACTIVE_STATES,
    TERMINAL,
    Alert,
    Attempt,
    HistoryEvent,
    Lease,
    Run,
    RunState,
    Severity,
)
from prime_train.runs.store import RunRecord
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.runs.wire import Commit, Heartbeat, Phase
from prime_train.spec.causes import Cause
from prime_train.spec.spec import RunSpec

RUN_ID = "tiny-1"
T0_S = 1_000_000
ATTEMPT_S = 10_000
"""Seconds from one attempt's launch to the next one's."""

_SMALLEST: dict[str, Any] = {
    "name": "tiny",
    "trainer": {"command": "python train.py"},
    "budget": {"usd": 5.0},
}
_CAUSES = {
    RunState.SUCCEEDED: Cause.FINISHED,
    RunState.FAILED: Cause.IMPORT_ERROR,
    RunState.STOPPED: Cause.BUDGET_SPENT,
    RunState.CANCELLED: Cause.STOPPED_GRACEFULLY,
}


def spec(**changes: Any) -> RunSpec:
    """Return the smallest useful spec. A section given as a dict is merged into it, and everything is
    validated as in a config.
    """
    sections = dict(_SMALLEST)
    for name, value in changes.items():
        before = sections.get(name)
        sections[name] = before | value if isinstance(before, dict) and isinstance(value, dict) else value
    return RunSpec.model_validate(sections)


def offer(offer_id: str = "local-spot", **changes: Any) -> Offer:
    """Return a spot machine at 0.36 $/h: a hundredth of a cent per second."""
    return replace(Offer("local", offer_id, usd_per_hour=0.36, spot=True, disk_gib=100), **changes)


def new_attempt(number: int = 1, state: RunState = RunState.TRAINING, **changes: Any) -> Attempt:
    """Return an attempt that fits that state of its run; in a state without an open lease it is fenced, and
    its pod has ended.
    """
    at_s = T0_S + (number - 1) * ATTEMPT_S
    made = Attempt(number=number, offer=offer(), launched_s=at_s)
    if state is not RunState.LAUNCHING:
        made = replace(made, pod_id=f"pod-{number}")
    if state not in (RunState.LAUNCHING, RunState.BOOTING):
        made = replace(made, agent_put_s=at_s + 5, first_heartbeat_s=at_s + 20)
    if state not in (RunState.LAUNCHING, RunState.BOOTING, RunState.STARTING):
        made = replace(made, first_step_s=at_s + 60, last_step=10)
    if state not in ACTIVE_STATES:
        cause = _CAUSES.get(state, Cause.PREEMPTED)
        made = replace(made, last_sign_s=at_s + 600, fenced_s=at_s + 620, cause=cause, detail=cause.value)
        made = replace(made, terminate_requested_s=at_s + 621, ended_s=at_s + 640)
    return replace(made, **changes)


def run(state: RunState = RunState.QUEUED, *, attempt: int | None = None, **changes: Any) -> Run:
    """Return a run in that state after `attempt` attempts (by default 1, or 0 for a run that waits for its
    first machine), all but the newest ended.
    """
    number = attempt if attempt is not None else 0 if state is RunState.QUEUED else 1
    past = tuple(new_attempt(n, RunState.QUEUED) for n in range(1, number))
    newest = (new_attempt(number, state),) if number > 0 else ()
    attempts = (*past, *newest)
    made = Run(
        run_id=RUN_ID,
        spec=spec(),
        created_s=T0_S,
        state=state,
        attempt=number,
        attempts=attempts,
        best_step=max((a.last_step for a in attempts), default=0),
        next_check_s=T0_S + max(0, number - 1) * ATTEMPT_S,
    )
    if state in TERMINAL:
        cause = _CAUSES[state]
        ended_s = attempts[-1].fenced_s if attempts else T0_S
        made = replace(made, cause=cause, why=cause.value, ended_s=ended_s, next_check_s=None)
    return replace(made, **changes)


def lease(of: Run, **changes: Any) -> Lease:
    """Return the lease that fits the run: open if the run's state has an attempt that may send heartbeats,
    and with a last heartbeat if it has sent one.

    A changed `seq` or `heartbeat` changes the other as well.
    """
    newest = of.current_attempt
    made = Lease(run_id=of.run_id, attempt=of.attempt, open=of.state in ACTIVE_STATES, version=of.attempt)
    if newest is not None and newest.first_heartbeat_s is not None and "heartbeat" not in changes:
        phase = Phase.TRAIN if newest.first_step_s is not None else Phase.SETUP
        changes["heartbeat"] = heartbeat(
            changes.get("seq", 1), run=of.run_id, attempt=of.attempt, phase=phase, step=newest.last_step
        )
        changes.setdefault(
            "heartbeat_s", newest.last_sign_s or newest.first_step_s or newest.first_heartbeat_s
        )
    if changes.get("heartbeat") is not None:
        changes.setdefault("seq", changes["heartbeat"].seq)
    return replace(made, **changes)


def record(of: Run | None = None, **changes: Any) -> RunRecord:
    """Return the run (by default one that trains) with the lease that fits it; keywords change the lease."""
    of = of if of is not None else run(RunState.TRAINING)
    return RunRecord(of, lease(of, **changes))


def heartbeat(seq: int = 1, **changes: Any) -> Heartbeat:
    """Return heartbeat number `seq` of attempt 1 while it trains at one step per second."""
    fields: dict[str, Any] = {
        "run": RUN_ID,
        "attempt": 1,
        "seq": seq,
        "phase": Phase.TRAIN,
        "step": 10,
        "step_slow_s": 1.0,
    }
    return Heartbeat(**(fields | changes))


def commit(step: int, **changes: Any) -> Commit:
    """Return the request of attempt 1 to commit this step."""
    fields: dict[str, Any] = {"run": RUN_ID, "attempt": 1, "step": step} | changes
    return Commit(**({"key": manifest_key(fields["run"], step, fields["attempt"])} | fields))


def pod(of: Run | None = None, *, attempt: int | None = None, **changes: Any) -> Pod:
    """Return the machine of an attempt of the run (by default the newest), active and listed by the
    provider.
    """
    of = of if of is not None else run(RunState.TRAINING)
    attempt = attempt if attempt is not None else of.attempt
    created_s = T0_S + max(0, attempt - 1) * ATTEMPT_S
    made = Pod(f"pod-{attempt}", pod_name(of.run_id, attempt), PodStatus.ACTIVE, created_s, usd_per_hour=0.36)
    return replace(made, **changes)


def history_event(text: str = "it happened", **changes: Any) -> HistoryEvent:
    return replace(HistoryEvent(RUN_ID, T0_S, attempt=1, kind="note", text=text), **changes)


def alert(key: str = f"{RUN_ID}/e1/lost/v2", **changes: Any) -> Alert:
    made = Alert(
        key,
        RUN_ID,
        kind=AlertKind.LOST,
        severity=Severity.WARNING,
        title="attempt 1: machine lost",
        text="it is gone",
        at_s=T0_S,
        attempt=1,
    )
    return replace(made, **changes)


def digest(number: int) -> str:
    """Return a digest that no content has."""
    return f"blake3-{number:064x}"


def stored_file(path: str = "weights", number: int = 0, size: int = 5, **changes: Any) -> ManifestFile:
    """Return a file of one chunk whose digest is `digest(number)`, stored without compression."""
    return ManifestFile(
        path=path, size=size, chunks=(Chunk(digest=digest(number), size=size, stored=size),), **changes
    )


def is_gone(seen: Pod | None) -> bool:
    """Return whether a provider's answer is that of an ended pod: none, or one with the status GONE."""
    return seen is None or seen.status is PodStatus.GONE
