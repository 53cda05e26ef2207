"""A run whose record cannot be read, for example because another version has written it: what happens to it,
and to all others.
"""

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from prime_train.errors import ExternalError, PermanentError, TemporaryError
from prime_train.runs.breaker import Watch
from prime_train.runs.funds import Bill
from prime_train.runs.run import Alert, Run
from prime_train.runs.store import RunRecord
from prime_train.runs.unreadable import RECORD, Unreadable, UnreadableRecord
from prime_train.runs.verdict import UNHEARD
from prime_train.spec.causes import Cause
from prime_train.stores.sqlite.store import SqliteStore
from prime_train.watch.watcher import Watcher
from tests import builders as b
from tests.reconcile.ports import Crash, Outside, RacedStore
from tests.reconcile.test_money import Paying
from tests.reconcile.test_tracking import Requested

ODD = "odd"
"""The run that cannot be read; the others can."""
AWAY = TemporaryError("HTTP 503")
UNREADABLE = Unreadable(ODD, RECORD, "spec.brand_new: it may have been written by another version")
NEWER = UnreadableRecord(UNREADABLE)


class OddStore(RacedStore):
    """A store that cannot read some runs, the watchers' state, or waiting alerts."""

    def __init__(self) -> None:
        super().__init__()
        self.unread: dict[str, ExternalError] = {}
        self.forgets = self.is_away = False

    def load(self, run_id: str) -> RunRecord | None:
        if run_id in self.unread:
            raise copy(self.unread[run_id])
        return super().load(run_id)

    def unreadable(self) -> list[Unreadable]:
        return [error.unreadable for error in self.unread.values() if isinstance(error, UnreadableRecord)]

    def watch(self) -> Watch:
        if self.forgets:
            raise PermanentError("the shared state of the watchers cannot be read")
        return super().watch()

    def outbox(self, limit: int, *, lacking: str | None = None) -> list[Alert]:
        if self.is_away:
            raise TemporaryError("HTTP 503")
        return super().outbox(limit, lacking=lacking)


@dataclass
class Knowing:
    """A notifier that keeps for which runs it got an alert with the run's record, and for which without."""

    reported: list[tuple[str, bool]] = field(default_factory=list)

    def send(self, alert: Alert, run: Run | None) -> None:
        self.reported.append((alert.run_id, run is not None))


def two(spec: dict[str, object] | None = None) -> tuple[Outside, OddStore]:
    """Return two runs that train."""
    w, store = Outside(spec), OddStore()
    w.store, w.world = store, replace(w.world, store=store)
    for run_id in (b.RUN_ID, ODD):
        w.add(run_id, spec)
        w.trains(run_id)
    return w, store


def result(w: Outside) -> list[str]:
    """Run one sweep that fails, and return the runs that the failure names."""
    with pytest.raises(ExceptionGroup) as failed:
        w.sweep()
    assert len({id(error) for error in failed.value.exceptions}) == len(failed.value.exceptions)
    return [note for error in failed.value.exceptions for note in error.__notes__]


def skipped(w: Outside) -> tuple[str, ...]:
    """Run one sweep, and return the runs that it left out."""
    return w.sweep().unreadable


@contextmanager
def on_disk(path: Path) -> Iterator[Outside]:
    store = SqliteStore(path)
    w = Outside()
    w.world = replace(w.world, store=store)
    w.store = store  # type: ignore[assignment]
    try:
        yield w
    finally:
        store.close()


def rewritten(path: Path, run_id: str) -> None:
    """Rewrite the record as a later version would."""
    with closing(sqlite3.connect(path)) as sql, sql:
        ((text,),) = sql.execute("SELECT run FROM runs WHERE run_id = ?", (run_id,)).fetchall()
        newer = json.loads(text)
        newer["spec"]["brand_new"] = 1
        sql.execute("UPDATE runs SET run = ?, next_check_s = 0 WHERE run_id = ?", (json.dumps(newer), run_id))


