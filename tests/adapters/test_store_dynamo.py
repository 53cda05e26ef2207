"""Behaviour that only the DynamoDB store has: the cost of calls, lost responses, concurrent writers, the
conversion of its errors, and opening it.
"""

import functools
import json
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import boto3
import pytest

from prime_train.errors import ExternalError, PermanentError, TemporaryError
from prime_train.runs.record_size import CONFIG_BYTES_MAX
from prime_train.runs.run import Change, Lease, RunState
from prime_train.runs.store import RunRecord, Store
from prime_train.runs.stored_json import dump
from prime_train.runs.wire import Gpus, JobExit, Outcome, Phase, Saves
from prime_train.spec.causes import Cause
from prime_train.stores.dynamo import heartbeats as hot
from prime_train.stores.dynamo.boto_calls import BotoCalls, client, create_table
from prime_train.stores.dynamo.calls import Calls, Unreached
from prime_train.stores.dynamo.opening import open_dynamo
from prime_train.stores.dynamo.schema import EXPIRES, lease_key, packed_key, run_key, unpacked
from prime_train.stores.dynamo.store import DynamoStore
from prime_train.stores.dynamo.table import Table
from tests import builders as b
from tests.builders import RUN_ID, T0_S, alert, commit, heartbeat, history_event, lease, run
from tests.core.stored.test_record_size import WIDE, eventful, of_size
from tests.fakes import dynamo
from tests.fakes.dynamo import RecordedCalls, SmallPages
from tests.fakes.faulty_proxy import FaultyProxy
from tests.fakes.http import ALWAYS, CutRequest, LoseResponse, Response, ScriptedServer
from tests.fakes.s3_servers import S3Server

KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "a-secret-value"}
REGION = "us-east-1"
WRITE_UNIT_BYTES = 1024
THREADS = 8
TURNS = 10


@pytest.fixture
def table(ministack: S3Server) -> Iterator[str]:
    with dynamo.table(ministack) as name:
        yield name


@pytest.fixture
def received(ministack: S3Server) -> RecordedCalls:
    return RecordedCalls(dynamo.calls_of(ministack))


@pytest.fixture
def store(received: RecordedCalls, table: str) -> DynamoStore:
    return DynamoStore(received, table)


def train(store: Store, **changes: Any) -> RunRecord:
    """Store a run that may send heartbeats."""
    new = run(RunState.TRAINING, **changes)
    store.create(replace(new, version=1))
    store.save(
        Change(replace(new, version=2), lease(new, seq=0, heartbeat=None, heartbeat_s=None), lease_version=0)
    )
    return loaded(store, new.run_id)


def loaded(store: Store, run_id: str = RUN_ID) -> RunRecord:
    record = store.load(run_id)
    assert record is not None
    return record


def ended(record: RunRecord) -> Change:
    """Return a run that is over, with nothing left to do."""
    after = replace(record.run, version=record.run.version + 1, state=RunState.STOPPED, next_check_s=None)
    return Change(
        after,
        replace(record.lease, version=record.lease.version + 1, open=False),
        lease_version=record.lease.version,
    )


def next_of(record: RunRecord, **changes: Any) -> Change:
    return Change(replace(record.run, version=record.run.version + 1, **changes))


def items(server: S3Server, table: str, partition: str) -> list[dict[str, Any]]:
    """Return all items in partitions whose name begins with this text."""
    found = map(unpacked, dynamo.client_of(server).scan(TableName=table)["Items"])
    return [item for item in found if item["PK"].startswith(partition)]


# ------------------------------------------------------------------------------------------------------------
# what calls cost


def busy_heartbeat(seq: int, **changes: Any) -> Any:
    """Return a heartbeat of a training run with all fields set."""
    return heartbeat(
        seq,
        step=123_456,
        step_age_s=7,
        step_slow_s=12.345,
        uploaded_step=123_400,
        gpu_util_pct=97.5,
        gpu_mem_mib=71_234.0,
        gpus=Gpus(
            count=8, idle=0, util_low_pct=91.0, util_high_pct=99.0, hottest_c=71, power_w=4321.0, age_s=3
        ),
        disk_free_gib=812.4,
        saves=Saves(
            interval_s=612.5,
            stall_s=4.2,
            durable_age_s=301,
            durable_after_s=45.1,
            upload_s=40.0,
            size_bytes=10**10,
        ),
        loss=1.2345,
        reward=0.5678,
        note="uploads step 123400",
        **changes,
    )


