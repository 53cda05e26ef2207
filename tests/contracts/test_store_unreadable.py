"""What every store does with values that another version has written, or that are damaged: it skips and names
them, and keeps them.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from prime_train.runs.run import Change, Run, RunState
from prime_train.runs.store import Store
from prime_train.runs.unreadable import HISTORY, LEASE, RECORD, STATE, Unreadable, UnreadableRecord
from prime_train.runs.wire import Outcome
from prime_train.stores.dynamo.store import DynamoStore
from prime_train.stores.remote import RemoteStore
from prime_train.stores.sqlite.store import SqliteStore
from prime_train.version import __version__
from prime_train.webhook.server.serve import Server
from prime_train.webhook.state import WebhookContext
from tests.buckets import no_bucket
from tests.builders import RUN_ID, T0_S, alert, heartbeat, history_event, lease, run
from tests.fakes import dynamo
from tests.fakes.s3_servers import S3Server

MASTER = b"m" * 32
ODD = "odd"
ALERT = "alert"
OF_RECORD = ("form", "attempts")
"""Forms of a newer record: its number is higher, or it has a field outside of the config that this version
does not know.
"""
Spoil = Callable[[str], None]
"""Gives one stored value of the run `odd` a form that this version does not know: RECORD, LEASE, HISTORY or
ALERT.
"""


def newer(what: str, text: str) -> str:
    """Return the JSON as a later version could write it: with a new field, a new kind of alert, or another
    form of a field.
    """
    value = json.loads(text)
    match what:
        case "form":
            value["form"] = 99
        case "attempts":
            value["brand_new"] = {"unit": "s"}
        case "the record":
            value["spec"]["brand_new"] = 1
        case "the lease":
            value["brand_new"] = 1
        case "alert":
            value["kind"] = "brand_new"
        case _:
            value["at_s"] = {"seconds": 5}
    return json.dumps(value)


@contextmanager
def sqlite(folder: Path) -> Iterator[tuple[Store, Spoil]]:
    path, store = folder / "store.sqlite", SqliteStore(folder / "store.sqlite")
    record = dict.fromkeys((RECORD, *OF_RECORD), ("runs", "run"))
    others = {
        LEASE: ("leases", "heartbeat"),
        HISTORY: ("history_events", "event"),
        ALERT: ("outbox", "alert"),
    }
    columns = record | others

    def spoil(what: str) -> None:
        table, column = columns[what]
        where = f"run_id = '{ODD}'" if what != ALERT else "key = 'first'"
        with closing(sqlite3.connect(path)) as sql, sql:
            ((text,),) = sql.execute(f"SELECT {column} FROM {table} WHERE {where} LIMIT 1").fetchall()
            sql.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (newer(what, text), text))

    try:
        yield store, spoil
    finally:
        store.close()


@contextmanager
def remote(folder: Path) -> Iterator[tuple[Store, Spoil]]:
    with (
        sqlite(folder) as (there, spoil),
        Server(
            WebhookContext(there, (MASTER,), secrets={}, bucket_url="file:///bucket", bucket=no_bucket)
        ) as server,
    ):
        yield RemoteStore(server.url, MASTER), spoil


@contextmanager
def on_dynamo(server: S3Server) -> Iterator[tuple[Store, Spoil]]:
    with dynamo.store(server) as store:
        yield store, lambda what: spoil_item(dynamo.client_of(server), store, what)


def spoil_item(client: Any, store: DynamoStore, what: str) -> None:
    name = {
        **dict.fromkeys((RECORD, *OF_RECORD), "run"),
        LEASE: "heartbeat",
        HISTORY: "happened",
        ALERT: "alert",
    }[what]
    for item in client.scan(TableName=store.table_name, ConsistentRead=True)["Items"]:
        texts = [value["S"] for value in item[name].get("L", [item[name]])] if name in item else []
        if any(ODD in text for text in texts):
            changed = [{"S": newer(what, texts[0])}, *({"S": text} for text in texts[1:])]
            item[name] = {"L": changed} if "L" in item[name] else changed[0]
            client.put_item(TableName=store.table_name, Item=item)
            return


@pytest.fixture(params=["sqlite", "remote", "dynamo"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Spoil]]:
    """A store with the runs `tiny-1` and `odd`, each with a heartbeat and two events of history, and two
    alerts about `odd`.
    """
    match request.param:
        case "dynamo":
            opened = on_dynamo(request.getfixturevalue("ministack"))
        case kind:
            opened = {"sqlite": sqlite, "remote": remote}[kind](tmp_path)
    with opened as (store, spoil):
        for run_id in (RUN_ID, ODD):
            assert store.create(run(run_id=run_id, version=1))
            trains: Run = run(RunState.TRAINING, run_id=run_id, version=2, next_check_s=T0_S)
            fresh = lease(trains, seq=0, heartbeat=None, heartbeat_s=None)
            events = tuple(history_event(text, run_id=run_id) for text in ("one", "two"))
            assert store.save(Change(trains, fresh, lease_version=0, events=events))
            assert store.heartbeat(heartbeat(1, run=run_id), T0_S).outcome is Outcome.OK
        store.enqueue_alert(alert("first", run_id=ODD))
        store.enqueue_alert(alert("second", run_id=ODD))
        yield store, spoil


def ids(store: Store) -> list[str]:
    return [one.run_id for one in store.list_runs()]


def test_in_a_store_that_can_be_read_nothing_is_unreadable(stored: tuple[Store, Spoil]) -> None:
    assert stored[0].unreadable() == []


@pytest.mark.parametrize("what", [RECORD, LEASE])
def test_a_run_that_cannot_be_read_is_named_with_its_field_and_hides_no_other(
    stored: tuple[Store, Spoil], what: str
) -> None:
    store, spoil = stored
    spoil(what)
    assert ids(store) == [RUN_ID]
    (found,) = store.unreadable()
    assert (found.run_id, found.what) == (ODD, what)
    assert "brand_new: Extra inputs" in found.reason
    assert "newer" in found.reason
    with pytest.raises(UnreadableRecord, match=f"{what} of run odd cannot be read: ") as caught:
        store.load(ODD)
    assert caught.value.unreadable == found
    record = store.load(RUN_ID)
    assert record is not None
    assert store.due(T0_S, 9) == [ODD, RUN_ID]


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("form", "it is in form 99, and this version of prime-train reads forms up to 1"),
        ("attempts", "brand_new"),
    ],
)
def test_a_run_in_a_newer_form_is_refused_with_what_to_do_and_loses_nothing(
    stored: tuple[Store, Spoil], what: str, why: str
) -> None:
    store, spoil = stored
    spoil(what)
    assert ids(store) == [RUN_ID]
    (found,) = store.unreadable()
    assert (found.run_id, found.what) == (ODD, RECORD)
    assert found.reason.startswith(why)
    assert found.reason.endswith(
        f"this version is {__version__}, and a newer one has written it: use that one"
    )
    with pytest.raises(UnreadableRecord):
        store.load(ODD)
    assert store.heartbeats([heartbeat(2, run=ODD)], T0_S + 5)[0].outcome is Outcome.OK
    store.wake(ODD, T0_S)
    assert store.unreadable() == [found], "it is still as the newer version wrote it"


@pytest.mark.parametrize("what", [RECORD, LEASE])
def test_heartbeats_of_a_run_that_cannot_be_read_are_taken_beside_those_of_others(
    stored: tuple[Store, Spoil], what: str
) -> None:
    store, spoil = stored
    spoil(what)
    answers = store.heartbeats([heartbeat(2, run=ODD), heartbeat(2, run=RUN_ID)], T0_S + 5)
    assert [answer.outcome for answer in answers] == [Outcome.OK, Outcome.OK]


def test_an_event_that_cannot_be_read_says_so_in_its_place(stored: tuple[Store, Spoil]) -> None:
    store, spoil = stored
    spoil(HISTORY)
    odd, second = store.history(ODD)
    assert (odd.run_id, odd.kind, second.text) == (ODD, STATE, "two")
    assert "this event cannot be read: at_s: " in odd.text
    assert [event.text for event in store.history(RUN_ID)] == ["one", "two"]
    assert [(one.run_id, one.what) for one in store.unreadable()] == [(ODD, HISTORY)]
    assert set(ids(store)) == {RUN_ID, ODD}


def test_an_alert_that_cannot_be_read_holds_up_none_behind_it(stored: tuple[Store, Spoil]) -> None:
    store, spoil = stored
    spoil(ALERT)
    assert store.outbox(1) == [alert("second", run_id=ODD)]
    assert store.outbox(1, lacking="slack") == [alert("second", run_id=ODD)]
    (found,) = store.unreadable()
    assert found.what.startswith("alert ")
    assert isinstance(found, Unreadable)