def test_a_run_that_another_version_has_written_keeps_its_machine_and_the_watcher_from_no_other_run(
    tmp_path: Path,
) -> None:
    path = tmp_path / "control.sqlite"
    with on_disk(path) as w:
        for run_id in (b.RUN_ID, ODD):
            w.add(run_id)
            w.trains(run_id)
        attempt = w.run().current_attempt
        assert attempt is not None
        assert attempt.pod_id is not None
        w.pods.real.preempt(attempt.pod_id)
        rewritten(path, ODD)
        for _ in range(40):
            w.after(15)
            assert skipped(w) == (ODD,)
        assert (w.run().attempt, w.run().attempts[0].cause) == (2, Cause.PREEMPTED)
        assert w.living() == [f"pt-{ODD}-e1", f"pt-{b.RUN_ID}-e2"]
        assert {"lost", "relaunched"} <= set(w.reported.kinds())
        assert w.store.outbox(9) == []


def test_a_machine_of_a_run_that_cannot_be_read_is_left_where_it_is_though_the_run_is_not_due() -> None:
    w, store = two()
    w.sweep()
    store.unread[ODD] = NEWER
    assert skipped(w) == (ODD,)
    assert (w.living(), w.done("terminate")) == ([f"pt-{ODD}-e1", f"pt-{b.RUN_ID}-e1"], [])
    assert "orphan" not in w.reported.kinds()


def test_people_are_notified_of_a_run_that_cannot_be_read_what_was_to_be_reported() -> None:
    w, store = two()
    knowing = Knowing()
    w.world = replace(w.world, notifiers=(knowing,))
    store.unread[ODD] = NEWER
    skipped(w)
    assert {(b.RUN_ID, True), (ODD, False)} == set(knowing.reported)
    assert store.outbox(9, lacking="Knowing") == []


def test_of_a_run_that_cannot_be_read_just_now_people_are_notified_when_it_can() -> None:
    w, store = two()
    knowing = Knowing()
    w.world = replace(w.world, notifiers=(knowing,))
    store.unread[ODD] = AWAY
    result(w)
    assert set(knowing.reported) == {(b.RUN_ID, True)}
    store.unread.clear()
    w.after(15).sweep()
    assert set(knowing.reported) == {(b.RUN_ID, True), (ODD, True)}


def test_what_other_machines_have_cost_is_booked_all_the_same() -> None:
    w, store = two()
    account = Paying()
    w.world = replace(w.world, accounts=(account,))
    w.sweep()
    ids = {pod.name: pod.pod_id for pod in w.pods.real.list()}
    account.bill = [Bill(ids[name], name, 0.5) for name in (f"pt-{ODD}-e1", f"pt-{b.RUN_ID}-e1")]
    w.exit(Cause.FINISHED, step=20)
    w.settle()
    store.unread[ODD] = NEWER
    for _ in range(4):
        assert skipped(w.after(15)) == (ODD,)
    assert [attempt.billed_usd for attempt in w.run().attempts] == [0.5]


def test_other_runs_are_followed_at_their_tracker_all_the_same() -> None:
    w, store = two({"wandb": {"project": "p"}})
    tracker = Requested(w)
    w.world = replace(w.world, tracker=tracker)
    for number in range(60):
        for run_id in (ODD, b.RUN_ID):
            w.heartbeat(run_id, step=number + 20)
        w.after(30).sweep()
    tracker.unheard = True
    assert tracker.look(w.run()) == UNHEARD
    store.unread[ODD] = NEWER
    for number in range(160):
        w.heartbeat(step=number + 90)
        w.store.wake(ODD, w.now_s)
        w.store.wake(b.RUN_ID, w.now_s)
        assert skipped(w.after(30)) == (ODD,)
    assert [alert.run_id for alert in w.reported.alerts if alert.kind == "untracked"] == [b.RUN_ID]


