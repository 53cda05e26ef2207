"""What a save tells: lines of the run's history, and alerts for the outbox, each key once."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from prime_train.adapters.store_dynamo.places import Action
from prime_train.adapters.store_dynamo.schema import EXPIRES, OUTBOX, Value, history_key, told_key
from prime_train.adapters.store_dynamo.table import Write, putting
from prime_train.adapters.stored import dump
from prime_train.core.run import Alert, Change

DAY_S = 86_400
HISTORY_KEPT_S = 400 * DAY_S
TOLD_KEPT_S = 90 * DAY_S
"""How long an alert's key is known, so that the same alert is not told again."""
_ACTIONS = 2


@dataclass(frozen=True)
class Telling:
    """An alert on its way into the outbox. `place`: its key there, by the clock of who saves it."""

    alert: Alert
    place: str


def tellings(alerts: Sequence[Alert]) -> list[Telling]:
    """Of alerts with the same key the first."""
    first = {alert.key: alert for alert in reversed(alerts)}
    unique = [alert for alert in alerts if first[alert.key] is alert]
    at_ns = time.time_ns()
    return [Telling(alert, f"{at_ns:020d}#{n:03d}#{alert.run_id}") for n, alert in enumerate(unique)]


def told(alerts: Sequence[Telling]) -> list[Action]:
    """RequestRefused as a whole where one of them has been told before; `without` leaves that one out."""
    until_s = int(time.time()) + TOLD_KEPT_S
    return [action for telling in alerts for action in _told(telling, until_s)]


def without(alerts: Sequence[Telling], refused: frozenset[int]) -> list[Telling]:
    """`refused`: places among the actions of `told`."""
    return [telling for n, telling in enumerate(alerts) if n * _ACTIONS not in refused]


def happened(change: Change) -> list[Action]:
    if not change.happenings:
        return []
    lines: list[str] = [dump(happening) for happening in change.happenings]
    return [putting(history_key(change.run.run_id, change.run.version), {"happened": lines, EXPIRES: int(time.time()) + HISTORY_KEPT_S})]


def _told(telling: Telling, until_s: int) -> list[Action]:
    known: dict[str, Value] = {"place": telling.place, EXPIRES: until_s}
    return [
        putting(told_key(telling.alert.key), known, Write(condition="attribute_not_exists(PK)")),
        putting((OUTBOX, telling.place), {"alert": dump(telling.alert)}),
    ]
