"""`DynamoStore`: the port `Store` over the calls of `table`."""

import hashlib
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any

from prime_train.errors import PermanentError, TemporaryError
from prime_train.runs.breaker import Watch
from prime_train.runs.ledger import fold
from prime_train.runs.record_size import RUN_BYTES_MAX, SHORTEN, config_bytes
from prime_train.runs.run import CHECK_S_MAX, Alert, Change, HistoryEvent, Lease, Run
from prime_train.runs.store import LeaseReply, LeaseStatus, RunRecord
from prime_train.runs.stored_json import (
    StoredRun,
    dump,
    first_problem,
    history_from,
    load,
    one_record,
    readable_alone,
    runs_and_unreadable,
    unreadable_alerts,
    unreadable_events,
)
from prime_train.runs.unreadable import Unreadable
from prime_train.runs.wire import Commit, Heartbeat, Order, Outcome
from prime_train.stores.dynamo import heartbeats as hot
from prime_train.stores.dynamo.calls import Calls
from prime_train.stores.dynamo.item_values import Head, head_of, heartbeat_text, is_head, run_of
from prime_train.stores.dynamo.item_writes import Action, changed, created, woken
from prime_train.stores.dynamo.outbox_items import happened, outbox_items, put_actions, without
from prime_train.stores.dynamo.schema import (
    LEASES,
    OUTBOX,
    RUNS,
    WATCH_KEY,
    Key,
    Value,
    history_of,
    lease_key,
    run_key,
    sent_key,
)
from prime_train.stores.dynamo.table import ACTIONS_MAX, Conflict, Table, Unmet, Write, pause

SENT_BY = "sent_by"
"""Attribute of a waiting alert: the notifiers that are done with it, possibly with repetitions; absent before
the first.
"""
_LACKING = f"attribute_not_exists({SENT_BY}) OR NOT contains({SENT_BY}, :notifier)"
_SENT = f"SET {SENT_BY} = list_append(if_not_exists({SENT_BY}, :nobody), :notifier)"
_CLAIM = "SET owner_{name} = :owner, until_{name} = :until"
_CLAIM_IF = (
    f"attribute_exists(PK) AND ({_LACKING}) AND (attribute_not_exists(owner_{{name}}) "
    "OR "
    f"owner_{{name}} = :owner OR until_{{name}} <= :now)"
)
CLAIM_NAME_CHARS = 16
"""Length of the hash of a notifier's name that is used in attribute names."""
_DUE = "next_check_s <= :now OR next_check_s > :latest"
TRIES_MAX = 20
"""How often a call is tried while others write the same run."""