def lease_bytes(server: S3Server, table: str) -> int:
    """Return the size of the only lease item. DynamoDB counts more bytes for a number than it needs."""
    (item,) = items(server, table, "LEASE#")
    return sum(len(name) + len(str(value).encode()) for name, value in item.items())


@pytest.mark.parametrize("news", [False, True])
def test_a_heartbeat_is_one_write_of_one_unit(
    store: DynamoStore, received: RecordedCalls, ministack: S3Server, table: str, news: bool
) -> None:
    train(store, run_id="a-run-with-a-rather-long-name-0123456789", next_check_s=T0_S + 900)
    key = "runs/a-run-with-a-rather-long-name-0123456789/manifests/000000123400-e1.json"
    store.commit(commit(123_400, run="a-run-with-a-rather-long-name-0123456789", key=key), T0_S)
    received.requested.clear()
    wording = busy_heartbeat(1_000_000, run="a-run-with-a-rather-long-name-0123456789", news=news)
    assert store.heartbeat(wording, T0_S + 70).outcome is Outcome.OK
    assert received.operations == ["update_item"]
    assert lease_bytes(ministack, table) < WRITE_UNIT_BYTES


def test_a_lease_is_small_as_every_sweep_reads_them_all(
    store: DynamoStore, ministack: S3Server, table: str
) -> None:
    train(store)
    store.heartbeat(heartbeat(1_000, step=123_456), T0_S + 70)
    assert lease_bytes(ministack, table) < 400


def test_a_repeated_or_fenced_heartbeat_is_distinguished_without_a_read(
    store: DynamoStore, received: RecordedCalls
) -> None:
    train(store)
    store.heartbeat(heartbeat(3), T0_S)
    received.requested.clear()
    verdicts = [
        store.heartbeat(wording, T0_S).outcome
        for wording in (
            heartbeat(3, news=True),
            heartbeat(4, attempt=2),
            heartbeat(1, run="unknown", news=True),
        )
    ]
    assert verdicts == [Outcome.REPEATED, Outcome.FENCED, Outcome.FENCED]
    assert received.operations == ["update_item"] * 3


def test_a_save_that_has_lost_its_race_costs_one_small_read(
    store: DynamoStore, received: RecordedCalls
) -> None:
    before = train(store)
    store.wake(RUN_ID, T0_S)
    received.requested.clear()
    assert not store.save(replace(next_of(before), events=(history_event(),), alerts=(alert(),)))
    assert received.operations == ["get_item"]


def test_a_sweep_reads_nothing_of_runs_that_are_at_rest(
    store: DynamoStore, ministack: S3Server, table: str
) -> None:
    train(store, run_id="trains")
    over = train(store)
    store.heartbeat(
        heartbeat(1, phase=Phase.EXITED, exit=JobExit(cause=Cause.KILLED, log_tail="x" * 8000)), T0_S + 70
    )
    over = loaded(store)
    assert store.save(ended(over))
    assert [item["SK"] for item in items(ministack, table, "LEASE#")] == ["trains"]
    assert (
        store.due(10 * T0_S, 9)
        == [lease_status.run_id for lease_status in store.lease_statuses()]
        == ["trains"]
    )
    at_rest = loaded(store)
    assert at_rest.lease.heartbeat == over.lease.heartbeat
    assert at_rest.run in store.list_runs()
    assert store.heartbeat(heartbeat(2), T0_S + 80).outcome is Outcome.FENCED


def test_a_run_at_rest_that_is_woken_is_all_there_again(store: DynamoStore) -> None:
    train(store)
    store.heartbeat(heartbeat(4), T0_S + 60)
    store.commit(commit(5), T0_S + 60)
    store.save(ended(loaded(store)))
    at_rest = loaded(store)
    store.wake(RUN_ID, T0_S + 100)
    awake = replace(
        at_rest, run=replace(at_rest.run, version=at_rest.run.version + 1, next_check_s=T0_S + 100)
    )
    assert loaded(store) == awake
    assert store.due(T0_S + 100, 9) == [RUN_ID]
    again = Lease(RUN_ID, attempt=2, open=True, version=at_rest.lease.version + 1)
    assert store.save(replace(next_of(awake, attempt=2), lease=again, lease_version=at_rest.lease.version))
    assert store.heartbeat(heartbeat(1, attempt=2), T0_S + 110).outcome is Outcome.OK


