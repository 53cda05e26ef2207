"""The webhook's function, warm: complete events with a heartbeat, from the event to the response, with the
write to DynamoDB (a stub) in between.

CPU time of this process alone. The peers check the same signature, parse the same heartbeat and make the same
write.
"""

import hmac
import time
from collections.abc import Callable, Mapping
from typing import Any

import boto3
from fastapi import FastAPI, Request, Response
from mangum import Mangum
from rich.console import Console
from rich.table import Table

from prime_lambdas.settings import Settings
from prime_lambdas.webhook import Webhook
from prime_train.runs.wire import (
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    Heartbeat,
    Phase,
    Reply,
    attempt_key,
    sign,
)
from prime_train.stores.dynamo.boto_calls import BotoCalls, client
from prime_train.stores.dynamo.calls import Calls
from prime_train.stores.dynamo.store import DynamoStore
from tests import builders
from tests.benchmarks.dynamo import KEYS, MASTER, stub

REGION, RUN = "us-east-1", "bench-0000"
PATH = f"/v1/runs/{RUN}/1/heartbeat"
KEY = attempt_key(bytes.fromhex(MASTER), RUN, 1)
BODY_BYTES = 604
ROUNDS = 5
Event = Mapping[str, Any]
Handler = Callable[[Event], Mapping[str, Any]]


def event(seq: int, now_s: int) -> Event:
    """Return an event as a Function URL makes it."""
    fields = {
        "loss": 1.234567,
        "reward": 0.123456,
        "gpu_util_pct": 97.5,
        "gpu_mem_mib": 71234.0,
        "disk_free_gib": 812.25,
    }
    heartbeat = builders.heartbeat(
        seq,
        run=RUN,
        phase=Phase.TRAIN,
        step=123456,
        step_age_s=3,
        step_slow_s=4.321,
        uploaded_step=123000,
        **fields,
    )
    short = BODY_BYTES - len(heartbeat.model_dump_json())
    body = heartbeat.model_copy(
        update={"note": "n" * 150, "sick_detail": "d" * (short - 150)}
    ).model_dump_json()
    signature = sign(KEY, now_s, "POST", PATH, body.encode())
    headers = {
        "content-type": "application/json",
        "host": "x.on.aws",
        TIMESTAMP_HEADER: str(now_s),
        SIGNATURE_HEADER: signature,
    }
    http = {
        "method": "POST",
        "path": PATH,
        "protocol": "HTTP/1.1",
        "sourceIp": "127.0.0.1",
        "userAgent": "python-requests",
    }
    context = {"http": http, "domainName": "x.on.aws", "stage": "$default"}
    return {
        "version": "2.0",
        "rawPath": PATH,
        "rawQueryString": "",
        "headers": headers,
        "requestContext": context,
        "body": body,
    }


def ours(url: str) -> Handler:
    place = {
        "PRIME_TRAIN_STORE": "dynamodb://tab",
        "PRIME_TRAIN_BUCKET": "s3://b",
        "PRIME_TRAIN_SECRET": "s",
        "AWS_ENDPOINT_URL": url,
    }
    webhook = Webhook(Settings.of({**KEYS, **place, "AWS_REGION": REGION}))
    return lambda event: webhook(event, None)


def framework(calls: Calls) -> Handler:
    """Return a FastAPI app behind Mangum, a common way to write such a function."""
    app, store = FastAPI(openapi_url=None), DynamoStore(calls, "tab")

    @app.post("/v1/runs/{run}/{attempt}/heartbeat")
    async def heartbeat(run: str, attempt: int, request: Request) -> Response:
        body, at_s = await request.body(), int(request.headers[TIMESTAMP_HEADER])
        key = attempt_key(bytes.fromhex(MASTER), run, attempt)
        if not hmac.compare_digest(
            sign(key, at_s, "POST", request.url.path, body), request.headers[SIGNATURE_HEADER]
        ):
            return Response(status_code=401)
        stated = store.heartbeat(Heartbeat.model_validate_json(body), int(time.time()))
        reply = Reply(
            outcome=stated.outcome,
            order=stated.order,
            reason=stated.order_reason,
            committed_step=stated.committed_step,
        )
        return Response(reply.model_dump_json(), media_type="application/json")

    served = Mangum(app, lifespan="off")
    context: Any = None
    return lambda event: dict(served(dict(event), context))


def event_us(handler: Handler, events: list[Event]) -> float:
    """Return the CPU time of one event."""
    assert handler(events[0])["statusCode"] == 200
    began = time.process_time()
    for one in events:
        handler(one)
    return (time.process_time() - began) / len(events) * 1e6


def main(quick: bool = False) -> None:
    now_s = int(time.time())
    events = [event(seq, now_s) for seq in range(1, 201 if quick else 1001)]
    with stub() as url:
        boto = BotoCalls(client(boto3.session.Session(*KEYS.values()), REGION, url))
        handlers = {
            "our handler": ours(url),
            "peer: FastAPI, Mangum, pydantic, boto3": framework(boto),
        }
        taken: dict[str, list[float]] = {name: [] for name in handlers}
        for _ in range(ROUNDS):  # in turns, so that a busy moment of the machine meets all of them
            for name, handler in handlers.items():
                taken[name].append(event_us(handler, events))
    table = Table(
        "a heartbeat's event",
        "CPU us",
        "events a second and core",
        title="least of all rounds",
        padding=(0, 0),
    )
    for name, some in taken.items():
        table.add_row(name, f"{min(some):.0f}", f"{1e6 / min(some):,.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
