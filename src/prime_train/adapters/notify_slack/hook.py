"""Alerts through an incoming webhook, one message each, or one message for many.

A webhook can neither read nor edit, so there are no threads, and nobody can check whether an unanswered alert was posted. It counts as
sent: if Slack accepts messages but responds too late, every alert would otherwise be posted again and again.
"""

import logging
import time
from collections.abc import Callable, Sequence

from prime_train.adapters.notify_slack.blocks import alert_message, digest_message
from prime_train.adapters.notify_slack.bot import POSTS_BURST, POSTS_PER_S
from prime_train.adapters.notify_slack.calling import Hook
from prime_train.adapters.notify_slack.pace import Door, Pace
from prime_train.adapters.notify_slack.refusals import Unanswered
from prime_train.adapters.notify_slack.waiting import Ahead, Told
from prime_train.core.run import Alert, Run, Severity
from prime_train.ports import RunRecord
from prime_train.reports.alert_card import card_of

log = logging.getLogger(__name__)


class SlackHook:
    """A `Notifier` with the arguments and the errors of `SlackBot`."""

    def __init__(
        self, hook: Hook, held: Callable[[str], RunRecord | None], *, mention: str = "", clock: Callable[[], float] = time.time
    ) -> None:
        self._hook, self._held, self._mention, self._clock = hook, held, mention, clock
        self._told, self._ahead, self._door = Told(), Ahead(), Door(clock)
        self._posts = Pace(POSTS_PER_S, POSTS_BURST, clock)

    def foresee(self, alerts: Sequence[Alert]) -> None:
        """Receive the alerts that will be sent next, so that many can share one message."""
        self._ahead.set(alerts)

    def send(self, alert: Alert, run: Run | None) -> None:
        if alert.severity is Severity.QUIET or alert.key in self._told:
            return
        crowd = self._ahead.crowd(self._told)
        many = crowd if alert in crowd else [alert]
        cards = [card_of(each, self._run(each), int(self._clock())) for each in many]
        message = alert_message(cards[0], self._mention) if len(cards) == 1 else digest_message(cards, self._mention)
        try:
            with self._door.open():
                self._posts.take()
                self._hook.post(message.text, message.blocks)
        except Unanswered as error:
            log.warning("%s; what it was to tell counts as told, as it would be told twice: %s", error, ", ".join(a.key for a in many))
        self._told.add(each.key for each in many)

    def _run(self, alert: Alert) -> Run | None:
        held = self._held(alert.run_id)
        return held.run if held is not None else None
