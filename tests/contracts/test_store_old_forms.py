"""Values that older commits wrote (`tests/homes`), in a table of DynamoDB: read, and written in today's form
with the next change.
"""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.runs.breaker import Watch
from prime_train.runs.change import change
from prime_train.runs.decision import Drain
from prime_train.runs.run import Change, DrainReason, Run, RunState
from prime_train.runs.stored_forms import FORM
from prime_train.runs.wire import Outcome
from tests import builders as b
from tests.fakes import dynamo
from tests.fakes.s3_servers import S3Server
from tests.homes import COMMITS, OldHome


def old_texts(commit: str, folder: Path) -> Mapping[str, str]:
    """Return the JSON that the commit wrote: of the run, its last heartbeat, an event of its history and the
    watchers' state.
    """
    OldHome.of(commit).put(folder / "home")
    with closing(sqlite3.connect(folder / "home" / "control.sqlite")) as sql:
        tables = {name for (name,) in sql.execute("SELECT name FROM sqlite_master")}
        history = ("history_events", "event") if "history_events" in tables else ("happenings", "happening")
        columns = {
            "run": ("runs", "run"),
            "heartbeat": ("leases", "heartbeat"),
            "happened": history,
            "watch": ("watch", "watch"),
        }
        return {
            name: sql.execute(f"SELECT {column} FROM {table} LIMIT 1").fetchone()[0]
            for name, (table, column) in columns.items()
        }


@pytest.mark.parametrize("commit", COMMITS)
def test_a_run_that_an_old_version_left_in_a_table_goes_on(
    commit: str, ministack: S3Server, tmp_path: Path
) -> None:
    texts = old_texts(commit, tmp_path)
    run_id = json.loads(texts["run"])["run_id"]
    with dynamo.store(ministack) as store:
        assert store.create(b.run(run_id=run_id, version=1))
        trains: Run = b.run(RunState.TRAINING, run_id=run_id, version=2, next_check_s=b.T0_S)
        lease = b.lease(trains, seq=0, heartbeat=None, heartbeat_s=None)
        assert store.save(
            Change(trains, lease, lease_version=0, events=(b.history_event("one", run_id=run_id),))
        )
        assert store.heartbeat(b.heartbeat(1, run=run_id), b.T0_S).outcome is Outcome.OK
        assert store.save_watch(Watch(version=1), version=0)
        client = dynamo.client_of(ministack)
        for item in client.scan(TableName=store.table_name, ConsistentRead=True)["Items"]:
            old = {
                name: {"L": [{"S": text}]} if name == "happened" else {"S": text}
                for name, text in texts.items()
                if name in item
            }
            client.put_item(TableName=store.table_name, Item=item | old)
        assert store.unreadable() == []
        record = store.load(run_id)
        assert record is not None
        assert (record.run.state, record.run.spec.checkpoints.sentinel) == (RunState.TRAINING, "COMPLETE")
        assert store.watch().last_sweep_s is not None
        assert [event.kind for event in store.history(run_id)] == ["launching"]
        drained = change(record.run, record.lease, Drain(DrainReason.USER, "asked"), b.T0_S + 5)
        assert store.save(replace(drained, alerts=()))
        items = client.scan(TableName=store.table_name, ConsistentRead=True)["Items"]
        (text,) = (item["run"]["S"] for item in items if "run" in item)
        assert json.loads(text)["form"] == FORM
        assert "desired" in text
