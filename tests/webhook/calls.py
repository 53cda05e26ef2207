"""Signed requests for tests, and a table of them with the response that each must get, by every entry.

handle(webhook(store), request)           the application's response, without a server stored(store)
the builders' run trains, its lease is open at attempt 2, last heartbeat number 7 ask("heartbeat",
heartbeat(8))            signed by attempt 2 ask("heartbeat", heartbeat(8), attempt=1) by the attempt before,
which has been fenced
"""

import asyncio
import hashlib
import hmac
import json
from dataclasses import dataclass, replace
from typing import TypeVar

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.types import Message, Scope

from prime_train.checkpoints.manifest import Manifest
from prime_train.runs.run import Change, RunState
from prime_train.runs.signing import MARKET_PATH, OFFERS_PATH, market_key
from prime_train.runs.store import RunRecord, Store
from prime_train.runs.wire import (
    BODY_BYTES_MAX,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    Commit,
    Heartbeat,
    JobExit,
    Nonce,
    Phase,
    attempt_key,
    operator_key,
    sign,
)
from prime_train.spec.causes import Cause
from prime_train.webhook.agent_calls import Call
from prime_train.webhook.app import Host, create_app
from prime_train.webhook.authenticate import admit
from prime_train.webhook.bodies import read
from prime_train.webhook.handling import carry_out
from prime_train.webhook.keyring import Keyring
from prime_train.webhook.requests import Request, RequestTarget, Response
from prime_train.webhook.state import WebhookContext
from tests import builders as b
from tests.reconcile.ports import DictBucket, Faults

MASTER = b"a master key for all these tests"
NEXT_MASTER = b"the one it is replaced by"
NOW_S = b.T0_S + b.ATTEMPT_S + 500
NOTICE_SECRET = "whsec-of-these-tests"
SECRETS = {"HF_TOKEN": "hf-secret-value", "OTHER_TOKEN": "other-secret-value"}
ATTEMPT = 2
M = TypeVar("M", bound=BaseModel)


class Desk(Host):
    """Carries out each call at once, at the time of the request."""

    def __init__(self, webhook: WebhookContext, now_s: int = NOW_S) -> None:
        self._webhook, self._now_s, self.woken = webhook, now_s, False

    def now_s(self) -> int:
        return self._now_s

    def webhook(self) -> WebhookContext:
        return self._webhook

    async def carry_out(self, webhook: WebhookContext, call: Call) -> Response:
        return carry_out(webhook, call, self._now_s)

    def wake(self) -> None:
        self.woken = True


def handle(webhook: WebhookContext, request: Request) -> Response:
    """Return the application's response to the request."""
    desk = Desk(webhook, request.now_s)
    return asyncio.run(answered(create_app(desk), request))._replace(wakes=desk.woken)


def parse(keyring: Keyring, request: Request) -> Call:
    """Return the call in a request. Raises Refused for one that is not admitted, or whose body is not
    valid.
    """
    admitted = admit(keyring, request)
    return read(admitted, request.body) if isinstance(admitted, RequestTarget) else admitted


