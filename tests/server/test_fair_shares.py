"""One machine, or one launch key, that calls without end leaves the control plane to the others."""

import asyncio
import threading
from typing import Any

from prime_train.adapters.store_memory import MemoryStore
from prime_train.control_plane.server.body import Message, Scope
from prime_train.control_plane.server.request_handler import OF_CALLER_MAX, RequestHandler
from prime_train.control_plane.webhook import Request, WebhookContext
from prime_train.core.wire import PodKeys
from tests.webhook.calls import ATTEMPT, MASTER, NOW_S, SECRETS, ask, bucket, stored


async def answered(to: RequestHandler, request: Request) -> int:
    headers = [(name.encode(), value.encode()) for name, value in request.headers.items()]
    scope: Scope = {"type": "http", "method": request.method, "path": request.path, "headers": headers}

    async def receive() -> Message:
        return {"type": "http.request", "body": request.body, "more_body": False}

    response = await to.respond(scope, receive)
    assert response is not None
    return response.status


def test_a_machine_that_asks_for_keys_without_end_keeps_no_other_from_its_job() -> None:
    store, go_on = MemoryStore(), threading.Event()
    stored(store)

    def slow(*_: Any) -> PodKeys:
        go_on.wait()
        return PodKeys(access_key_id="a", secret_access_key="s", session_token="t", valid_s=60)

    context = WebhookContext(store, (MASTER,), secrets=SECRETS, bucket_url="file:///bucket", bucket=bucket, issue_credentials=slow)
    handler = RequestHandler(context, clock=lambda: NOW_S)

    async def played() -> tuple[list[int], int]:
        many = [asyncio.create_task(answered(handler, ask("keys"))) for _ in range(40)]
        refused = [await one for one in many[OF_CALLER_MAX:]]
        other = await answered(handler, ask("bootstrap", attempt=ATTEMPT - 1))
        go_on.set()
        return refused + [await one for one in many[:OF_CALLER_MAX]], other

    try:
        statuses, other = asyncio.run(played())
    finally:
        go_on.set()
        handler.close()
    assert statuses == [503] * (40 - OF_CALLER_MAX) + [200] * OF_CALLER_MAX
    assert other == 409, "the machine before is told that it was replaced"