def test_a_run_at_rest_is_changed_by_the_first_who_saves_it(store: DynamoStore) -> None:
    train(store)
    store.save(ended(loaded(store)))
    at_rest = loaded(store)
    assert store.save(next_of(at_rest, why="billed"))
    assert not store.save(next_of(at_rest, why="late"))
    assert loaded(store).run.why == "billed"
    assert store.save(next_of(loaded(store), next_check_s=T0_S))
    assert store.due(T0_S, 9) == [RUN_ID]


def test_what_is_old_goes_by_itself(store: DynamoStore, ministack: S3Server, table: str) -> None:
    store.save(replace(next_of(train(store)), events=(history_event(),), alerts=(alert("a"),)))
    reported = dynamo.client_of(ministack).describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    assert reported == {"TimeToLiveStatus": "ENABLED", "AttributeName": EXPIRES}
    mortal = {
        item["PK"].partition("#")[0]: item[EXPIRES] for item in items(ministack, table, "") if EXPIRES in item
    }
    assert mortal.keys() == {"RUN", "TOLD"}
    assert all(at_s > time.time() + 30 * 86_400 for at_s in mortal.values())


def test_what_comes_in_pages_is_read_to_its_end(ministack: S3Server, table: str) -> None:
    store = DynamoStore(SmallPages(dynamo.calls_of(ministack)), table)
    names = [f"r{n:02}" for n in range(20)]
    for name in names:
        store.create(run(run_id=name))
    lines = [history_event(str(n), run_id="r00") for n in range(5)]
    for line in lines:
        store.save(replace(next_of(loaded(store, "r00")), events=(line,), alerts=(alert(line.text),)))
    assert store.history("r00") == lines
    assert [alert.key for alert in store.outbox(4)] == ["0", "1", "2", "3"]
    assert [run.run_id for run in store.list_runs()] == store.due(10 * T0_S, 99) == names


# --------------------------------------------------------------------------------------------------------
# lost answers, other writers


@pytest.fixture
def proxy(ministack: S3Server) -> Iterator[FaultyProxy]:
    with FaultyProxy(ministack.url) as proxy:
        yield proxy


@pytest.fixture
def far(ministack: S3Server, proxy: FaultyProxy, table: str) -> DynamoStore:
    """Return the store as reached through the proxy."""
    return DynamoStore(dynamo.calls_of(ministack.through(proxy.url)), table)


def refused(code: str, *reasons: str, status: int = 400) -> Response:
    """Return the refusal in DynamoDB's format."""
    wording: dict[str, Any] = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "because"}
    if reasons:
        wording["CancellationReasons"] = [
            {"Code": reason, "Message": None if reason == "None" else "because"} for reason in reasons
        ]
    return Response(status, json.dumps(wording).encode())


def test_a_save_whose_answer_is_lost_is_made_once(
    far: DynamoStore, store: DynamoStore, proxy: FaultyProxy
) -> None:
    before = train(store)
    proxy.fail(LoseResponse(), first=2)
    assert far.save(replace(next_of(before, backoffs=7), events=(history_event(),), alerts=(alert(),)))
    assert loaded(store).run == replace(before.run, version=before.run.version + 1, backoffs=7)
    assert (store.history(RUN_ID), store.outbox(9)) == ([history_event()], [alert()])


def test_a_run_whose_creation_is_not_answered_is_created_once(far: DynamoStore, proxy: FaultyProxy) -> None:
    proxy.fail(LoseResponse())
    assert far.create(run())
    assert loaded(far).run == run()


def test_a_heartbeat_whose_answer_is_lost_is_kept_and_wakes_once(
    far: DynamoStore, store: DynamoStore, proxy: FaultyProxy
) -> None:
    before = train(store, next_check_s=T0_S + 900)
    proxy.fail(LoseResponse())
    assert far.heartbeat(heartbeat(1, news=True), T0_S + 70).outcome in (Outcome.OK, Outcome.REPEATED)
    assert loaded(store).lease.heartbeat == heartbeat(1, news=True)
    assert loaded(store).run == replace(before.run, version=before.run.version + 1, next_check_s=T0_S + 70)


