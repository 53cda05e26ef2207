"""The threads of runs in a channel, and the alerts posted there, read from the channel itself so that no process has to store them.

Each run is looked up once per process: in the channel's messages since the run was created, then in its thread. After a post without a
response the run is forgotten, and looked up again. Only messages of this bot count.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from prime_train.alerts.slack.api import Api
from prime_train.alerts.slack.batches import SentKeys
from prime_train.alerts.slack.message_metadata import keys_in, run_in

CLOCKS_DIFFER_S = 3600
"""Allowance in seconds for the difference between Slack's clock and the control plane's."""
RUNS_MAX = 1024
READ_S = 30
"""Seconds for which one read of the channel also serves other runs: Slack allows about fifty reads a minute."""


@dataclass
class Thread:
    """A run's thread. `shown` is the text of its first message, as far as this process knows."""

    ts: str
    shown: str = ""


@dataclass(frozen=True)
class Reading:
    """The result of one read of the channel: the first message of each run's thread, by run, for messages since a given second."""

    since_s: int
    at_s: float
    heads: Mapping[str, str]


class Threads:
    def __init__(self, api: Api, sent: SentKeys, clock: Callable[[], float]) -> None:
        self._api, self._sent, self._clock = api, sent, clock
        self._me: str | None = None
        self._reading: Reading | None = None
        self._known: dict[str, Thread | None] = {}
        """Threads by run; None if the lookup found none."""

    def of(self, run_id: str, since_s: int) -> Thread | None:
        """Return the run's thread, or None if it has none. No message of it is older than `since_s`."""
        if run_id not in self._known:
            self._known[run_id] = self._found(run_id, since_s)
            for oldest in list(self._known)[: max(0, len(self._known) - RUNS_MAX)]:
                del self._known[oldest]
        return self._known[run_id]

    def may_have(self, run_id: str) -> bool:
        """Return whether the run has a thread, or has not been looked up yet; sends no request."""
        return run_id not in self._known or self._known[run_id] is not None

    def begun(self, run_id: str, thread: Thread) -> None:
        self._known[run_id] = thread

    def forget(self, run_id: str) -> None:
        self._known.pop(run_id, None)
        self._reading = None

    def _found(self, run_id: str, since_s: int) -> Thread | None:
        head = self._heads(since_s).get(run_id)
        if head is None:
            return None
        for reply in self._api.replies(head):
            if self._is_mine(reply):
                self._sent.add(keys_in(reply))
        return Thread(head)

    def _heads(self, since_s: int) -> Mapping[str, str]:
        """Return the first message of each run's thread; of several the newest, because the channel is read newest first."""
        last = self._reading
        if last is not None and last.since_s <= since_s and 0 <= self._clock() - last.at_s < READ_S:
            return last.heads
        heads: dict[str, str] = {}
        at_s = self._clock()
        for message in self._api.history(since_s - CLOCKS_DIFFER_S):
            if not self._is_mine(message):
                continue
            self._sent.add(keys_in(message))
            if (run_id := run_in(message)) is not None:
                heads.setdefault(run_id, str(message["ts"]))
        self._reading = Reading(since_s, at_s, heads)
        return heads

    def _is_mine(self, message: Mapping[str, Any]) -> bool:
        if self._me is None:
            self._me = self._api.me()
        return message.get("bot_id") == self._me