def test_a_tracker_is_reported_other_runs_and_later_of_the_one_that_could_not_be_read() -> None:
    w, store = two({"wandb": {"project": "p"}})
    tracker = Requested(w)
    w.world = replace(w.world, tracker=tracker)
    tracker.is_away = True
    for pod in w.pods.real.list():
        w.pods.real.preempt(pod.pod_id)
    w.after(100).sweep()
    assert (w.run().attempts[0].cause, w.run(ODD).attempts[0].cause) == (Cause.PREEMPTED, Cause.PREEMPTED)
    store.unread[ODD], tracker.is_away = NEWER, False
    tracker.marks.clear()
    skipped(w.after(15))
    assert len(tracker.marks) == 1
    store.unread.clear()
    w.after(15).sweep()
    assert len(tracker.marks) == 2


class Broken:
    """Canary, account and tracker that fail as no adapter should."""

    provider = "memory"

    def is_answering(self, now_s: int) -> bool:
        raise Crash

    def funds(self) -> None:
        return None

    def bills(self) -> list[Bill]:
        raise Crash

    def look(self, run: Run) -> None:
        raise Crash


@pytest.mark.parametrize("what", ["memory", "canary", "account", "tracker"])
def test_alerts_are_sent_whatever_else_fails(what: str) -> None:
    w, store = two({"wandb": {"project": "p"}})
    broken = Broken()
    match what:
        case "memory":
            store.forgets = True
        case "canary":
            w.world = replace(w.world, canary=broken)
        case "account":
            w.world = replace(w.world, accounts=(broken,))
        case _:
            w.world = replace(w.world, tracker=broken)
    assert w.reported.alerts == []
    w.after(100)
    with pytest.raises((Crash, PermanentError, ExceptionGroup)):
        w.sweep()
    assert w.reported.kinds().count("training") == 2


def test_a_sweep_without_a_store_says_so_as_it_is() -> None:
    """Callers distinguish external failures from bugs."""
    w, store = two()
    store.forgets = store.is_away = True
    with pytest.raises(PermanentError, match="shared state of the watchers") as failed:
        w.sweep()
    assert failed.value.__notes__ == ["and then: HTTP 503"]


def test_people_are_told_once_of_a_run_that_cannot_be_read_and_of_another_reason_again() -> None:
    w, store = two()
    w.sweep()
    store.unread[ODD] = NEWER
    for _ in range(5):
        skipped(w.after(15))
    store.unread[ODD] = UnreadableRecord(replace(UNREADABLE, reason="spec.newer_still: unknown"))
    skipped(w.after(15))
    told = [alert.text for alert in w.reported.alerts if alert.kind == "unreadable"]
    assert [text.partition(": ")[2].partition(":")[0] for text in told] == [
        "spec.brand_new",
        "spec.newer_still",
    ]
    assert all(text.startswith(f"the record of run {ODD} cannot be read: ") for text in told)


def test_people_are_told_of_an_unreadable_run_that_is_over_though_it_is_never_due() -> None:
    w, store = two()
    w.exit(Cause.FINISHED, step=20)
    w.settle()
    store.unread[b.RUN_ID] = UnreadableRecord(replace(UNREADABLE, run_id=b.RUN_ID))
    w.after(3600).sweep()
    assert [alert.run_id for alert in w.reported.alerts if alert.kind == "unreadable"] == [b.RUN_ID]


def test_many_runs_that_cannot_be_read_hold_up_no_run_behind_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prime_train.watch.sweeps.DUE_MAX", 2)
    w, store = two()
    w.sweep()
    for run_id in ("odd1", "odd2", "odd3"):
        w.add(run_id)
        store.wake(run_id, 1)
        store.unread[run_id] = UnreadableRecord(replace(UNREADABLE, run_id=run_id))
    w.exit(Cause.FINISHED, step=20)
    w.settle()
    assert w.run().is_over


def test_a_watcher_rests_though_a_run_that_cannot_be_read_stays_due() -> None:
    w, store = two()
    store.unread[ODD] = NEWER
    store.wake(ODD, w.now_s)
    w.sweep()
    watcher = Watcher(w.world, threading.Event(), lambda: w.now_s)
    assert store.due(w.now_s, 9) == [ODD]
    assert not watcher._is_due()
    store.wake(b.RUN_ID, w.now_s)
    assert watcher._is_due()
