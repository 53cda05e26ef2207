"""Handles an ASGI request from its body to its response; the bare path and FastAPI are both thin wrappers around it."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from prime_train.control_plane.admission import notices
from prime_train.control_plane.admission.authenticate import proven
from prime_train.control_plane.admission.calls import GithubCall
from prime_train.control_plane.admission.responses import unavailable
from prime_train.control_plane.server.body import BodyReader, Overloaded, Receive, Scope
from prime_train.control_plane.server.group_commit import GroupCommit
from prime_train.control_plane.webhook import (
    Call,
    HeartbeatCall,
    Request,
    Response,
    WebhookContext,
    caller_of,
    carry_out,
    overloaded,
    parse,
    refuse,
    too_large,
)
from prime_train.core.access.launch_key import LAUNCH_KEY_HEADER
from prime_train.core.access.signing import SIGNATURE_HEADER, TIMESTAMP_HEADER
from prime_train.ports import ExternalError

SLOW_THREADS = 8
SLOW_WAITING_MAX = 256
OF_CALLER_MAX = SLOW_THREADS // 2
"""Calls of one machine, or with one launch key, that may wait or be carried out at the same time: more than an agent makes, and threads are
left for others."""
UNSIGNED_WAITING_MAX = 8
"""Calls that anybody may make, which wait for their one thread: they hold up no signed ones."""

SIGNED = "prime_train.signed"
"""An extension of the ASGI scope: the function to call once a request has a valid signature."""

_SIGNED_BY = {name.encode(): name for name in (TIMESTAMP_HEADER, SIGNATURE_HEADER, LAUNCH_KEY_HEADER, *notices.HEADERS)}
_CLOSE = (("connection", "close"),)

log = logging.getLogger(__name__)


def nobody() -> None:
    """Do nothing: the default wake-up of a webhook without a watcher."""


@dataclass
class _Lane:
    """Threads for calls of one kind. `waiting`: the number of calls in it now, at most `waiting_max`; `of_callers`: those of each
    machine, and with each launch key."""

    threads: ThreadPoolExecutor
    waiting_max: int
    waiting: int = 0
    of_callers: Counter[str] = field(default_factory=Counter)


class RequestHandler:
    """Reads a request, parses, stores and answers it, and pokes the watcher. Heartbeats are stored in batches, other calls run in a few
    threads. `clock`: replaces the store's."""

    def __init__(self, webhook: WebhookContext, on_wake: Callable[[], None] = nobody, clock: Callable[[], int] | None = None) -> None:
        self._context, self._on_wake, self._clock = webhook, on_wake, clock or webhook.store.now_s
        self._bodies = BodyReader()
        self._heartbeats = GroupCommit(webhook, self._clock)
        self._signed = _Lane(ThreadPoolExecutor(SLOW_THREADS, thread_name_prefix="webhook"), SLOW_WAITING_MAX)
        self._unsigned = _Lane(ThreadPoolExecutor(1, thread_name_prefix="webhook-unsigned"), UNSIGNED_WAITING_MAX)

    async def respond(self, scope: Scope, receive: Receive) -> Response | None:
        """Return the response; None if the client has disconnected."""
        try:
            return await self._answer(scope, receive)
        except ExternalError as error:  # the store does not return its time; its other failures are answered where they occur
            log.warning("a request could not be answered: %s", error)
            return unavailable(error, 0)

    async def _answer(self, scope: Scope, receive: Receive) -> Response | None:
        try:
            body = await self._bodies.read(scope, receive)
        except ConnectionError:
            return None
        except TimeoutError as error:
            return refuse(408, str(error), self._clock(), _CLOSE)
        except Overloaded:
            busy = overloaded(self._clock())
            return busy._replace(headers=busy.headers + _CLOSE)
        if body is None:
            return too_large(self._clock(), scope["path"])
        headers = {_SIGNED_BY[name]: value.decode("latin-1") for name, value in scope["headers"] if name in _SIGNED_BY}
        request = Request(scope["method"], scope["path"], headers, body, self._clock())
        call = parse(self._context, request)
        if isinstance(call, Response):
            return call
        signed = scope.get("extensions", {}).get(SIGNED, nobody)
        if not isinstance(call, GithubCall):  # whose token is verified when it is carried out
            signed()
        response = await (self._heartbeats.submit(call) if isinstance(call, HeartbeatCall) else self._slowly(call))
        if isinstance(call, GithubCall) and response.status == 200:
            signed()
        if response.wakes:
            self._on_wake()
        return proven(self._context, request, response)

    async def _slowly(self, call: Call) -> Response:
        lane = self._unsigned if isinstance(call, GithubCall) else self._signed
        caller = caller_of(call)
        if lane.waiting >= lane.waiting_max or (caller and lane.of_callers[caller] >= OF_CALLER_MAX):
            return overloaded(self._clock())
        lane.waiting += 1
        lane.of_callers[caller] += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(lane.threads, carry_out, self._context, call, self._clock())
        except Exception:
            log.exception("a call failed")
            return refuse(500, "a bug in the control plane; see its log", self._clock())
        finally:
            lane.waiting -= 1
            lane.of_callers[caller] -= 1
            if not lane.of_callers[caller]:
                del lane.of_callers[caller]

    def close(self) -> None:
        """Wait for requests in progress and end the threads."""
        self._heartbeats.close()
        self._signed.threads.shutdown()
        self._unsigned.threads.shutdown()
