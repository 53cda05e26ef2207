"""The application in front of ministack: it judges requests of roles before ministack answers them.

What it needs to know of ministack, and corrects in it, is in this module: roles and their policies, lent
keys, and under which key a function's process signs. ministack keeps a policy of a role (AWS::IAM::Policy) as
one of the account, under a name that two stacks share; here it belongs to its role. `PATH_RIGHTS` answers
what was used and refused so far.
"""

import hashlib
import json
import os
import re
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

from ministack import app as ministack_app
from ministack.core import lambda_runtime, router
from ministack.services import iam, sts
from ministack.services.cloudformation import provisioners

from tests.fakes.iam import policies, requests
from tests.fakes.iam.ledger import PATH_RIGHTS
from tests.fakes.iam.policies import Right, Wanted
from tests.fakes.iam.refusals import refusal

AWS_OWN = frozenset({"AWSLambdaBasicExecutionRole"})
"""AWS's own policies of functions, which allow nothing but to write logs."""
LENT = re.compile(rb"<AccessKeyId>([^<]+)</AccessKeyId>")

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Gate:
    """The application. `used` and `refused`: what roles did, and what they wanted and were not allowed."""

    def __init__(self, behind: Callable[[Message, Receive, Send], Awaitable[None]]) -> None:
        self._behind = behind
        self._lent_policies: dict[str, str] = {}
        self._lock = threading.Lock()
        self.used: set[tuple[str, Right]] = set()
        self.refused: list[tuple[str, Wanted]] = []

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._behind(scope, receive, send)
        elif scope["path"] == PATH_RIGHTS:
            await _answer(send, 200, "application/json", self._told())
        elif (role := _role_of(key := _key_of(scope))) is None:
            await self._passed(scope, receive, send)
        else:
            await self._judged(scope, receive, send, role, key)

    async def _judged(self, scope: Message, receive: Receive, send: Send, role: str, key: str) -> None:
        sent, again = await _read(scope, receive)
        for wanted in requests.wanted(sent):
            if not self._may(role, key, wanted):
                await self._refuse(send, sent, role, wanted)
                return
        if sent.service == "s3" and sent.method in ("GET", "HEAD") and all(requests.place(sent)):
            missing = requests.seen_as_missing(*requests.place(sent))
            if not self._may(role, key, missing, uses=False):
                send = self._without_missing(send, sent, role, missing)
        await self._lend(scope, again, send, sent)

    async def _passed(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass on a request of the account's own keys, or of nobody."""
        if scope["method"] != "POST" or _service(scope) != "sts":
            await self._behind(scope, receive, send)
            return
        sent, again = await _read(scope, receive)
        await self._lend(scope, again, send, sent)

    async def _lend(self, scope: Message, receive: Receive, send: Send, sent: requests.Sent) -> None:
        """Pass the request on, and note the policy of the keys that it lends, if it does."""
        policy = parse_qs(sent.body.decode()).get("Policy", [""])[0] if sent.service == "sts" else ""

        async def noting(message: Message) -> None:
            found = LENT.search(message.get("body", b"")) if policy else None
            if found is not None:
                self._lent_policies[found[1].decode()] = policy
            await send(message)

        await self._behind(scope, receive, noting)

    def _may(self, role: str, key: str, wanted: Wanted, *, uses: bool = True) -> bool:
        right = policies.granted(_statements(role), wanted)
        lent = self._lent_policies.get(key)
        is_lent = lent is None or policies.granted(policies.parse(lent), wanted) is not None
        is_trusted = wanted.action != "sts:AssumeRole" or _trusts(wanted.resource, role)
        if right is None or not is_lent or not is_trusted:
            return False
        if uses:
            with self._lock:
                self.used.add((role, right))
        return True

    async def _refuse(self, send: Send, sent: requests.Sent, role: str, wanted: Wanted) -> None:
        with self._lock:
            self.refused.append((role, wanted))
        status, kind, body = refusal(
            sent.service, f"arn:aws:sts::{requests.ACCOUNT}:assumed-role/{role}", wanted
        )
        await _answer(send, status, kind, body if sent.method != "HEAD" else b"")

    def _without_missing(self, send: Send, sent: requests.Sent, role: str, missing: Wanted) -> Send:
        is_missing = False

        async def hiding(message: Message) -> None:
            nonlocal is_missing
            if message["type"] == "http.response.start" and message["status"] == 404:
                is_missing = True
                await self._refuse(send, sent, role, missing)
            elif not is_missing:
                await send(message)

        return hiding

    def _told(self) -> bytes:
        with self._lock:
            used = sorted((role, right.action, right.resource) for role, right in self.used)
            refused = [
                (role, wanted.action, wanted.resource, dict(wanted.context)) for role, wanted in self.refused
            ]
        return json.dumps({"used": used, "refused": refused}).encode()


# ------------------------------------------------------------------------------------------------------------
# of a request


async def _read(scope: Message, receive: Receive) -> tuple[requests.Sent, Receive]:
    """Return the request, and what receives it once more."""
    parts, more = list[bytes](), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    body, given = b"".join(parts), False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    headers = _headers(scope)
    query = {name: values[0] for name, values in _query(scope).items()}
    region = router.extract_region(headers, _query(scope))
    return requests.Sent(_service(scope), region, scope["method"], scope["path"], query, headers, body), again


def _headers(scope: Message) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def _query(scope: Message) -> dict[str, list[str]]:
    return parse_qs(scope["query_string"].decode(), keep_blank_values=True)


def _credential(scope: Message) -> list[str]:
    """Return the parts of the credential that signed: key, date, region, service. Empty for a request that
    nobody signed.
    """
    found = re.search(r"Credential=([^,]+)", _headers(scope).get("authorization", ""))
    text = found[1] if found is not None else _query(scope).get("X-Amz-Credential", [""])[0]
    return text.split("/") if text.count("/") >= 4 else []


def _key_of(scope: Message) -> str:
    return next(iter(_credential(scope)), "")


def _service(scope: Message) -> str:
    credential = _credential(scope)
    return credential[3] if credential else ""


async def _answer(send: Send, status: int, kind: str, body: bytes) -> None:
    headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


# ------------------------------------------------------------------------------------------------------------
# of ministack


def _role_of(key: str) -> str | None:
    """Return the name of the role under which the key was lent; None for the account's own keys and for
    nobody.
    """
    arn = sts._sessions.get(key, {}).get("Arn", "")
    return arn.split("/")[1] if ":assumed-role/" in arn else None


def _statements(role: str) -> list[Any]:
    """Return the statements of all policies of a role. A role that nobody has made may do nothing."""
    made = iam._roles.get(role, {"InlinePolicies": {}, "AttachedPolicies": []})
    for attached in made["AttachedPolicies"]:
        assert attached["PolicyName"] in AWS_OWN, f"the policy {attached} is not understood here"
    return [one for document in made["InlinePolicies"].values() for one in policies.parse(document)]


def _trusts(arn: str, caller: str) -> bool:
    """Return whether the role of this ARN trusts the role `caller`."""
    trust = json.loads(
        iam._roles.get(arn.rpartition("/")[2], {"AssumeRolePolicyDocument": '{"Statement": []}'})[
            "AssumeRolePolicyDocument"
        ]
    )
    named = [who for one in trust["Statement"] for who in policies.listed(one["Principal"].get("AWS", []))]
    return f"arn:aws:iam::{requests.ACCOUNT}:role/{caller}" in named


def _spawn_as_role(worker: Any) -> None:
    """Start a function's process with a key of its role."""
    _starting.worker = worker
    try:
        _spawn(worker)
    finally:
        _starting.worker = None


def _key_and_region(config: dict[str, Any]) -> tuple[str, str]:
    """Return the function's region, and before it what ministack takes for its account, and for its process's
    key while that is started.
    """
    account, region = _account_and_region(config)
    if getattr(_starting, "worker", None) is None:
        return account, region
    role, name = str(config.get("Role", "")).rpartition("/")[2], config.get("FunctionName")
    key = f"ASIA{hashlib.sha256(f'{role} {name}'.encode()).hexdigest()[:16].upper()}"
    arn = f"arn:aws:sts::{account}:assumed-role/{role}/{name}"
    sts._sessions[key] = {"Arn": arn, "UserId": f"{key}:{name}", "SecretAccessKey": _SECRET}
    return key, region


def _put_role_policy(logical_id: str, props: dict[str, Any], stack_name: str) -> tuple[str, dict[str, str]]:
    for name in props["Roles"]:
        iam._roles[name]["InlinePolicies"][props["PolicyName"]] = json.dumps(props["PolicyDocument"])
    return f"{stack_name}-{logical_id}", {}


_starting = threading.local()
_spawn = lambda_runtime.Worker._spawn
_account_and_region = lambda_runtime._account_region_from_function_config
_SECRET = os.environ.get("AWS_SECRET_ACCESS_KEY", "test")


def install() -> None:
    """Put the gate in front of ministack in this process."""
    lambda_runtime.Worker._spawn = _spawn_as_role
    lambda_runtime._account_region_from_function_config = _key_and_region
    provisioners._RESOURCE_HANDLERS["AWS::IAM::Policy"] = {
        "create": _put_role_policy,
        "delete": lambda physical_id, props: None,
    }
    ministack_app.app = Gate(ministack_app.app)
