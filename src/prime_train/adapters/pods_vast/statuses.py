"""Conversion of Vast.ai's instances to the pods of the port `Pods`.

An instance has three states. Where somebody bids more, or takes the machine on demand, Vast.ai wants it stopped, and its container ends
some seconds later: it is paused. Its disk is kept, and billed, and it starts again by itself when nobody bids more any longer, be it hours
later. The same is seen where the balance is used up. Nothing here ever stops an instance, so that one that is wanted stopped has ended.
"""

import re

from prime_train.adapters.pods_vast.models import Rented
from prime_train.adapters.rental_api.parsing import believable_usd
from prime_train.core.verdict import Pod, PodStatus

STOPPED = frozenset({"stopped", "exited", "frozen", "unloaded"})
STATUSES = {
    "": PodStatus.PENDING,
    "created": PodStatus.PENDING,
    "loading": PodStatus.PENDING,
    "running": PodStatus.ACTIVE,
    "stopped": PodStatus.BROKEN,
    "exited": PodStatus.BROKEN,
}
"""The status of the port `Pods` for each actual status; any other one becomes UNKNOWN. So do `unknown` and `offline`, which mean that the
host has not reported, and not that the machine has ended: heartbeats decide."""
SECOND_MAX = 10**11

_FAILED_START = re.compile(r"OCI runtime create failed|Error response from daemon|failed to (?:pull|inject)", re.IGNORECASE)


def pod_of(rented: Rented) -> Pod:
    return Pod(rented.pod_id, rented.label or "", _status(rented), _second(rented.start_date), believable_usd(rented.dph_total))


def is_paused(rented: Rented) -> bool:
    """Return whether the instance is wanted stopped, and is so by a second of its states, so that one wrong field does not end it."""
    others = (rented.cur_state, rented.next_state, rented.actual_status)
    return _plain(rented.intended_status) == "stopped" and any(_plain(state) in STOPPED for state in others)


def condition(rented: Rented) -> str:
    """Return Vast.ai's own words for the instance's states."""
    return f"{rented.actual_status or 'no status'}, wanted {rented.intended_status or 'in no state'}: {rented.status_msg or 'no message'}"


def _status(rented: Rented) -> PodStatus:
    if is_paused(rented):
        return PodStatus.BROKEN
    status = STATUSES.get(_plain(rented.actual_status), PodStatus.UNKNOWN)
    if status is PodStatus.PENDING and _FAILED_START.search(rented.status_msg or ""):
        return PodStatus.BROKEN
    return status


def _plain(text: str | None) -> str:
    return (text or "").strip().lower()


def _second(figure: float | None) -> int:
    return int(figure) if figure is not None and 0 < figure < SECOND_MAX else 0
