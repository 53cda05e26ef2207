"""Group commit: heartbeats that arrive during a transaction are stored together by the next one.

A disk that makes one write durable in a millisecond makes two hundred durable in the same millisecond. No
heartbeat waits for others that have not arrived yet: a batch is everything that has arrived when the writer
is free, and later arrivals form the next batch. Each heartbeat is answered after its commit.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from prime_train.errors import ExternalError
from prime_train.webhook.agent_calls import HeartbeatCall
from prime_train.webhook.handling import record
from prime_train.webhook.requests import Response
from prime_train.webhook.responses import Refused, bug, overloaded, unavailable
from prime_train.webhook.state import WebhookContext

BATCH_MAX = 256
WAITING_MAX = 4096

log = logging.getLogger(__name__)


class GroupCommit:
    """The thread that writes heartbeats to the store, and the heartbeats that wait for it. All methods except
    `close` must be called in the event loop's thread.
    """

    def __init__(self, webhook: WebhookContext, clock: Callable[[], int]) -> None:
        self._context, self._clock = webhook, clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="heartbeats")
        self._waiting: list[tuple[HeartbeatCall, asyncio.Future[Response]]] = []
        self._writer: asyncio.Task[None] | None = None

    async def submit(self, call: HeartbeatCall) -> Response:
        """Return the response to a heartbeat once it is durable. Raises Refused if it cannot be stored, at
        once if `WAITING_MAX` wait already.
        """
        if len(self._waiting) >= WAITING_MAX:
            raise overloaded()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Response] = loop.create_future()
        self._waiting.append((call, future))
        if self._writer is None:
            self._writer = loop.create_task(self._write())
        return await future

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        batch: list[tuple[HeartbeatCall, asyncio.Future[Response]]] = []
        try:
            while self._waiting:
                await self._gather()
                batch, self._waiting = self._waiting[:BATCH_MAX], self._waiting[BATCH_MAX:]
                responses = await loop.run_in_executor(
                    self._thread, self._record, [call for call, _ in batch]
                )
                for (_, future), response in zip(batch, responses, strict=True):
                    if future.done():  # the client has disconnected
                        continue
                    if isinstance(response, Refused):
                        future.set_exception(response)
                    else:
                        future.set_result(response)
        finally:
            self._writer = None
            for _, future in batch + self._waiting:
                # only if the writer was cancelled: otherwise all are answered, and none waits
                future.cancel()

    async def _gather(self) -> None:
        """Let the event loop read what has already arrived: a transaction of three costs as much as one of
        sixty.
        """
        before = 0
        while before < len(self._waiting) < BATCH_MAX:
            before = len(self._waiting)
            await asyncio.sleep(0)  # reads the sockets
            await asyncio.sleep(0)  # runs the handlers of what was read

    def _record(self, calls: Sequence[HeartbeatCall]) -> list[Response | Refused]:
        """Store the heartbeats, in the writer thread. An exception caused by one heartbeat must not affect
        the responses to the others.
        """
        try:
            return [*record(self._context, calls, self._clock())]
        except ExternalError as error:
            log.warning("heartbeats could not be stored: %s", error)
            return [unavailable(error) for _ in calls]
        except Exception:
            if len(calls) == 1:
                log.exception("a heartbeat of run %s could not be stored", calls[0].heartbeat.run)
                return [bug()]
        return [self._record([call])[0] for call in calls]

    def close(self) -> None:
        """Wait for the current transaction."""
        self._thread.shutdown()
