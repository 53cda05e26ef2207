"""Alerts through a bot: one thread per run, whose first message shows the run's current state.

An alert is not posted twice, even if a response was lost or another process took over: each message carries the keys of its alerts, and the
channel is read before the first post of a run and after every post with an unknown outcome. Two processes that send the same alert in the
same second are not prevented from posting it twice.
"""

import time
from collections.abc import Callable, Sequence

from prime_train.adapters.notify_slack.blocks import Message, alert_message, digest_message, head_message
from prime_train.adapters.notify_slack.calling import Api
from prime_train.adapters.notify_slack.marks import alerts_mark, head_mark
from prime_train.adapters.notify_slack.pace import Door, NotNow, Pace
from prime_train.adapters.notify_slack.refusals import Gone, Limited
from prime_train.adapters.notify_slack.threads import Thread, Threads
from prime_train.adapters.notify_slack.waiting import Ahead, Told
from prime_train.core.run import Alert, Run, Severity
from prime_train.ports import RunRecord, TemporaryError
from prime_train.reports.alert_card import AlertCard, card_of

POSTS_PER_S, POSTS_BURST = 1.0, 3
EDITS_PER_S, EDITS_BURST = 0.75, 10
"""Slack allows about fifty edits a minute."""


class SlackBot:
    """A `Notifier`. `held` returns the run as it is now. `mention`: whom to mention if a person has to look, in Slack's syntax.

    Raises TemporaryError, with the delay if it is known, if the alert should be sent again later; PermanentError with advice if Slack
    refuses.
    """

    def __init__(
        self, api: Api, held: Callable[[str], RunRecord | None], *, mention: str = "", clock: Callable[[], float] = time.time
    ) -> None:
        self._api, self._held, self._mention, self._clock = api, held, mention, clock
        self._told, self._ahead, self._door = Told(), Ahead(), Door(clock)
        self._threads = Threads(api, self._told, clock)
        self._posts, self._edits = Pace(POSTS_PER_S, POSTS_BURST, clock), Pace(EDITS_PER_S, EDITS_BURST, clock)

    def foresee(self, alerts: Sequence[Alert]) -> None:
        """Receive the alerts that will be sent next, so that many can share one message."""
        self._ahead.set(alerts)

    def shows(self, run_id: str) -> bool:
        return self._threads.may_have(run_id)

    def send(self, alert: Alert, run: Run | None) -> None:
        held = self._held(alert.run_id)
        with self._door.open():
            try:
                if alert.severity is not Severity.QUIET:
                    self._tell(alert, held)
                if held is not None:
                    self._show(held)
            except Gone as error:
                self._threads.forget(alert.run_id)
                raise NotNow(f"the thread of {alert.run_id} is begun anew: {error}") from error

    def _tell(self, alert: Alert, held: RunRecord | None) -> None:
        if alert.key in self._told:
            return
        thread = self._threads.of(alert.run_id, _since_s(alert, held))
        if alert.key in self._told:
            return
        if self._ahead.crowd(self._told):
            self._tell_many()
        # The alert may not have been in the digest, or reading the channel may have shown that it was posted.
        if alert.key not in self._told:
            thread = thread or (self._begin(held) if held is not None else None)
            self._post([alert], alert_message(_card(alert, held, self._now_s()), self._mention), thread)

    def _tell_many(self) -> None:
        """Post a digest to the channel itself, because its alerts belong to several runs."""
        since = {alert.run_id: _since_s(alert, self._held(alert.run_id)) for alert in self._ahead.crowd(self._told)}
        for run_id in sorted(since, key=lambda run_id: since[run_id]):  # oldest first, so that one read of the channel covers all runs
            self._threads.of(run_id, since[run_id])
        crowd = self._ahead.crowd(self._told)
        if crowd:
            cards = [_card(alert, self._held(alert.run_id), self._now_s()) for alert in crowd]
            self._post(crowd, digest_message(cards, self._mention), None)

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
        self._told.add(alert.key for alert in alerts)

    def _begin(self, held: RunRecord) -> Thread:
        self._posts.take()
        message = head_message(held.run, held.lease, self._now_s())
        try:
            ts = self._api.post(message.text, message.blocks, head_mark(held.run.run_id))
        except Limited:
            raise
        except TemporaryError:
            self._threads.forget(held.run.run_id)
            raise
        thread = Thread(ts, message.text)
        self._threads.begun(held.run.run_id, thread)
        return thread

    def _show(self, held: RunRecord) -> None:
        """Update the first message of the run's thread. A run without alerts has no thread."""
        thread = self._threads.of(held.run.run_id, held.run.created_s)
        message = head_message(held.run, held.lease, self._now_s())
        if thread is None or thread.shown == message.text:
            return
        self._edits.take()
        self._api.edit(thread.ts, message.text, message.blocks, head_mark(held.run.run_id))
        thread.shown = message.text

    def _now_s(self) -> int:
        return int(self._clock())


def _card(alert: Alert, held: RunRecord | None, now_s: int) -> AlertCard:
    return card_of(alert, None, now_s) if held is None else card_of(alert, held.run, now_s, lease=held.lease)


def _since_s(alert: Alert, held: RunRecord | None) -> int:
    return held.run.created_s if held is not None else alert.at_s
