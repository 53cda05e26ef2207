"""Agents that were installed by an older version still train when a newer one takes over their control
plane.
"""

import json

from prime_train.spec.causes import Cause
from prime_train.stores.memory import MemoryStore
from tests import builders as b
from tests.webhook.calls import ask, handle, heartbeat, last_heartbeat, stored, webhook


def test_a_heartbeat_with_the_names_of_old_is_stored_and_answered_with_them() -> None:
    store = MemoryStore()
    stored(store)
    message = json.loads(heartbeat(8, step=20, upload_problem="no answer").model_dump_json())
    message["upload_trouble"] = message.pop("upload_problem")
    response = handle(webhook(store), ask("heartbeat", json.dumps(message).encode()))
    assert (response.status, json.loads(response.body)["verdict"]) == (200, "ok")
    record = store.load(b.RUN_ID)
    assert record is not None
    assert record.lease.heartbeat is not None
    assert (record.lease.heartbeat.step, record.lease.heartbeat.upload_problem) == (20, "no answer")


def test_an_exit_whose_cause_had_another_name_is_understood() -> None:
    store = MemoryStore()
    stored(store)
    message = json.loads(last_heartbeat(8).model_dump_json())
    message["exit"]["cause"] = "drained"
    assert handle(webhook(store), ask("exit", json.dumps(message).encode())).status == 200
    record = store.load(b.RUN_ID)
    assert record is not None
    assert record.lease.heartbeat is not None
    assert record.lease.heartbeat.exit is not None
    assert record.lease.heartbeat.exit.cause is Cause.STOPPED_GRACEFULLY