WRITES: Mapping[str, Callable[[DynamoStore, RunRecord], object]] = {
    "heartbeat": lambda store, record: store.heartbeat(heartbeat(1), T0_S).outcome,
    "commit": lambda store, record: store.commit(commit(1), T0_S).outcome,
    "wake": lambda store, record: store.wake(RUN_ID, T0_S),
    "mark_sent": lambda store, record: store.mark_sent("a") or None,
}


@pytest.mark.parametrize("write", WRITES)
def test_a_write_that_meets_another_ones_transaction_is_tried_again(
    far: DynamoStore, store: DynamoStore, proxy: FaultyProxy, write: str
) -> None:
    record = train(store)
    proxy.fail(refused("TransactionConflictException"), times=2)
    assert WRITES[write](far, record) in (Outcome.OK, None)
    proxy.fail(refused("TransactionConflictException"), times=ALWAYS)
    with pytest.raises(TemporaryError, match="other processes are writing"):
        WRITES[write](far, record)


def test_a_creation_that_meets_another_transaction_is_tried_again(
    far: DynamoStore, proxy: FaultyProxy
) -> None:
    proxy.fail(refused("TransactionCanceledException", "TransactionConflict", "None"), times=2)
    assert far.create(run())
    assert loaded(far).run == run()


def test_an_alert_that_meets_another_transaction_is_tried_again(far: DynamoStore, proxy: FaultyProxy) -> None:
    proxy.fail(refused("TransactionCanceledException", "TransactionConflict", "None"), times=2)
    far.enqueue_alert(alert())
    assert far.outbox(9) == [alert()]


def test_a_save_that_meets_another_transaction_is_tried_again(
    far: DynamoStore, store: DynamoStore, proxy: FaultyProxy
) -> None:
    before = train(store)
    proxy.fail(refused("TransactionCanceledException", "None", "TransactionConflict"), first=2)
    assert far.save(next_of(before, backoffs=7))
    assert loaded(store).run.backoffs == 7


def test_a_transaction_that_is_cancelled_by_a_throttle_is_a_temporary_error(
    far: DynamoStore, store: DynamoStore, proxy: FaultyProxy
) -> None:
    before = train(store)
    proxy.fail(refused("TransactionCanceledException", "None", "ThrottlingError"), first=2)
    assert far.save(next_of(before))
    before = loaded(store)
    proxy.fail(refused("TransactionCanceledException", "None", "ThrottlingError"), first=2, times=ALWAYS)
    with pytest.raises(TemporaryError, match="too many requests"):
        far.save(next_of(before))
    assert loaded(store) == before


@pytest.mark.parametrize("next_check_s", [T0_S, None])
def test_a_heartbeat_between_the_read_and_the_write_of_a_fence_makes_it_lose(
    received: RecordedCalls, store: DynamoStore, ministack: S3Server, next_check_s: int | None
) -> None:
    other = DynamoStore(dynamo.calls_of(ministack), store.table_name)
    before = train(store)
    received.requested.clear()
    received.before = lambda number, operation: (
        other.heartbeat(heartbeat(number), T0_S) if operation == "transact_write_items" else None
    )
    fence = replace(before.lease, version=before.lease.version + 1, open=False)
    change = next_of(before, next_check_s=next_check_s)
    assert not store.save(replace(change, lease=fence, lease_version=before.lease.version))
    assert loaded(store).lease.open


def test_of_two_saves_of_a_run_at_rest_at_once_one_is_lost(
    received: RecordedCalls, store: DynamoStore, ministack: S3Server
) -> None:
    other = DynamoStore(dynamo.calls_of(ministack), store.table_name)
    train(store)
    store.save(ended(loaded(store)))
    at_rest = loaded(store)
    received.requested.clear()
    received.before = lambda _, operation: (
        operation == "transact_write_items" and other.save(next_of(at_rest, why="first"))
    )
    assert not store.save(next_of(at_rest, why="second", next_check_s=T0_S))
    assert loaded(store).run == replace(at_rest.run, version=at_rest.run.version + 1, why="first")
    assert store.due(T0_S, 9) == []