async def answered(app: FastAPI, request: Request) -> Response:
    """Return the application's response, without the headers of its body's form."""
    sent: list[Message] = []
    scope: Scope = {
        "type": "http",
        "method": request.method,
        "path": request.path,
        "query_string": b"",
        "headers": [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in request.headers.items()
        ],
    }

    async def receive() -> Message:
        return {"type": "http.request", "body": request.body, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start, *bodies = sent
    headers = [(name.decode(), value.decode()) for name, value in start["headers"]]
    return Response(
        start["status"],
        b"".join(message["body"] for message in bodies),
        headers=tuple((name, value) for name, value in headers if not name.startswith("content-")),
    )


def held(**lease: object) -> RunRecord:
    """Return the run in its second attempt, which has sent seven heartbeats and committed step 5."""
    of = b.run(
        RunState.TRAINING, attempt=ATTEMPT, spec=b.spec(secrets=("HF_TOKEN",), health={"heartbeat_s": 11})
    )
    return b.record(of, **({"seq": 7, "committed_step": 5} | lease))


def stored(store: Store, of: RunRecord | None = None) -> RunRecord:
    """Store a run with its lease, by the same calls as a control plane."""
    of = of if of is not None else held()
    assert store.create(replace(of.run, version=of.run.version - 1))
    assert store.save(Change(of.run, replace(of.lease, version=1), lease_version=0))
    there = store.load(of.run.run_id)
    assert there is not None
    return there


def webhook(store: Store, *masters: bytes) -> WebhookContext:
    notice_secrets = (NOTICE_SECRET, "the-one-before")
    return WebhookContext(
        store,
        masters or (MASTER,),
        secrets=SECRETS,
        bucket_url="file:///bucket",
        bucket=bucket,
        notice_secrets=notice_secrets,
    )


def bucket(*committed: Commit) -> DictBucket:
    """Return a bucket with the manifests of these commits, by default of those in the table."""
    made = DictBucket(Faults())
    for one in committed or (commit(5), commit(10), commit(10, attempt=1)):
        made.objects[one.key] = manifest_of(one).model_dump_json().encode()
    return made


def manifest_of(one: Commit) -> Manifest:
    fields = {"run": one.run, "attempt": one.attempt, "step": one.step, "identity": one.identity}
    return Manifest.model_validate(fields | {"created_s": NOW_S, "folder": f"step_{one.step}", "files": ()})


def heartbeat(seq: int, **changes: object) -> Heartbeat:
    return b.heartbeat(seq, **({"attempt": ATTEMPT} | changes))


def commit(step: int, **changes: object) -> Commit:
    return b.commit(step, **({"attempt": ATTEMPT} | changes))


def last_heartbeat(seq: int, **changes: object) -> Heartbeat:
    return heartbeat(seq, phase=Phase.EXITED, exit=JobExit(cause=Cause.FINISHED, code=0), **changes)


def ask(
    verb: str,
    body: BaseModel | bytes = b"",
    *,
    run: str = b.RUN_ID,
    attempt: int = ATTEMPT,
    method: str = "",
    path: str = "",
    signer: tuple[str, int] | None = None,
    master: bytes = MASTER,
    at_s: int = NOW_S,
) -> Request:
    """Return a request as an agent makes it, with the given differences."""
    raw = body if isinstance(body, bytes) else body.model_dump_json().encode()
    path = path or f"/v1/runs/{run}/{attempt}/{verb}"
    method = method or ("GET" if verb == "bootstrap" else "POST")
    signature = sign(attempt_key(master, *(signer or (run, attempt))), at_s, method, path, raw)
    return Request(method, path, {TIMESTAMP_HEADER: str(at_s), SIGNATURE_HEADER: signature}, raw, NOW_S)


def market(
    key: str = "",
    *,
    master: bytes = MASTER,
    method: str = "GET",
    path: str = MARKET_PATH,
    body: bytes = b"",
    at_s: int = NOW_S,
) -> Request:
    """Return a request for the figures of the market. `key`: another one than that for reading them."""
    signature = sign(key or market_key(master), at_s, method, path, body)
    return Request(method, path, {TIMESTAMP_HEADER: str(at_s), SIGNATURE_HEADER: signature}, body, NOW_S)


def canary(nonce: str = "n0nce", *, master: bytes = MASTER) -> Request:
    return ask("canary", Nonce(nonce=nonce), path="/v1/canary", signer=("canary", 1), master=master)


def notice(secret: str = NOTICE_SECRET, *, at_s: int = NOW_S, **fields: object) -> Request:
    """Return a notice of Vast.ai, as it sends them of lost bids."""
    content = {
        "event_id": "7e9a2c4e6f9e4a24a53b77c2d8e3f0aa",
        "user_id": 4711,
        "notif_type": "outbid",
        "subject": "Your Interruptible Instance #20000001 Has Been Outbid",
        "message": "Your instance will be stopped.",
        "data": None,
        "data_truncated": False,
        "timestamp": at_s + 0.25,
    } | fields
    body = json.dumps(content).encode()
    signature = hmac.new(secret.encode(), f"{at_s}.".encode() + body, hashlib.sha256).hexdigest()
    headers = {
        "x-vast-event-id": "7e9a2c4e6f9e4a24a53b77c2d8e3f0aa",
        "x-vast-delivery-attempt": "1",
        "x-vast-timestamp": str(at_s),
        "x-vast-signature-256": f"sha256={signature}",
    }
    return Request("POST", "/v1/notices/vast", headers, body, NOW_S)


def tampered(request: Request, **headers: str) -> Request:
    return request._replace(
        headers=request.headers | {name.replace("_", "-"): value for name, value in headers.items()}
    )


@dataclass(frozen=True)
class Case:
    """A case. `said`: a part of the response. A case that `changes` the store is not a refusal."""

    name: str
    request: Request
    status: int
    message: str
    changes: bool = False


def _spoiled(model: BaseModel, **fields: object) -> bytes:
    """Return the model's JSON with some fields that a model cannot have."""
    return json.dumps(model.model_dump(mode="json") | fields).encode()


CASES = [
    Case("a heartbeat", ask("heartbeat", heartbeat(8)), 200, '"outcome":"ok"', changes=True),
    Case("a heartbeat said before", ask("heartbeat", heartbeat(7)), 200, '"outcome":"repeated"'),
    Case("an older heartbeat that comes late", ask("heartbeat", heartbeat(3)), 200, '"outcome":"repeated"'),
    Case(
        "a heartbeat of the attempt before",
        ask("heartbeat", heartbeat(8, attempt=1), attempt=1),
        409,
        '"outcome":"fenced"',
    ),
    Case(
        "a heartbeat of an attempt that is yet to come",
        ask("heartbeat", heartbeat(8, attempt=3), attempt=3),
        409,
        '"outcome":"fenced"',
    ),
    Case(
        "a heartbeat of a run nobody knows",
        ask("heartbeat", heartbeat(8, run="other"), run="other"),
        409,
        '"outcome":"fenced"',
    ),
    Case("the last heartbeat", ask("exit", last_heartbeat(8)), 200, '"outcome":"ok"', changes=True),
    Case("an exit without an end", ask("exit", heartbeat(8)), 422, "exit: missing"),
    Case(
        "an exit of the attempt before",
        ask("exit", last_heartbeat(8, attempt=1), attempt=1),
        409,
        '"outcome":"fenced"',
    ),
    Case("a commit", ask("commit", commit(10)), 200, '"committed_step":10', changes=True),
    Case("a commit of a step that was", ask("commit", commit(5)), 200, '"outcome":"repeated"'),
    Case(
        "a commit of the attempt before",
        ask("commit", commit(10, attempt=1), attempt=1),
        409,
        '"outcome":"fenced"',
    ),
    Case(
        "a commit of another run's manifest",
        ask("commit", commit(10, key="runs/x/manifests/1-e1.json")),
        422,
        "key:",
    ),
    Case("a commit without its manifest", ask("commit", commit(11)), 422, "the bucket has no object"),
    Case(
        "a commit of a step that no key has", ask("commit", _spoiled(commit(10), step=2**53)), 422, "step: "
    ),
    Case(
        "a heartbeat of a step that no key has",
        ask("heartbeat", _spoiled(heartbeat(8), step=10**12)),
        422,
        "step: ",
    ),
    Case(
        "a heartbeat of ages ago",
        ask("heartbeat", _spoiled(heartbeat(8), step_age_s=2**53)),
        422,
        "step_age_s: ",
    ),
    Case(
        "an exit code of many digits",
        ask("exit", _spoiled(last_heartbeat(8), exit={"cause": "killed", "code": 10**40})),
        422,
        "code: ",
    ),
    Case("a bootstrap", ask("bootstrap"), 200, "hf-secret-value"),
    Case("a bootstrap of the attempt before", ask("bootstrap", attempt=1), 409, '"outcome":"fenced"'),
    Case("a bootstrap of a run nobody knows", ask("bootstrap", run="other"), 409, '"outcome":"fenced"'),
    Case("keys of the attempt before", ask("keys", attempt=1), 409, '"outcome":"fenced"'),
    Case("keys of an attempt that is yet to come", ask("keys", attempt=3), 409, '"outcome":"fenced"'),
    Case("keys of a run nobody knows", ask("keys", run="other"), 409, '"outcome":"fenced"'),
    Case("keys by another run's key", ask("keys", signer=("other", ATTEMPT)), 401, "signature"),
    Case("keys by the key of the attempt before", ask("keys", signer=(b.RUN_ID, 1)), 401, "signature"),
    Case("keys by GET", ask("keys", method="GET"), 405, "needs POST"),
    Case("the canary", canary(), 200, "n0nce"),
    Case("a canary of an attempt's", ask("canary", Nonce(nonce="x"), path="/v1/canary"), 401, "signature"),
    Case("health", Request("GET", "/healthz", {}, b"", NOW_S), 200, f'"now_s": {NOW_S}'),
    Case(
        "a key of the attempt before", ask("heartbeat", heartbeat(8), signer=(b.RUN_ID, 1)), 401, "signature"
    ),
    Case("a key of another run", ask("heartbeat", heartbeat(8), signer=("other", ATTEMPT)), 401, "signature"),
    Case("another master key", ask("heartbeat", heartbeat(8), master=b"guessed"), 401, "signature"),
    Case("no signature", ask("heartbeat", heartbeat(8))._replace(headers={}), 401, SIGNATURE_HEADER),
    Case(
        "a signature without its version",
        tampered(ask("heartbeat", heartbeat(8)), x_pt_signature="0" * 67),
        401,
        SIGNATURE_HEADER,
    ),
    Case(
        "a signature of odd letters",
        tampered(ask("heartbeat", heartbeat(8)), x_pt_signature="v1=" + "\xe9" * 64),
        401,
        SIGNATURE_HEADER,
    ),
    Case(
        "a time in words",
        tampered(ask("heartbeat", heartbeat(8)), x_pt_timestamp="now"),
        401,
        TIMESTAMP_HEADER,
    ),
    Case(
        "a time before all times",
        tampered(ask("heartbeat", heartbeat(8)), x_pt_timestamp="-1"),
        401,
        TIMESTAMP_HEADER,
    ),
    Case(
        "another time than was signed",
        tampered(ask("heartbeat", heartbeat(8)), x_pt_timestamp=str(NOW_S - 1)),
        401,
        "signature",
    ),
    Case("a clock an hour slow", ask("heartbeat", heartbeat(8), at_s=NOW_S - 3600), 401, "off by -3600 s"),
    Case("a clock an hour fast", ask("heartbeat", heartbeat(8), at_s=NOW_S + 3600), 401, "off by 3600 s"),
    Case(
        "another body than was signed",
        ask("heartbeat", heartbeat(8))._replace(body=heartbeat(9).model_dump_json().encode()),
        401,
        "signature",
    ),
    Case(
        "a heartbeat sent to commit",
        ask("heartbeat", heartbeat(8))._replace(path=f"/v1/runs/{b.RUN_ID}/{ATTEMPT}/commit"),
        401,
        "signature",
    ),
    Case("a body over the limit", ask("heartbeat", b" " * (BODY_BYTES_MAX + 1)), 413, "65536 bytes"),
    Case(
        "a large body at the limit",
        ask("heartbeat", heartbeat(8).model_dump_json().encode().ljust(BODY_BYTES_MAX)),
        200,
        '"ok"',
        changes=True,
    ),
    Case("no JSON", ask("heartbeat", b'{"run": '), 422, "body: Invalid JSON"),
    Case("no body", ask("heartbeat", b""), 422, "body: Invalid JSON"),
    Case("a list", ask("heartbeat", b"[1, 2]"), 422, "body:"),
    Case("odd bytes", ask("heartbeat", b"\xff\xfe\x00"), 422, "body: Invalid JSON"),
    Case(
        "an unknown field",
        ask("heartbeat", _spoiled(heartbeat(8), mood="sk-live-12345")),
        422,
        "mood: Extra inputs are not permitted",
    ),
    Case("a step in words", ask("heartbeat", _spoiled(heartbeat(8), step="ten")), 422, "step: "),
    Case(
        "a phase of another world",
        ask("heartbeat", _spoiled(heartbeat(8), phase="dreaming")),
        422,
        "not 'dreaming'",
    ),
    Case("a number that cannot be", ask("heartbeat", _spoiled(heartbeat(8), seq=0)), 422, "seq: "),
    Case(
        "a heartbeat of another run",
        ask("heartbeat", heartbeat(8, run="other")),
        422,
        f"run: 'other' is not the {b.RUN_ID}",
    ),
    Case(
        "a heartbeat of another attempt",
        ask("heartbeat", heartbeat(8, attempt=1)),
        422,
        "attempt: 1 is not the 2",
    ),
    Case("a path nobody has", ask("mood", heartbeat(8)), 404, "nothing at this path"),
    Case(
        "an attempt with a leading zero",
        ask("heartbeat", heartbeat(8), path=f"/v1/runs/{b.RUN_ID}/02/heartbeat"),
        404,
        "nothing at this path",
    ),
    Case(
        "an attempt that is none",
        ask("heartbeat", heartbeat(8), path=f"/v1/runs/{b.RUN_ID}/0/heartbeat"),
        404,
        "nothing at this path",
    ),
    Case(
        "a run that cannot be named",
        ask("heartbeat", heartbeat(8), path="/v1/runs/-x-/2/heartbeat"),
        404,
        "nothing at this path",
    ),
    Case("the canary as a run's", ask("canary", heartbeat(8)), 404, "nothing at this path"),
    Case(
        "a very long path",
        ask("heartbeat", heartbeat(8), path=f"/v1/runs/{'x' * 2000}/2/heartbeat"),
        404,
        "nothing at this path",
    ),
    Case("a heartbeat by GET", ask("heartbeat", method="GET"), 405, "needs POST"),
    Case("a bootstrap by POST", ask("bootstrap", b"{}", method="POST"), 405, "needs GET"),
    Case("the market", market(), 200, '"machines":2'),
    Case("the market by the operator's key", market(operator_key(MASTER)), 401, "signature"),
    Case("the market by an attempt's key", market(attempt_key(MASTER, b.RUN_ID, ATTEMPT)), 401, "signature"),
    Case("the market by the watcher's key", market(attempt_key(MASTER, "canary", 1)), 401, "signature"),
    Case("the market by the master key itself", market(MASTER.hex()), 401, "signature"),
    Case("the market by another master's key", market(master=b"guessed"), 401, "signature"),
    Case("the market without a signature", market()._replace(headers={}), 401, SIGNATURE_HEADER),
    Case("the market an hour ago", market(at_s=NOW_S - 3600), 401, "off by -3600 s"),
    Case("the market with a body that was not signed", market()._replace(body=b"{}"), 401, "signature"),
    Case("the market by POST", market(method="POST"), 405, "needs GET"),
    Case("more than the market", market(path="/v1/market/runs"), 404, "nothing at this path"),
    Case(
        "the store by the market's key", market(method="POST", path="/v1/store/list_runs"), 401, "signature"
    ),
    Case("the policy by the market's key", market(method="POST", path="/v1/store/about"), 401, "signature"),
    Case(
        "offers of a control plane without providers",
        market(method="POST", path=OFFERS_PATH, body=b"[{}]"),
        200,
        "null",
    ),
    Case(
        "offers for what is no hardware",
        market(method="POST", path=OFFERS_PATH, body=b'[{"gpus": 7}]'),
        422,
        "gpus",
    ),
    Case(
        "offers by another master's key",
        market(method="POST", path=OFFERS_PATH, body=b"[{}]", master=b"guessed"),
        401,
        "signature",
    ),
    Case(
        "a bootstrap by the market's key",
        market(path=f"/v1/runs/{b.RUN_ID}/{ATTEMPT}/bootstrap"),
        401,
        "signature",
    ),
    Case(
        "a heartbeat by the market's key",
        market(method="POST", path=f"/v1/runs/{b.RUN_ID}/{ATTEMPT}/heartbeat"),
        401,
        "signature",
    ),
    Case("the canary by the market's key", market(method="POST", path="/v1/canary"), 401, "signature"),
    Case("a notice about no machine of ours", notice(), 200, '"woken": 0'),
    Case("a notice by the secret before", notice("the-one-before"), 200, '"woken": 0'),
    Case("a notice by nobody's secret", notice("guessed"), 401, "signature of the notice is not valid"),
    Case(
        "a notice with another body than was signed",
        notice()._replace(body=b'{"event_id": "x"}'),
        401,
        "signature of the notice",
    ),
    Case(
        "a notice of another time than was signed",
        tampered(notice(), x_vast_timestamp=str(NOW_S - 1)),
        401,
        "signature of the notice",
    ),
    Case("a notice without a signature", notice()._replace(headers={}), 401, "x-vast-signature-256"),
    Case("a notice that is old", notice(at_s=NOW_S - 301), 401, "was signed 301 s ago"),
    Case("a notice of tomorrow", notice(at_s=NOW_S + 86_400), 401, "300 s from now"),
    Case("a notice with another id than its header", notice(event_id="another"), 422, "event_id"),
    Case("a notice of no kind", notice(notif_type=None), 422, "notif_type"),
    Case("a notice by GET", notice()._replace(method="GET"), 405, "notices need POST"),
    Case(
        "a notice by a key of ours",
        ask("heartbeat", heartbeat(8), path="/v1/notices/vast"),
        401,
        "x-vast-signature-256",
    ),
    Case(
        "a notice of another provider",
        notice()._replace(path="/v1/notices/runpod"),
        404,
        "nothing at this path",
    ),
    Case("health by POST", Request("POST", "/healthz", {}, b"", NOW_S), 405, "needs GET"),
]
