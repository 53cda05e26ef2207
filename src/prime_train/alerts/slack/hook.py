"""Alerts through an incoming webhook, one message each, or one message for many.

A webhook can neither read nor edit messages, so there are no threads, and it cannot be checked whether an
unanswered alert was posted. Such an alert counts as sent: if Slack accepts messages but responds too late,
every alert would otherwise be posted again and again.
"""

import logging
import time
from collections.abc import Callable, Sequence

from prime_train.alerts.card import card_of
from prime_train.alerts.slack.api import Hook
from prime_train.alerts.slack.batches import Ahead, SentKeys
from prime_train.alerts.slack.blocks import alert_message, digest_message
from prime_train.alerts.slack.bot import POSTS_BURST, POSTS_PER_S
from prime_train.alerts.slack.error_codes import Unanswered
from prime_train.alerts.slack.rate_limits import FailurePause, Pace
from prime_train.runs.run import Alert, Run, Severity
from prime_train.runs.store import RunRecord

log = logging.getLogger(__name__)


class SlackHook:
    """A `Notifier` with the arguments and the errors of `SlackBot`."""

    def __init__(
        self,
        hook: Hook,
        record: Callable[[str], RunRecord | None],
        *,
        mention: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._hook, self._record_of, self._mention, self._clock = hook, record, mention, clock
        self._sent, self._ahead, self._pause = SentKeys(), Ahead(), FailurePause(clock)
        self._posts = Pace(POSTS_PER_S, POSTS_BURST, clock)

    @property
    def place(self) -> str:
        """Return what tells its channel from others."""
        return self._hook.place

    def announce(self, alerts: Sequence[Alert]) -> None:
        """Receive the alerts that will be sent next, so that many can share one message."""
        self._ahead.set(alerts)

    def send(self, alert: Alert, run: Run | None) -> None:
        if alert.severity is Severity.QUIET or alert.key in self._sent:
            return
        burst = self._ahead.burst(self._sent)
        many = burst if alert in burst else [alert]
        cards = [card_of(each, self._run(each), int(self._clock())) for each in many]
        message = (
            alert_message(cards[0], self._mention)
            if len(cards) == 1
            else digest_message(cards, self._mention)
        )
        try:
            with self._pause.open():
                self._posts.take()
                self._hook.post(message.text, message.blocks)
        except Unanswered as error:
            log.warning(
                "%s; the message counts as sent, because a retry could send it twice: %s",
                error,
                ", ".join(a.key for a in many),
            )
        self._sent.add(each.key for each in many)

    def _run(self, alert: Alert) -> Run | None:
        record = self._record_of(alert.run_id)
        return record.run if record is not None else None
