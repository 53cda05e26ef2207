"""Calls that anybody may make: they hold up nobody else."""

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

from fastapi import FastAPI

from prime_train.errors import PermanentError
from prime_train.runs.launch_key import LAUNCH_KEY_PATH, LaunchKey
from prime_train.runs.signing import SIGNATURE_HEADER, TIMESTAMP_HEADER
from prime_train.runs.wire import STORE_PATH, operator_key, sign
from prime_train.stores.memory import MemoryStore
from prime_train.webhook.app import create_app
from prime_train.webhook.requests import Request, Response
from prime_train.webhook.server.host import UNSIGNED_WAITING_MAX, ServingHost
from prime_train.webhook.state import WebhookContext
from tests.webhook.calls import MASTER, NOW_S, SECRETS, answered, bucket

REPOSITORY = "acme/rl"
Claims = Callable[[str, str], Mapping[str, object]]


def host_of(claims: Claims) -> ServingHost:
    store = MemoryStore()
    watch = store.watch()
    rows = {"0123abcd": LaunchKey(REPOSITORY, NOW_S - 1000, is_github=True)}
    assert store.save_watch(
        replace(watch, version=watch.version + 1, launch_keys=rows), version=watch.version
    )
    context = WebhookContext(
        store, (MASTER,), secrets=SECRETS, bucket_url="file:///bucket", bucket=bucket, github_claims=claims
    )
    return ServingHost(context, clock=lambda: NOW_S)


async def asked(app: FastAPI, path: str, body: bytes, *, signed: bool = False) -> Response:
    proof = sign(operator_key(MASTER), NOW_S, "POST", path, body)
    headers = {TIMESTAMP_HEADER: str(NOW_S), SIGNATURE_HEADER: proof} if signed else {}
    return await answered(app, Request("POST", path, headers, body, NOW_S))


TOKEN = json.dumps({"token": "a.b.c"}).encode()


def refused(token: str, audience: str) -> Mapping[str, object]:
    raise PermanentError("the token is not signed by GitHub")


def test_tokens_of_strangers_hold_up_no_signed_call_and_wait_in_a_short_queue() -> None:
    held = threading.Event()

    def waits(token: str, audience: str) -> Mapping[str, object]:
        held.wait()
        return refused(token, audience)

    async def flood() -> tuple[Response, Response, list[Response]]:
        waiting = [
            asyncio.create_task(asked(app, LAUNCH_KEY_PATH, TOKEN)) for _ in range(UNSIGNED_WAITING_MAX)
        ]
        # it comes when all of them are in the queue
        one_more = asyncio.create_task(asked(app, LAUNCH_KEY_PATH, TOKEN))
        try:
            await one_more
            signed = await asked(app, STORE_PATH + "now_s", b"[]", signed=True)
        finally:
            held.set()
        return one_more.result(), signed, await asyncio.gather(*waiting)

    host = host_of(waits)
    app = create_app(host)
    one_more, signed, answered = asyncio.run(flood())
    assert (one_more.status, signed.status) == (503, 200)
    assert [response.status for response in answered] == [401] * UNSIGNED_WAITING_MAX
    host.close()
