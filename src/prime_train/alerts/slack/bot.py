"""Alerts through a bot: one thread per run, whose first message shows the run's current state.

An alert is not posted twice, even if a response was lost or another process took over: each message carries the keys of its alerts, and the
channel is read before the first post of a run and after every post with an unknown outcome. Two processes that send the same alert in the
same second are not prevented from posting it twice.
"""

import time
from collections.abc import Callable, Sequence

from prime_train.alerts.card import AlertCard, card_of
from prime_train.alerts.slack.api import Api
from prime_train.alerts.slack.batches import Ahead, SentKeys
from prime_train.alerts.slack.blocks import Message, alert_message, digest_message, head_message
from prime_train.alerts.slack.error_codes import Gone, Limited
from prime_train.alerts.slack.message_metadata import alerts_mark, head_mark
from prime_train.alerts.slack.rate_limits import FailurePause, NotNow, Pace
from prime_train.alerts.slack.threads import Thread, Threads
from prime_train.errors import TemporaryError
from prime_train.runs.run import Alert, Run, Severity
from prime_train.runs.store import RunRecord

POSTS_PER_S, POSTS_BURST = 1.0, 3
EDITS_PER_S, EDITS_BURST = 0.75, 10
"""Limits on this bot's edits of messages; Slack allows about fifty a minute."""


class SlackBot:
    """A `Notifier`. `record` returns the run as it is now. `mention`: whom to mention if a person has to look, in Slack's syntax.

    Raises TemporaryError, with the delay if it is known, if the alert should be sent again later; PermanentError with advice if Slack
    refuses.
    """

    def __init__(
        self, api: Api, record: Callable[[str], RunRecord | None], *, mention: str = "", clock: Callable[[], float] = time.time
    ) -> None:
        self._api, self._record_of, self._mention, self._clock = api, record, mention, clock
        self._sent, self._ahead, self._pause = SentKeys(), Ahead(), FailurePause(clock)
        self._threads = Threads(api, self._sent, clock)
        self._posts, self._edits = Pace(POSTS_PER_S, POSTS_BURST, clock), Pace(EDITS_PER_S, EDITS_BURST, clock)

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
        since = {alert.run_id: _since_s(alert, self._record_of(alert.run_id)) for alert in self._ahead.burst(self._sent)}
        for run_id in sorted(since, key=lambda run_id: since[run_id]):  # oldest first, so that one read of the channel covers all runs
            self._threads.of(run_id, since[run_id])
        burst = self._ahead.burst(self._sent)
        if burst:
            cards = [_card(alert, self._record_of(alert.run_id), self._now_s()) for alert in burst]
            self._post(burst, digest_message(cards, self._mention), None)

    def _post(self, alerts: Sequence[Alert], message: Message, thread: Thread | None) -> None:
        self._posts.take()
        try:
            self._api.post(message.text, message.blocks, alerts_mark(alerts), thread=thread.ts if thread else None)
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
    return card_of(alert, None, now_s) if record is None else card_of(alert, record.run, now_s, lease=record.lease)


def _since_s(alert: Alert, record: RunRecord | None) -> int:
    return record.run.created_s if record is not None else alert.at_s
