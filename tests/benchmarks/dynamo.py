"""DynamoDB: the cost of the store's calls in units and dollars, and the CPU time of a heartbeat in this
process.
"""

import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import boto3
from rich.console import Console
from rich.table import Table

from prime_train.runs.run import Change, Run, RunState
from prime_train.stores.dynamo import heartbeats as hot
from prime_train.stores.dynamo.boto_calls import BotoCalls, client
from prime_train.stores.dynamo.calls import Calls
from prime_train.stores.dynamo.store import DynamoStore
from prime_train.stores.dynamo.table import Table as DynamoTable
from tests import builders
from tests.fakes import dynamo, s3_servers
from tests.fakes.s3_servers import S3Server

# us-east-1, on demand.
USD_PER_WRITE, USD_PER_READ = 0.625e-6, 0.125e-6
HEARTBEAT_S, MONTH_S = 30, 30 * 86_400
SWEEPS_A_MINUTE = 4
TO_BEAT_US = 827
"""A published measurement of a call, for comparison."""
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}

MASTER = "5e" * 32

# Answers as fast as it can: with a secret where that is asked for, else with the whole lease, as DynamoDB
# says it of a heartbeat.
STUB = """
import asyncio, json, sys
from email.utils import formatdate
HEARTBEAT = json.dumps(
    {"run": "bench-0000", "attempt": 1, "seq": 7, "phase": "train", "step": 123456, "note": "n" * 200, "sick_detail": "d" * 99}
)
TEXTS = {
    "PK": "LEASE#1", "SK": "bench-0000", "heartbeat": HEARTBEAT, "asked": "none", "asked_why": "",
    "committed_key": "runs/x/manifests/1-e1.json",
}
NUMBERS = (
    "attempt", "lease_version", "seq", "heartbeat_s", "committed_step", "run_version", "saved_version", "overdue_s", "pace_s"
)
LEASE = {name: {"S": text} for name, text in TEXTS.items()} | {name: {"N": "30"} for name in NUMBERS} | {"is_open": {"BOOL": True}}
DATED = b"HTTP/1.1 200 OK\\r\\ncontent-type: application/x-amz-json-1.0\\r\\ndate: %s\\r\\ncontent-length: %d\\r\\n\\r\\n"
def answer(content):
    body = json.dumps(content, separators=(",", ":")).encode()
    return DATED % (formatdate(usegmt=True).encode(), len(body)) + body
SECRETS = {"SecretString": json.dumps({"PRIME_TRAIN_MASTER_KEY": sys.argv[1]})}
async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            length = next(line for line in head.lower().split(b"\\r\\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.partition(b":")[2]))
            writer.write(answer(SECRETS if b"GetSecretValue" in head else {"Attributes": LEASE}))
    except asyncio.IncompleteReadError:
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


@dataclass
class Metered:
    """Calls, with the units that Amazon bills for them: by the size of each item, for consistent reads, and
    double in a transaction.
    """

    calls: Calls
    requested: int = 0
    writes: int = 0
    reads: int = 0

    def ask(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        answer = self.calls.ask(
            operation, {**request, "ReturnValues": "ALL_NEW"} if operation == "update_item" else request
        )
        self.requested += 1
        match operation:
            case "update_item":
                self.writes += units(answer["Attributes"], 1024)
            case "put_item":
                self.writes += units(request["Item"], 1024)
            case "transact_write_items":
                self.writes += sum(2 * units(_written(action), 1024) for action in request["TransactItems"])
            case "get_item":
                self.reads += units(answer.get("Item", {}), 4096)
            case "batch_get_item":
                self.reads += sum(
                    units(item, 4096) for items in answer["Responses"].values() for item in items
                )
            case "query":
                # Billed is what was read, before any of it is left out.
                complete = {
                    name: value
                    for name, value in request.items()
                    if name not in ("FilterExpression", "ProjectionExpression")
                }
                complete["ExpressionAttributeValues"] = {
                    ":partition": request["ExpressionAttributeValues"][":partition"]
                }
                self.reads += max(
                    1, math.ceil(sum(map(size, self.calls.ask(operation, complete)["Items"])) / 4096)
                )
        return answer

    def cost(self, do: Callable[[], object]) -> tuple[int, int, int]:
        self.requested = self.writes = self.reads = 0
        do()
        return self.requested, self.writes, self.reads


def _written(action: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an estimate of the written item: an update names about as much as the item contains."""
    (request,) = action.values()
    return request.get("Item") or request["Key"] | request.get("ExpressionAttributeValues", {})  # type: ignore[no-any-return]


def units(item: Mapping[str, Any], of_bytes: int) -> int:
    return max(1, math.ceil(size(item) / of_bytes))


def size(item: Mapping[str, Any]) -> int:
    """Return the size of an item in bytes as Amazon counts it; numbers take half a byte per digit, and one
    more.
    """
    return sum(len(name.encode()) + _value_size(typed) for name, typed in item.items())


def _value_size(typed: Mapping[str, Any]) -> int:
    ((kind, value),) = typed.items()
    match kind:
        case "S":
            return len(value.encode())
        case "N":
            return len(value) // 2 + 2
        case "L":
            return 3 + sum(1 + _value_size(one) for one in value)
        case _:
            return 1


