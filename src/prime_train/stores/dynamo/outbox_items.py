"""Actions that write the history lines of a save, and put its alerts into the outbox, none of them twice."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from prime_train.runs.run import Alert, Change
from prime_train.runs.stored_json import dump
from prime_train.stores.dynamo.item_writes import Action
from prime_train.stores.dynamo.schema import EXPIRES, OUTBOX, Value, history_key, sent_key
from prime_train.stores.dynamo.table import Write, putting

DAY_S = 86_400
HISTORY_KEPT_S = 400 * DAY_S
KEY_KEPT_S = 90 * DAY_S
"""Seconds for which an alert's key is kept, so that the same alert is not sent again."""
_ACTIONS = 2


@dataclass(frozen=True)
class OutboxItem:
    """An alert to be put into the outbox. `place` is its sort key there, made from the saving process's
    clock.
    """

    alert: Alert
    place: str


def outbox_items(alerts: Sequence[Alert]) -> list[OutboxItem]:
    """Return the alerts with their places; of alerts with the same key only the first."""
    first = {alert.key: alert for alert in reversed(alerts)}
    unique = [alert for alert in alerts if first[alert.key] is alert]
    at_ns = time.time_ns()
    return [OutboxItem(alert, f"{at_ns:020d}#{n:03d}#{alert.run_id}") for n, alert in enumerate(unique)]


def put_actions(alerts: Sequence[OutboxItem]) -> list[Action]:
    """Return the actions that put alerts into the outbox. The whole transaction is refused if one of the keys
    was used before; `without` leaves that alert out.
    """
    until_s = int(time.time()) + KEY_KEPT_S
    return [action for item in alerts for action in _item_actions(item, until_s)]


def without(alerts: Sequence[OutboxItem], refused: frozenset[int]) -> list[OutboxItem]:
    """Return the alerts without those refused. `refused` holds positions among the actions of
    `put_actions`.
    """
    return [item for n, item in enumerate(alerts) if n * _ACTIONS not in refused]


def happened(change: Change) -> list[Action]:
    if not change.events:
        return []
    lines: list[str] = [dump(event) for event in change.events]
    return [
        putting(
            history_key(change.run.run_id, change.run.version),
            {"happened": lines, EXPIRES: int(time.time()) + HISTORY_KEPT_S},
        )
    ]


def _item_actions(item: OutboxItem, until_s: int) -> list[Action]:
    known: dict[str, Value] = {"place": item.place, EXPIRES: until_s}
    return [
        putting(sent_key(item.alert.key), known, Write(condition="attribute_not_exists(PK)")),
        putting((OUTBOX, item.place), {"alert": dump(item.alert)}),
    ]
