"""Calls that anybody may make: they make nobody known, and hold up nobody else."""

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

from prime_train.adapters.store_memory import MemoryStore
from prime_train.control_plane.server.body import Message, Scope
from prime_train.control_plane.server.request_handler import SIGNED, UNSIGNED_WAITING_MAX, RequestHandler
from prime_train.control_plane.webhook import Response, WebhookContext
from prime_train.core.access.launch_key import LAUNCH_KEY_PATH, LaunchKey
from prime_train.core.access.signing import SIGNATURE_HEADER, TIMESTAMP_HEADER
from prime_train.core.wire import STORE_PATH, operator_key, sign
from prime_train.ports import PermanentError
from tests.webhook.calls import MASTER, NOW_S, SECRETS, bucket

REPOSITORY = "acme/rl"
Claims = Callable[[str, str], Mapping[str, object]]


def handler(claims: Claims | None) -> RequestHandler:
    store = MemoryStore()
    watch = store.watch()
    rows = {"0123abcd": LaunchKey(REPOSITORY, NOW_S - 1000, is_github=True)}
    assert store.save_watch(replace(watch, version=watch.version + 1, launch_keys=rows), version=watch.version)
    context = WebhookContext(store, (MASTER,), secrets=SECRETS, bucket_url="file:///bucket", bucket=bucket, github_claims=claims)
    return RequestHandler(context, clock=lambda: NOW_S)


async def asked(to: RequestHandler, path: str, body: bytes, known: list[str], *, signed: bool = False) -> Response:
    """Make one call, and add a word to `known` if its connection counts as that of somebody known."""
    proof = sign(operator_key(MASTER), NOW_S, "POST", path, body)
    headers = {TIMESTAMP_HEADER: str(NOW_S), SIGNATURE_HEADER: proof} if signed else {}
    scope: Scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "extensions": {SIGNED: lambda: known.append("known")},
    }

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    response = await to.respond(scope, receive)
    assert response is not None
    return response


TOKEN = json.dumps({"token": "a.b.c"}).encode()


def refused(token: str, audience: str) -> Mapping[str, object]:
    raise PermanentError("the token is not signed by GitHub")


def trusted(token: str, audience: str) -> Mapping[str, object]:
    return {"repository": REPOSITORY, "actor": "ann"}


def test_a_strangers_connection_does_not_count_as_signed() -> None:
    for claims, status, words in ((None, 404, []), (refused, 401, []), (trusted, 200, ["known"])):
        known: list[str] = []
        to = handler(claims)
        assert asyncio.run(asked(to, LAUNCH_KEY_PATH, TOKEN, known)).status == status
        assert known == words
        to.close()


def test_tokens_of_strangers_hold_up_no_signed_call_and_wait_in_a_short_queue() -> None:
    held = threading.Event()

    def waits(token: str, audience: str) -> Mapping[str, object]:
        held.wait()
        return refused(token, audience)

    async def flood() -> tuple[Response, Response, list[Response]]:
        waiting = [asyncio.create_task(asked(to, LAUNCH_KEY_PATH, TOKEN, [])) for _ in range(UNSIGNED_WAITING_MAX)]
        await asyncio.sleep(0)  # all of them are in the queue now
        try:
            one_more = await asked(to, LAUNCH_KEY_PATH, TOKEN, [])
            signed = await asked(to, STORE_PATH + "now_s", b"[]", [], signed=True)
        finally:
            held.set()
        return one_more, signed, await asyncio.gather(*waiting)

    to = handler(waits)
    one_more, signed, answered = asyncio.run(flood())
    assert (one_more.status, signed.status) == (503, 200)
    assert [response.status for response in answered] == [401] * UNSIGNED_WAITING_MAX
    to.close()