def test_news_that_come_while_the_run_is_put_off_wake_it_all_the_same(
    received: RecordedCalls, store: DynamoStore, ministack: S3Server
) -> None:
    other = DynamoStore(dynamo.calls_of(ministack), store.table_name)
    before = train(store, next_check_s=T0_S + 50)
    received.requested.clear()
    received.before = lambda number, _: number == 2 and other.save(next_of(before, next_check_s=T0_S + 900))
    assert store.heartbeat(heartbeat(1, news=True), T0_S + 70).outcome is Outcome.OK
    assert store.due(T0_S + 70, 9) == [RUN_ID]
    assert received.operations[:3] == ["update_item"] * 3


def test_a_run_that_is_saved_between_two_reads_of_it_is_read_again(
    received: RecordedCalls, store: DynamoStore, ministack: S3Server
) -> None:
    """The test writes the older half of such a pair itself, because a server on one machine reads both at the
    same moment.
    """
    client, key = dynamo.client_of(ministack), packed_key(run_key(RUN_ID))
    train(store)
    newer = client.get_item(TableName=store.table_name, Key=key)["Item"]
    client.put_item(TableName=store.table_name, Item=newer | {"saved_version": {"N": "1"}})
    received.requested.clear()
    received.before = lambda number, _: (
        client.put_item(TableName=store.table_name, Item=newer) if number == 3 else None
    )
    assert loaded(store).run.version == 2
    assert received.operations == ["batch_get_item"] * 3


def test_wakes_news_and_saves_at_once_are_each_counted(store: DynamoStore, ministack: S3Server) -> None:
    train(store)
    saved: list[bool] = []
    failed: list[BaseException] = []

    def turn(number: int) -> None:
        mine = DynamoStore(dynamo.calls_of(ministack), store.table_name)
        try:
            for n in range(1, TURNS + 1):
                match number % 3:
                    case 0:
                        saved.append(mine.save(next_of(loaded(mine), next_check_s=T0_S + 900)))
                    case 1:
                        mine.wake(RUN_ID, T0_S + n)
                    case _:
                        saved.append(
                            mine.heartbeat(heartbeat(number * 1000 + n, news=True), T0_S + n).outcome
                            is Outcome.OK
                        )
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=turn, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    wakes = TURNS * sum(number % 3 == 1 for number in range(THREADS))
    assert loaded(store).run.version == 2 + wakes + saved.count(True)


def test_an_alert_that_waited_before_there_were_marks_is_read_and_marked(
    ministack: S3Server, table: str, store: DynamoStore
) -> None:
    """The item has the format of that time: the alert's text, and no record of the notifiers that are done
    with it.
    """
    for key, values in (
        ("TOLD#old", {"SK": "TOLD", "place": "00000000000000000001#000#tiny-1"}),
        ("OUT", {"SK": "00000000000000000001#000#tiny-1", "alert": dump(alert("old"))}),
    ):
        item = {name: {"S": value} for name, value in {"PK": key, **values}.items()}
        dynamo.client_of(ministack).put_item(TableName=table, Item=item)
    assert store.outbox(9) == store.outbox(9, lacking="log") == [alert("old")]
    assert store.mark_sent("old", "log", among=("log", "slack"))
    assert (store.outbox(9, lacking="log"), store.outbox(9, lacking="slack")) == ([], [alert("old")])
    assert not store.mark_sent("old", "slack", among=("log", "slack"))
    assert store.outbox(9) == []


def test_what_one_notifier_lacks_is_found_behind_pages_of_what_it_has(
    ministack: S3Server, table: str
) -> None:
    store = DynamoStore(SmallPages(dynamo.calls_of(ministack)), table)
    for number in range(9):
        store.enqueue_alert(alert(str(number)))
        if number < 7:
            assert store.mark_sent(str(number), "log", among=("log", "slack"))
    assert [alert.key for alert in store.outbox(2, lacking="log")] == ["7", "8"]
    assert [alert.key for alert in store.outbox(3, lacking="slack")] == ["0", "1", "2"]


def test_a_mark_whose_answer_is_lost_is_made(
    far: DynamoStore, store: DynamoStore, proxy: FaultyProxy
) -> None:
    store.enqueue_alert(alert("a"))
    proxy.fail(LoseResponse(), first=2)
    assert far.mark_sent("a", "log", among=("log", "slack"))
    assert (store.outbox(9, lacking="log"), store.outbox(9)) == ([], [alert("a")])
    proxy.fail(LoseResponse(), first=3)
    assert not far.mark_sent("a", "slack", among=("log", "slack"))
    assert store.outbox(9) == []