def train(store: DynamoStore, of: Run) -> None:
    store.create(replace(of, version=1))
    store.save(
        Change(
            replace(of, version=2),
            builders.lease(of, seq=0, heartbeat=None, heartbeat_s=None),
            lease_version=0,
        )
    )


def saved(store: DynamoStore, **changes: Any) -> bool:
    record = store.load(builders.RUN_ID)
    assert record is not None
    after = replace(record.run, version=record.run.version + 1, **changes)
    return store.save(
        Change(after, events=(builders.history_event(),), alerts=(builders.alert(str(after.version)),))
    )


def costs(server: S3Server, name: str, runs: int) -> Table:
    """Yield a row of the table for each call."""
    metered = Metered(dynamo.calls_of(server))
    store = DynamoStore(metered, name)
    for number in range(runs - 1):
        train(store, builders.run(RunState.TRAINING, run_id=f"r-{number:06}"))
        store.heartbeat(builders.heartbeat(1, run=f"r-{number:06}"), builders.T0_S)
    train(store, builders.run(RunState.TRAINING))
    calls: dict[str, Callable[[], object]] = {
        "a heartbeat": lambda: store.heartbeat(builders.heartbeat(1), builders.T0_S),
        "a heartbeat with news": lambda: store.heartbeat(builders.heartbeat(2, news=True), builders.T0_S),
        "a commit": lambda: store.commit(builders.commit(5), builders.T0_S),
        "load": lambda: store.load(builders.RUN_ID),
        "load, save, a line, an alert": lambda: saved(store),
        "due": lambda: store.due(0, 1),
        "life signs": store.lease_statuses,
        "outbox": lambda: store.outbox(200),
        "list_runs": store.list_runs,
    }
    table = Table(
        "call",
        "requests",
        "write units",
        "read units",
        "$ a million",
        title=f"{runs} runs that train",
        padding=(0, 0),
    )
    for what, do in calls.items():
        requested, writes, reads = metered.cost(do)
        table.add_row(
            what,
            str(requested),
            str(writes),
            str(reads),
            f"{1e6 * (writes * USD_PER_WRITE + reads * USD_PER_READ):.2f}",
        )
    return table


def months(bytes_a_run: int) -> Table:
    """Return the cost of a month: heartbeats of one unit each, and in each sweep two reads of the shards, the
    outbox and the watchers' state.
    """
    table = Table("runs", "heartbeats $", "sweeps $", "a month $", title="what it comes to", padding=(0, 0))
    for runs in (10, 1_000, 100_000):
        heartbeats = runs * MONTH_S / HEARTBEAT_S * USD_PER_WRITE
        shards = max(4, math.ceil(runs * bytes_a_run / 4096))
        sweeps = MONTH_S / 60 * SWEEPS_A_MINUTE * ((2 * shards + 2) * USD_PER_READ + USD_PER_WRITE)
        table.add_row(f"{runs:,}", f"{heartbeats:,.2f}", f"{sweeps:,.2f}", f"{heartbeats + sweeps:,.2f}")
    return table


@contextmanager
def stub() -> Iterator[str]:
    with subprocess.Popen([sys.executable, "-c", STUB, MASTER], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


def heartbeat_us(calls: Calls, times: int) -> float:
    """Return the CPU time of one heartbeat in this process, without the creation of its JSON."""
    table, text = DynamoTable(calls, "tab"), builders.heartbeat(1).model_dump_json(exclude_defaults=True)

    def heartbeat(seq: int) -> None:
        hot.heartbeat(table, builders.RUN_ID, attempt=1, seq=seq, text=text, news=False, now_s=builders.T0_S)

    heartbeat(0)
    began = time.process_time()
    for seq in range(times):
        heartbeat(seq)
    return (time.process_time() - began) / times * 1e6


def main(quick: bool = False) -> None:
    console = Console()
    with (
        tempfile.TemporaryDirectory() as home,
        s3_servers.ministack(Path(home)) as server,
        dynamo.table(server) as name,
    ):
        table = costs(server, name, 20 if quick else 200)
        items = dynamo.client_of(server).scan(TableName=name)["Items"]
        leases = [size(item) for item in items if item["PK"]["S"].startswith("LEASE#")]
    console.print(table, months(max(leases)))
    console.print(
        f"A lease takes {max(leases)} bytes; a heartbeat every {HEARTBEAT_S} s, {SWEEPS_A_MINUTE} sweeps a "
        "minute; us-east-1, no free tier."
    )
    with stub() as url:
        session = boto3.session.Session(*KEYS.values())
        calls = BotoCalls(client(session, "us-east-1", url))
        taken = min(heartbeat_us(calls, 200 if quick else 2000) for _ in range(3))
    table = Table(
        "a heartbeat us",
        "to beat",
        "heartbeats a second and core",
        title="processor time of a heartbeat",
        padding=(0, 0),
    )
    table.add_row(f"{taken:.0f}", str(TO_BEAT_US), f"{1e6 / taken:,.0f}")
    console.print(table)


if __name__ == "__main__":
    main()
