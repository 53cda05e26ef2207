"""How `serve` carries out calls: heartbeats in batches, other calls in a few threads."""

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from prime_train.webhook.agent_calls import Call, HeartbeatCall, caller_of
from prime_train.webhook.app import Host
from prime_train.webhook.handling import carry_out
from prime_train.webhook.requests import GithubCall, Response
from prime_train.webhook.responses import overloaded
from prime_train.webhook.server.group_commit import GroupCommit
from prime_train.webhook.state import WebhookContext

SLOW_THREADS = 8
SLOW_WAITING_MAX = 256
OF_CALLER_MAX = SLOW_THREADS // 2
"""Calls of one machine, or with one launch key, that may wait or be carried out at the same time: more than
an agent makes, and threads are left for others.
"""
UNSIGNED_WAITING_MAX = 8
"""Calls that anybody may make, which wait for their one thread: they hold up no signed ones."""


def nobody() -> None:
    """Do nothing: the default wake-up of a webhook without a watcher."""


@dataclass
class _Lane:
    """Threads for calls of one kind. `waiting`: the number of calls in it now, at most `waiting_max`;
    `of_callers`: those of each machine, and with each launch key.
    """

    threads: ThreadPoolExecutor
    waiting_max: int
    waiting: int = 0
    of_callers: Counter[str] = field(default_factory=Counter)


class ServingHost(Host):
    """Stores heartbeats in batches and runs other calls in threads; `on_wake` pokes the watcher. `clock`:
    replaces the store's.
    """

    def __init__(
        self,
        webhook: WebhookContext,
        on_wake: Callable[[], None] = nobody,
        clock: Callable[[], int] | None = None,
    ) -> None:
        self._webhook, self._on_wake, self._clock = webhook, on_wake, clock or webhook.store.now_s
        self._heartbeats = GroupCommit(webhook, self._clock)
        self._signed = _Lane(ThreadPoolExecutor(SLOW_THREADS, thread_name_prefix="webhook"), SLOW_WAITING_MAX)
        self._unsigned = _Lane(
            ThreadPoolExecutor(1, thread_name_prefix="webhook-unsigned"), UNSIGNED_WAITING_MAX
        )

    def now_s(self) -> int:
        return self._clock()

    def webhook(self) -> WebhookContext:
        return self._webhook

    def wake(self) -> None:
        self._on_wake()

    async def carry_out(self, webhook: WebhookContext, call: Call) -> Response:
        if isinstance(call, HeartbeatCall):
            return await self._heartbeats.submit(call)
        lane = self._unsigned if isinstance(call, GithubCall) else self._signed
        caller = caller_of(call)
        if lane.waiting >= lane.waiting_max or (caller and lane.of_callers[caller] >= OF_CALLER_MAX):
            raise overloaded()
        lane.waiting += 1
        lane.of_callers[caller] += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(
                lane.threads, carry_out, webhook, call, self._clock()
            )
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