def test_an_alert_that_was_reported_does_not_keep_a_save_from_its_other_alerts(store: DynamoStore) -> None:
    store.save(replace(next_of(train(store)), alerts=(alert("a"), alert("c"))))
    store.mark_sent("c")
    assert store.save(
        replace(
            next_of(loaded(store)),
            alerts=(alert("a", title="again"), alert("b"), alert("c")),
            events=(history_event(),),
        )
    )
    assert store.outbox(9) == [alert("a"), alert("b")]
    assert store.history(RUN_ID) == [history_event()]


# ------------------------------------------------------------------------------------------------------------
# errors


def boto_at(url: str) -> Calls:
    return BotoCalls(client(session(), REGION, url))


@functools.cache
def session() -> Any:
    """Return a session that is cached, because each new one loads the description of DynamoDB again."""
    return boto3.session.Session(KEYS["AWS_ACCESS_KEY_ID"], KEYS["AWS_SECRET_ACCESS_KEY"])


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (refused("ThrottlingException"), TemporaryError, "too many requests"),
        (refused("ProvisionedThroughputExceededException"), TemporaryError, "too many requests"),
        (refused("InternalServerError", status=500), TemporaryError, "DynamoDB failed"),
        (Response(200, b"<html>a proxy's page</html>"), TemporaryError, "DynamoDB failed"),
        (Response(503, b"<html>"), TemporaryError, "DynamoDB failed"),
        (Response(0), TemporaryError, "cannot be reached"),
        (refused("ResourceNotFoundException"), PermanentError, "the table does not exist"),
        (refused("AccessDeniedException"), PermanentError, "these credentials lack permission"),
        (refused("UnrecognizedClientException"), PermanentError, "AWS_ACCESS_KEY_ID"),
        (refused("ExpiredTokenException"), PermanentError, "sign in again"),
        (refused("ValidationException"), PermanentError, "because"),
        (refused("SomethingNew"), PermanentError, "SomethingNew, because"),
    ],
)
def test_a_refusal_says_what_to_do(answer: Response, kind: type[ExternalError], words: str) -> None:
    with (
        ScriptedServer(Response(answer.status, answer.body)) as server,
        pytest.raises(kind, match=f"dynamodb://tab: get_item: .*{words}") as caught,
    ):
        Table(boto_at(server.url), "tab").get(lease_key(RUN_ID))
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in str(caught.value)
    assert len(server.requests) == (3 if kind is TemporaryError else 1)


def test_of_a_refusal_that_repeats_the_request_one_line_is_reported() -> None:
    """DynamoDB does this with a signature that it does not accept."""
    message = (
        "The signature does not match.\n\nThe Canonical String should have "
        "been "
        "'POST\nx-amz-security-token:the-token'"
    )
    body = json.dumps(
        {"__type": "com.amazon.coral.service#InvalidSignatureException", "message": message}
    ).encode()
    with (
        ScriptedServer(Response(400, body)) as server,
        pytest.raises(PermanentError, match=r"machine.s clock.*does not match") as caught,
    ):
        Table(boto_at(server.url), "tab").get(lease_key(RUN_ID))
    assert "the-token" not in "".join(traceback.format_exception(caught.value))


def test_a_server_that_fails_once_is_retried_with_the_same_token() -> None:
    with ScriptedServer(CutRequest(), Response(500, b"{}"), Response(200, b"{}")) as server:
        Table(boto_at(server.url), "tab").transact([], "a-token")
    assert [json.loads(request.body)["ClientRequestToken"] for request in server.requests] == ["a-token"] * 3


def test_keys_that_were_left_out_of_a_batch_are_requested_again() -> None:
    one, two = ({"PK": {"S": "A"}, "SK": {"S": name}} for name in "ab")
    first = {"Responses": {"tab": [one]}, "UnprocessedKeys": {"tab": {"Keys": [two], "ConsistentRead": True}}}
    second: dict[str, Any] = {"Responses": {"tab": [two]}, "UnprocessedKeys": {}}
    with ScriptedServer(
        *(Response(200, json.dumps(answer).encode()) for answer in (first, second))
    ) as server:
        found = Table(boto_at(server.url), "tab").get_all([("A", "a"), ("A", "b")])
    assert found.keys() == {("A", "a"), ("A", "b")}
    assert json.loads(server.requests[1].body)["RequestItems"]["tab"]["Keys"] == [two]


