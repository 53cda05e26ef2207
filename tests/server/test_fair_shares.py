"""One machine, or one launch key, that calls without end leaves the control plane to the others."""

import asyncio
import threading
from typing import Any

from fastapi import FastAPI

from prime_train.runs.wire import PodKeys
from prime_train.stores.memory import MemoryStore
from prime_train.webhook.app import create_app
from prime_train.webhook.requests import Request
from prime_train.webhook.server.host import OF_CALLER_MAX, ServingHost
from prime_train.webhook.state import WebhookContext
from tests.webhook.calls import ATTEMPT, MASTER, NOW_S, SECRETS, answered, ask, bucket, stored


async def status_of(app: FastAPI, request: Request) -> int:
    return (await answered(app, request)).status


def test_a_machine_that_asks_for_keys_without_end_keeps_no_other_from_its_job() -> None:
    store, go_on = MemoryStore(), threading.Event()
    stored(store)

    def slow(*_: Any) -> PodKeys:
        go_on.wait()
        return PodKeys(access_key_id="a", secret_access_key="s", session_token="t", valid_s=60)

    context = WebhookContext(
        store, (MASTER,), secrets=SECRETS, bucket_url="file:///bucket", bucket=bucket, issue_credentials=slow
    )
    host = ServingHost(context, clock=lambda: NOW_S)
    app = create_app(host)

    async def played() -> tuple[list[int], int]:
        many = [asyncio.create_task(status_of(app, ask("keys"))) for _ in range(40)]
        refused = [await one for one in many[OF_CALLER_MAX:]]
        other = await status_of(app, ask("bootstrap", attempt=ATTEMPT - 1))
        go_on.set()
        return refused + [await one for one in many[:OF_CALLER_MAX]], other

    try:
        statuses, other = asyncio.run(played())
    finally:
        go_on.set()
        host.close()
    assert statuses == [503] * (40 - OF_CALLER_MAX) + [200] * OF_CALLER_MAX
    assert other == 409, "the machine before is told that it was replaced"
