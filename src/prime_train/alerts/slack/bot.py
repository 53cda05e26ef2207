"""Alerts through a bot: one thread per run, whose first message shows the run's current state.

An alert is not posted twice, even if a response was lost or another process took over: each message carries
the keys of its alerts, and the channel is read before the first post of a run and after every post with an
unknown outcome. Two processes that send the same alert in the same second are not prevented from posting it
twice.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prime_train.alerts.card import AlertCard, card_of
from prime_train.alerts.slack.api import Api
from prime_train.alerts.slack.batches import Ahead, SentKeys
from prime_train.alerts.slack.blocks import Message, alert_message, digest_message, head_message
from prime_train.alerts.slack.error_codes import Gone, Limited
from prime_train.alerts.slack.message_metadata import alerts_mark, head_mark, keys_in, run_in
from prime_train.alerts.slack.rate_limits import FailurePause, NotNow, Pace
from prime_train.errors import TemporaryError
from prime_train.runs.run import Alert, Run, Severity
from prime_train.runs.store import RunRecord

# The threads of runs in a channel, and the alerts posted there, read from the channel itself so that no
# process has to store them.
#
# Each run is looked up once per process: in the channel's messages since the run was created, then in its
# thread. After a post without a response the run is forgotten, and looked up again. Only messages of this bot
# count.
CLOCKS_DIFFER_S = 3600
"""Allowance in seconds for the difference between Slack's clock and the control plane's."""
RUNS_MAX = 1024
READ_S = 30
"""Seconds for which one read of the channel also serves other runs: Slack allows about fifty reads a
minute.
"""


@dataclass
class Thread:
    """A run's thread. `shown` is the text of its first message, as far as this process knows."""

    ts: str
    shown: str = ""


@dataclass(frozen=True)
class Reading:
    """The result of one read of the channel: the first message of each run's thread, by run, for messages
    since a given second.
    """

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
        """Return the first message of each run's thread; of several the newest, because the channel is read
        newest first.
        """
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


POSTS_PER_S, POSTS_BURST = 1.0, 3
EDITS_PER_S, EDITS_BURST = 0.75, 10
"""Limits on this bot's edits of messages; Slack allows about fifty a minute."""


class SlackBot:
    """A `Notifier`. `record` returns the run as it is now. `mention`: whom to mention if a person has to
    look, in Slack's syntax.

    Raises TemporaryError, with the delay if it is known, if the alert should be sent again later;
    PermanentError with advice if Slack refuses.
    """

    def __init__(
        self,
        api: Api,
        record: Callable[[str], RunRecord | None],
        *,
        mention: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._api, self._record_of, self._mention, self._clock = api, record, mention, clock
        self._sent, self._ahead, self._pause = SentKeys(), Ahead(), FailurePause(clock)
        self._threads = Threads(api, self._sent, clock)
        self._posts, self._edits = (
            Pace(POSTS_PER_S, POSTS_BURST, clock),
            Pace(EDITS_PER_S, EDITS_BURST, clock),
        )

    @property
    def place(self) -> str:
        """Return what tells its channel from others."""
        return self._api.place

    def announce(self, alerts: Sequence[Alert]) -> None:
        """Receive the alerts that will be sent next, so that many can share one message."""
        self._ahead.set(alerts)

    def shows(self, run_id: str) -> bool:
        return self._threads.may_have(run_id)

    def send(self, alert: Alert, run: Run | None) -> None:
        record = self._record_of(alert.run_id)
        with self._pause.open():
            try:
                if alert.severity is not Severity.QUIET:
                    self._notify(alert, record)
                if record is not None:
                    self._show(record)
            except Gone as error:
                self._threads.forget(alert.run_id)
                raise NotNow(f"a new thread is started for {alert.run_id}: {error}") from error

    def _notify(self, alert: Alert, record: RunRecord | None) -> None:
        if alert.key in self._sent:
            return
        thread = self._threads.of(alert.run_id, _since_s(alert, record))
        if alert.key in self._sent:
            return
        if self._ahead.burst(self._sent):
            self._notify_many()
        # The alert may not have been in the digest, or reading the channel may have shown that it was posted.
        if alert.key not in self._sent:
            thread = thread or (self._begin(record) if record is not None else None)
            self._post([alert], alert_message(_card(alert, record, self._now_s()), self._mention), thread)

    def _notify_many(self) -> None:
        """Post a digest to the channel itself, because its alerts belong to several runs."""
        since = {
            alert.run_id: _since_s(alert, self._record_of(alert.run_id))
            for alert in self._ahead.burst(self._sent)
        }
        # oldest first, so that one read of the channel covers all runs
        for run_id in sorted(since, key=lambda run_id: since[run_id]):
            self._threads.of(run_id, since[run_id])
        burst = self._ahead.burst(self._sent)
        if burst:
            cards = [_card(alert, self._record_of(alert.run_id), self._now_s()) for alert in burst]
            self._post(burst, digest_message(cards, self._mention), None)

    def _post(self, alerts: Sequence[Alert], message: Message, thread: Thread | None) -> None:
        self._posts.take()
        try:
            self._api.post(
                message.text, message.blocks, alerts_mark(alerts), thread=thread.ts if thread else None
            )
        except Limited:
            raise
        except TemporaryError:
            for alert in alerts:
                self._threads.forget(alert.run_id)
            raise
        self._sent.add(alert.key for alert in alerts)

    def _begin(self, record: RunRecord) -> Thread:
        self._posts.take()
        message = head_message(record.run, record.lease, self._now_s())
        try:
            ts = self._api.post(message.text, message.blocks, head_mark(record.run.run_id))
        except Limited:
            raise
        except TemporaryError:
            self._threads.forget(record.run.run_id)
            raise
        thread = Thread(ts, message.text)
        self._threads.begun(record.run.run_id, thread)
        return thread

    def _show(self, record: RunRecord) -> None:
        """Update the first message of the run's thread. A run without alerts has no thread."""
        thread = self._threads.of(record.run.run_id, record.run.created_s)
        message = head_message(record.run, record.lease, self._now_s())
        if thread is None or thread.shown == message.text:
            return
        self._edits.take()
        self._api.edit(thread.ts, message.text, message.blocks, head_mark(record.run.run_id))
        thread.shown = message.text

    def _now_s(self) -> int:
        return int(self._clock())


def _card(alert: Alert, record: RunRecord | None, now_s: int) -> AlertCard:
    return (
        card_of(alert, None, now_s)
        if record is None
        else card_of(alert, record.run, now_s, lease=record.lease)
    )


def _since_s(alert: Alert, record: RunRecord | None) -> int:
    return record.run.created_s if record is not None else alert.at_s