def test_a_server_that_is_not_there_is_a_temporary_error() -> None:
    with ScriptedServer(Response(200, b"{}")) as server:
        url = server.url
    with pytest.raises(TemporaryError, match="cannot be reached"):
        Table(boto_at(url), "tab").get(lease_key(RUN_ID))


def test_a_table_that_does_not_exist_is_named(ministack: S3Server) -> None:
    store = DynamoStore(dynamo.calls_of(ministack), "nowhere")
    for call in (
        store.watch,
        store.list_runs,
        lambda: store.heartbeat(heartbeat(1), T0_S),
        lambda: store.create(run()),
    ):
        with pytest.raises(PermanentError, match=r"dynamodb://nowhere: .*the table does not exist"):
            call()


def test_a_run_that_is_too_large_is_refused_and_nothing_is_changed(store: DynamoStore) -> None:
    before = train(store)
    with pytest.raises(
        PermanentError,
        match=r"the record of run tiny-1 takes 50\d,\d{3} bytes, and an item of DynamoDB leaves 339,968 for "
        r"it",
    ):
        store.save(next_of(before, why="x" * 500_000))
    assert loaded(store) == before


def test_a_run_of_before_configs_had_a_limit_goes_on_with_its_older_attempts_in_its_totals(
    store: DynamoStore,
) -> None:
    spec = b.spec(environment={"LONG": "x" * 300_000})
    before = run(RunState.TRAINING, attempt=40, spec=spec)
    assert store.create(replace(before, attempts=before.attempts[-1:], version=1))
    there = loaded(store)
    long = tuple(replace(one, detail="y" * 2000) for one in before.attempts)
    assert store.save(next_of(there, attempts=long))
    after = loaded(store).run
    assert (after.attempts, after.folded.attempts) == (long[-1:], 39)


def test_a_run_with_the_longest_record_fits_into_an_item_also_at_rest_with_its_last_heartbeat(
    store: DynamoStore,
) -> None:
    longest = eventful(of_size(CONFIG_BYTES_MAX))
    over = replace(longest, state=RunState.FAILED, next_check_s=None, cleanup_s=None, version=1)
    assert store.create(over)
    there = loaded(store)
    last = heartbeat(9, exit=JobExit(cause=Cause.TRAINER_ERROR, log_tail=WIDE * 8000, detail=WIDE * 2000))
    at_rest = replace(there.lease, heartbeat=last, heartbeat_s=T0_S, version=there.lease.version + 1)
    assert store.save(
        replace(next_of(there, next_check_s=None), lease=at_rest, lease_version=there.lease.version)
    )
    assert loaded(store).lease.heartbeat == last


def test_more_alerts_than_a_transaction_takes_are_refused_and_nothing_is_changed(store: DynamoStore) -> None:
    before = train(store)
    with pytest.raises(PermanentError, match="DynamoDB takes 100"):
        store.save(replace(next_of(before), alerts=tuple(alert(str(n)) for n in range(50))))
    assert (loaded(store), store.outbox(99)) == (before, [])


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"run_id": "tiny-1", "spec": {"hunter2": "hunter2"}, "created_s": 1}']
)
def test_a_run_that_cannot_be_read_is_named_without_what_is_in_it(
    store: DynamoStore, ministack: S3Server, text: str
) -> None:
    train(store)
    dynamo.client_of(ministack).update_item(
        TableName=store.table_name,
        Key=packed_key(run_key(RUN_ID)),
        UpdateExpression="SET run = :text",
        ExpressionAttributeValues={":text": {"S": text}},
    )
    with pytest.raises(PermanentError, match=f"run {RUN_ID} cannot be read") as caught:
        store.load(RUN_ID)
    assert "= 'hunter2'" not in str(caught.value)
    assert "input_value" not in str(caught.value)
    assert store.list_runs() == []
    assert store.heartbeat(heartbeat(1), T0_S).outcome is Outcome.OK, "a heartbeat does not need the run"


