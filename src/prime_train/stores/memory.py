"""The store in memory, for tests and simulations; the reference that every other store must match.

It uses one lock, makes no copies (all values are frozen) and is deterministic: the same calls give the same
answers.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock

from prime_train.clock import Anchor, counting_on, uptime_s
from prime_train.runs.breaker import Watch
from prime_train.runs.run import CHECK_S_MAX, Alert, Change, HistoryEvent, Lease, Run
from prime_train.runs.store import LeaseReply, LeaseStatus, RunRecord
from prime_train.runs.unreadable import Unreadable
from prime_train.runs.wire import Commit, Heartbeat, Outcome


class MemoryStore:
    """A `Store` whose content ends with its process. `clock` returns seconds, and must neither step nor run
    backward.
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or counting_on(Anchor("", time.time() - uptime_s()))
        self._lock = Lock()
        self._runs: dict[str, Run] = {}
        self._leases: dict[str, Lease] = {}
        self._history: dict[str, list[HistoryEvent]] = {}
        self._alerts: dict[str, Alert] = {}
        self._unsent: dict[str, Alert] = {}
        self._sent_by: dict[str, set[str]] = {}
        self._claims: dict[tuple[str, str], tuple[str, int]] = {}
        self._watch = Watch()

    def now_s(self) -> int:
        return int(self._clock())

    def create(self, run: Run) -> bool:
        with self._lock:
            if run.run_id in self._runs:
                return False
            self._runs[run.run_id] = run
            self._leases[run.run_id] = Lease(run_id=run.run_id)
            self._history[run.run_id] = []
            return True

    def load(self, run_id: str) -> RunRecord | None:
        with self._lock:
            run = self._runs.get(run_id)
            return RunRecord(run, self._leases[run_id]) if run is not None else None

    def list_runs(self) -> list[Run]:
        with self._lock:
            return sorted(self._runs.values(), key=lambda run: (-run.created_s, run.run_id))

    def unreadable(self) -> list[Unreadable]:
        return []

    def save(self, change: Change) -> bool:
        run, lease = change.run, change.lease
        with self._lock:
            stored = self._runs.get(run.run_id)
            if stored is None or stored.version != run.version - 1:
                return False
            if lease is not None:
                if self._leases[run.run_id].version != change.lease_version:
                    return False
                self._leases[run.run_id] = lease
            self._runs[run.run_id] = run
            self._history[run.run_id] += change.events
            for alert in change.alerts:
                self._enqueue(alert)
            return True

    def wake(self, run_id: str, now_s: int) -> None:
        with self._lock:
            self._wake(run_id, now_s)

    def due(self, now_s: int, limit: int) -> list[str]:
        with self._lock:
            due = [
                (run.next_check_s, run.run_id) for run in self._runs.values() if run.next_check_s is not None
            ]
        return [run_id for at_s, run_id in sorted(due) if not now_s < at_s <= now_s + CHECK_S_MAX][:limit]

    def lease_statuses(self) -> list[LeaseStatus]:
        with self._lock:
            return [
                LeaseStatus(
                    run_id, lease.attempt, lease.heartbeat_s, self._runs[run_id].spec.health.overdue_s
                )
                for run_id, lease in sorted(self._leases.items())
                if lease.open
            ]

    def heartbeat(self, heartbeat: Heartbeat, now_s: int) -> LeaseReply:
        with self._lock:
            return self._heartbeat(heartbeat, now_s)

    def heartbeats(self, heartbeats: Sequence[Heartbeat], now_s: int) -> list[LeaseReply]:
        with self._lock:
            return [self._heartbeat(heartbeat, now_s) for heartbeat in heartbeats]

    def commit(self, commit: Commit, now_s: int) -> LeaseReply:
        with self._lock:
            lease = self._leases.get(commit.run)
            if lease is None or not _holds(lease, commit):
                return LeaseReply(Outcome.FENCED)
            if commit.step <= lease.committed_step:
                return _answer(Outcome.REPEATED, lease)
            lease = replace(
                lease, version=lease.version + 1, committed_step=commit.step, committed_key=commit.key
            )
            self._leases[commit.run] = lease
            return _answer(Outcome.OK, lease)

    def history(self, run_id: str) -> list[HistoryEvent]:
        with self._lock:
            return list(self._history.get(run_id, ()))

    def enqueue_alert(self, alert: Alert) -> None:
        with self._lock:
            self._enqueue(alert)

    def outbox(self, limit: int, *, lacking: str | None = None) -> list[Alert]:
        with self._lock:
            return [alert for alert in self._unsent.values() if lacking not in self._sent_by[alert.key]][
                :limit
            ]

    def mark_sent(self, key: str, notifier: str | None = None, *, among: Sequence[str] = ()) -> bool:
        with self._lock:
            if key not in self._unsent:
                return False
            if notifier is not None:
                self._sent_by[key].add(notifier)
            if not self._sent_by[key].issuperset(among):
                return True
            del self._unsent[key], self._sent_by[key]
            return False

    def claim(self, key: str, notifier: str, owner: str, *, now_s: int, until_s: int) -> bool:
        with self._lock:
            holder, claimed_until_s = self._claims.get((key, notifier), (owner, now_s))
            if notifier in self._sent_by.get(key, {notifier}) or (
                holder != owner and claimed_until_s > now_s
            ):
                return False
            self._claims[key, notifier] = owner, until_s
            return True

    def watch(self) -> Watch:
        with self._lock:
            return self._watch

    def save_watch(self, watch: Watch, *, version: int) -> bool:
        with self._lock:
            if self._watch.version != version:
                return False
            self._watch = watch
            return True

    def _enqueue(self, alert: Alert) -> None:
        if alert.key not in self._alerts:
            self._alerts[alert.key] = self._unsent[alert.key] = alert
            self._sent_by[alert.key] = set()

    def _heartbeat(self, heartbeat: Heartbeat, now_s: int) -> LeaseReply:
        lease = self._leases.get(heartbeat.run)
        if lease is None or not _holds(lease, heartbeat):
            return LeaseReply(Outcome.FENCED)
        if heartbeat.seq <= lease.seq:
            return _answer(Outcome.REPEATED, lease)
        self._leases[heartbeat.run] = replace(
            lease, version=lease.version + 1, seq=heartbeat.seq, heartbeat_s=now_s, heartbeat=heartbeat
        )
        if heartbeat.news:
            self._wake(heartbeat.run, now_s)
        return _answer(Outcome.OK, lease)

    def _wake(self, run_id: str, now_s: int) -> None:
        run = self._runs.get(run_id)
        if run is not None:
            at_s = now_s if run.next_check_s is None else min(run.next_check_s, now_s)
            self._runs[run_id] = replace(run, version=run.version + 1, next_check_s=at_s)


def _holds(lease: Lease, message: Heartbeat | Commit) -> bool:
    return lease.open and (lease.attempt, lease.identity) == (message.attempt, message.identity)


def _answer(outcome: Outcome, lease: Lease) -> LeaseReply:
    return LeaseReply(outcome, lease.order, lease.order_reason, lease.committed_step)