class DynamoStore:
    """A `Store` in the table of that name, which must exist (`create_table`)."""

    def __init__(self, calls: Calls, table: str) -> None:
        self.table_name, self._table = table, Table(calls, table)

    def now_s(self) -> int:
        return self._table.clock()

    def create(self, run: Run) -> bool:
        actions = created(_head(run, Lease(run.run_id)), self._fitting(run))
        for turn in range(TRIES_MAX):
            try:
                self._transact(actions)
                return True
            except Unmet:
                return False
            except Conflict:
                pause(turn)
        raise self._contention_error(f"run {run.run_id}")

    def load(self, run_id: str) -> RunRecord | None:
        found = self._both(run_id)
        return one_record(_stored(*found), self._table.url) if found is not None else None

    def list_runs(self) -> list[Run]:
        return sorted(self._records()[0], key=lambda run: (-run.created_s, run.run_id))

    def unreadable(self) -> list[Unreadable]:
        runs, unreadable = self._records()
        run_ids = [*(run.run_id for run in runs), *(one.run_id for one in unreadable)]
        events = ((run_id, text) for run_id in run_ids for text in self._events(run_id))
        alerts = ((item["SK"], item["alert"]) for item in self._table.query(OUTBOX))
        return [*unreadable, *unreadable_events(events), *unreadable_alerts(alerts)]

    def save(self, change: Change) -> bool:
        run, text, alerts = change.run, self._fitting(change.run), outbox_items(change.alerts)
        for turn in range(TRIES_MAX):
            item = self._find(run.run_id)
            if item is None or not _is_as_read(item, change):
                return False
            with self._parsing(f"the lease of run {run.run_id}"):
                before = head_of(item)
            after = _head(run, change.lease if change.lease is not None else before.lease)
            actions = changed(
                before, after, text, lease_version=change.lease_version if change.lease is not None else None
            )
            try:
                self._transact([*put_actions(alerts), *actions, *happened(change)])
                return True
            except Unmet as unmet:
                # Alerts that were put into the outbox before are left out. If the run itself has changed, the
                # next iteration notices it.
                alerts = without(alerts, unmet.places)
            except Conflict:
                pause(turn)
        raise self._contention_error(f"run {run.run_id}")

    def wake(self, run_id: str, now_s: int) -> None:
        for turn in range(TRIES_MAX):
            item = self._find(run_id)
            if item is None:
                return
            with self._parsing(f"the lease of run {run_id}"):
                before = head_of(item)
            at_s = now_s if before.next_check_s is None else min(before.next_check_s, now_s)
            after = replace(before, run_version=before.run_version + 1, next_check_s=at_s)
            try:
                if before.at_rest:
                    self._transact(changed(before, after, item["run"]))
                else:
                    self._table.update(lease_key(run_id), woken(before, after))
                return
            except (Unmet, Conflict):
                pause(turn)
        raise self._contention_error(f"run {run_id}")

    def due(self, now_s: int, limit: int) -> list[str]:
        items = self._all(LEASES, where=_DUE, show="SK, next_check_s", now=now_s, latest=now_s + CHECK_S_MAX)
        return [
            item["SK"] for item in sorted(items, key=lambda item: (item["next_check_s"], item["SK"]))[:limit]
        ]

    def lease_statuses(self) -> list[LeaseStatus]:
        items = self._all(
            LEASES, where="is_open = :yes", show="SK, attempt, heartbeat_s, overdue_s", yes=True
        )
        lease_statuses = [
            LeaseStatus(item["SK"], item["attempt"], item.get("heartbeat_s"), item["overdue_s"])
            for item in items
        ]
        return sorted(lease_statuses, key=lambda lease_status: lease_status.run_id)

    def heartbeat(self, heartbeat: Heartbeat, now_s: int) -> LeaseReply:
        text = heartbeat_text(heartbeat)
        return _answer(
            hot.heartbeat(
                self._table,
                heartbeat.run,
                attempt=heartbeat.attempt,
                seq=heartbeat.seq,
                text=text,
                news=heartbeat.news,
                now_s=now_s,
                identity=heartbeat.identity,
            )
        )

    def heartbeats(self, heartbeats: Sequence[Heartbeat], now_s: int) -> list[LeaseReply]:
        return [self.heartbeat(heartbeat, now_s) for heartbeat in heartbeats]

    def commit(self, commit: Commit, now_s: int) -> LeaseReply:
        return _answer(
            hot.commit(
                self._table,
                commit.run,
                attempt=commit.attempt,
                step=commit.step,
                key=commit.key,
                identity=commit.identity,
            )
        )

    def history(self, run_id: str) -> list[HistoryEvent]:
        return history_from(run_id, self._events(run_id))

    def enqueue_alert(self, alert: Alert) -> None:
        for turn in range(TRIES_MAX):
            try:
                self._transact(put_actions(outbox_items([alert])))
                return
            except Unmet:
                return
            except Conflict:
                pause(turn)
        raise self._contention_error(f"alert {alert.key}")

    def outbox(self, limit: int, *, lacking: str | None = None) -> list[Alert]:
        filters: dict[str, Any] = {"where": _LACKING, "notifier": lacking} if lacking is not None else {}
        texts = (item["alert"] for item in self._table.query(OUTBOX, limit=limit, **filters))
        return list(islice(readable_alone(Alert, texts), limit))

    def mark_sent(self, key: str, notifier: str | None = None, *, among: Sequence[str] = ()) -> bool:
        known = self._table.get(sent_key(key))
        place = (OUTBOX, known["place"]) if known is not None else None
        item = self._marked(place, notifier) if place is not None else None
        if place is None or item is None:
            return False
        if not set(item.get(SENT_BY, ())).issuperset(among):
            return True
        self._table.delete(place)
        return False

    def claim(self, key: str, notifier: str, owner: str, *, now_s: int, until_s: int) -> bool:
        known = self._table.get(sent_key(key))
        if known is None:
            return False
        name = hashlib.sha256(notifier.encode()).hexdigest()[:CLAIM_NAME_CHARS]
        values: dict[str, Value] = {"owner": owner, "until": until_s, "now": now_s, "notifier": notifier}
        try:
            self._table.update(
                (OUTBOX, known["place"]), Write(_CLAIM.format(name=name), _CLAIM_IF.format(name=name), values)
            )
        except Unmet:
            return False
        return True

    def watch(self) -> Watch:
        item = self._table.get(WATCH_KEY)
        with self._parsing("the shared state of the watchers"):
            return load(Watch, item["watch"]) if item is not None else Watch()

    def save_watch(self, watch: Watch, *, version: int) -> bool:
        unless = "watch_version = :was" + (
            " OR attribute_not_exists(PK)" if version == Watch().version else ""
        )
        values: dict[str, Value] = {"watch_version": watch.version, "watch": dump(watch)}
        try:
            self._table.put(WATCH_KEY, values, Write(condition=unless, values={"was": version}))
        except Unmet:
            return False
        return True

    def _fitting(self, run: Run) -> str:
        """Return the run's JSON as it fits into an item: with all but its newest attempt merged into its
        totals if it is too large else, as that of a run from before configs had a limit. Raises
        PermanentError if it is too large even then.
        """
        text = dump(run)
        if _size(text) > RUN_BYTES_MAX:
            text = dump(fold(run, bytes_max=0))
        size = _size(text)
        if size > RUN_BYTES_MAX:
            reason = (
                f"the record of run {run.run_id} takes {size:,} bytes, and an item of DynamoDB "
                "leaves "
                f"{RUN_BYTES_MAX:,} for it"
            )
            raise PermanentError(
                f"{self._table.url}: {reason}; its config takes {config_bytes(run.spec):,}: {SHORTEN}"
            )
        return text

    def _marked(self, place: Key, notifier: str | None) -> dict[str, Any] | None:
        """Record that the notifier is done with the alert at this place, and return the alert; None if it no
        longer waits.
        """
        if notifier is None:
            return self._table.get(place)
        try:
            return self._table.update(
                place, Write(_SENT, "attribute_exists(PK)", {"nobody": [], "notifier": [notifier]})
            )
        except Unmet:
            return None

    def _both(self, run_id: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return the run's own item and the one with its head, as they belong together; None if there is no
        such run.
        """
        for turn in range(TRIES_MAX):
            found = self._table.get_all((lease_key(run_id), run_key(run_id)))
            own = found.get(run_key(run_id))
            if own is None:
                return None
            head = found.get(lease_key(run_id)) or own
            if _fit(own, head):
                return own, head
            pause(turn)
        raise self._contention_error(f"run {run_id}")

    def _find(self, run_id: str) -> dict[str, Any] | None:
        """Return the item with the run's head: its lease item, or its own item if it is at rest; None if
        there is no such run.
        """
        for turn in range(TRIES_MAX):
            item = self._table.get(lease_key(run_id)) or self._table.get(run_key(run_id))
            if item is None or is_head(item):
                return item
            pause(turn)  # the run was woken between the two reads
        raise self._contention_error(f"run {run_id}")

    def _all(self, partitions: Sequence[str], **options: Any) -> list[dict[str, Any]]:
        return [item for partition in partitions for item in self._table.query(partition, **options)]

    def _events(self, run_id: str) -> Iterator[str]:
        return (text for item in self._table.query(history_of(run_id)) for text in item["happened"])

    def _records(self) -> tuple[list[Run], list[Unreadable]]:
        owned = self._all(RUNS)
        heads = {item["SK"]: item for item in self._all(LEASES)}
        return runs_and_unreadable(
            one for own in owned if (one := self._current(own, heads.get(own["SK"], own))) is not None
        )

    def _current(self, own: dict[str, Any], head: dict[str, Any]) -> StoredRun | None:
        """Return the run of the two items. If it was saved after the first was read, both are read again;
        None if it is gone.
        """
        found = (own, head) if _fit(own, head) else self._both(own["SK"])
        return _stored(*found) if found is not None else None

    def _transact(self, actions: list[Action]) -> None:
        if len(actions) > ACTIONS_MAX:
            raise PermanentError(
                f"{self._table.url}: {len(actions)} items in one save; DynamoDB takes {ACTIONS_MAX}"
            )
        self._table.transact(actions, token=str(uuid.uuid4()))

    def _contention_error(self, what: str) -> TemporaryError:
        return TemporaryError(
            f"{self._table.url}: {what}: others wrote it during all {TRIES_MAX} tries; try again"
        )

    @contextmanager
    def _parsing(self, what: str) -> Iterator[None]:
        try:
            yield
        except (ValueError, KeyError) as error:
            raise PermanentError(
                f"{self._table.url}: {what} cannot be read: {first_problem(error)}"
            ) from error


def _size(text: str) -> int:
    return len(text.encode())


def _head(run: Run, lease: Lease) -> Head:
    """Return the head of a run that is being saved."""
    health = run.spec.health
    return Head(lease, run.version, run.version, run.next_check_s, health.overdue_s, health.heartbeat_s)


def _stored(own: dict[str, Any], head: dict[str, Any]) -> StoredRun:
    return StoredRun(own["SK"], lambda: run_of(own, head), lambda: head_of(head).lease)


def _fit(own: dict[str, Any], head: dict[str, Any]) -> bool:
    """Return whether the two items belong to the same saved version."""
    return is_head(head) and bool(head["saved_version"] == own["saved_version"])


def _is_as_read(item: dict[str, Any], change: Change) -> bool:
    lease_is = change.lease is None or item["lease_version"] == change.lease_version
    return lease_is and bool(item["run_version"] == change.run.version - 1)


def _answer(result: hot.HeartbeatResult) -> LeaseReply:
    return LeaseReply(
        Outcome(result.outcome), Order(result.order), result.reason, result.committed_step, result.pace_s
    )