def test_text_that_is_no_unicode_is_stored_readable(store: DynamoStore) -> None:
    unusual = "caf\udce9"
    store.create(run(why=unusual))
    ordered = replace(Lease(RUN_ID, version=1), order_reason=unusual)
    full = replace(
        next_of(loaded(store), why=unusual),
        lease=ordered,
        lease_version=0,
        events=(history_event(unusual),),
        alerts=(alert(text=unusual),),
    )
    assert store.save(full)
    assert loaded(store).run.why == loaded(store).lease.order_reason == "caf?"
    assert (store.history(RUN_ID)[0].text, store.outbox(9)[0].text) == ("caf?", "caf?")


def test_a_connection_that_the_server_has_left_is_replaced(
    ministack: S3Server, proxy: FaultyProxy, table: str
) -> None:
    calls = boto_at(proxy.url)
    store = DynamoStore(calls, table)
    train(store)
    proxy.fail(LoseResponse())
    assert store.heartbeat(heartbeat(1), T0_S).outcome in (Outcome.OK, Outcome.REPEATED)
    with pytest.raises(Unreached):
        proxy.fail(LoseResponse())
        calls.ask("get_item", {"TableName": table, "Key": packed_key(lease_key(RUN_ID))})


def test_a_heartbeat_is_reported_as_the_wire_has_it(store: DynamoStore, ministack: S3Server) -> None:
    train(store)
    reported = hot.heartbeat(
        Table(dynamo.calls_of(ministack), store.table_name),
        RUN_ID,
        attempt=1,
        seq=1,
        text=heartbeat(1).model_dump_json(),
        news=False,
        now_s=T0_S,
    )
    assert reported == hot.HeartbeatResult("ok", pace_s=loaded(store).run.spec.health.heartbeat_s)
    assert loaded(store).lease.heartbeat == heartbeat(1)


# ------------------------------------------------------------------------------------------------------------
# opening


def test_a_store_is_opened_by_its_url(ministack: S3Server, table: str) -> None:
    store = open_dynamo(f"dynamodb://{table}?region={REGION}&endpoint={ministack.url}", KEYS)
    assert store.create(run())
    by_environment = open_dynamo(
        f"dynamodb://{table}", KEYS | {"AWS_REGION": REGION, "AWS_ENDPOINT_URL_DYNAMODB": ministack.url}
    )
    assert by_environment.list_runs() == [run()]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("dynamodb://", "plain name of a table"),
        ("dynamodb://a b?region=x", "plain name of a table"),
        ("dynamodb://key:secret@prime-train?region=x", "put keys into the environment"),
        ("dynamodb://prime-train/path?region=x", "plain name of a table"),
        ("sqlite://prime-train", "plain name of a table"),
        ("dynamodb://prime-train?regoin=x", "no option regoin; known: region, endpoint"),
        ("dynamodb://prime-train?region", "not a URL such as"),
        ("dynamodb://prime-train?region=x&endpoint=127.0.0.1:8000", "must begin with http"),
        ("dynamodb://prime-train?region=no region", "region"),
        ("dynamodb://[", "not a URL such as"),
    ],
)
def test_an_address_that_is_wrong_says_what_is_right(url: str, words: str) -> None:
    with pytest.raises(PermanentError, match=words) as caught:
        open_dynamo(url, KEYS)
    assert "secret@" not in str(caught.value)


def test_without_a_region_or_keys_it_says_where_they_go(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in (*KEYS, "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(PermanentError, match="AWS_REGION"):
        open_dynamo("dynamodb://prime-train", KEYS)
    with pytest.raises(PermanentError, match="AWS_ACCESS_KEY_ID"):
        open_dynamo(f"dynamodb://prime-train?region={REGION}", {}).watch()
    with pytest.raises(PermanentError, match="nobody"):
        open_dynamo(f"dynamodb://prime-train?region={REGION}", {"AWS_PROFILE": "nobody"})


def test_a_table_is_made_once(ministack: S3Server, table: str) -> None:
    store = DynamoStore(dynamo.calls_of(ministack), table)
    store.create(run())
    create_table(dynamo.client_of(ministack), table)
    assert store.list_runs() == [run()]


def test_a_table_that_cannot_be_made_says_why() -> None:
    answer = b'{"__type": "x#AccessDeniedException", "message": "not you"}'
    with (
        ScriptedServer(Response(400, answer)) as server,
        pytest.raises(PermanentError, match="create_table: these credentials lack permission"),
    ):
        create_table(client(session(), REGION, server.url), "tab")
