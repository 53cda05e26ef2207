"""Looks for a better machine for a run that trains."""

from collections.abc import Mapping

from prime_train.errors import ExternalError
from prime_train.runs import decide as d
from prime_train.runs.decision import Move
from prime_train.runs.funds import Funds
from prime_train.runs.store import RunRecord
from prime_train.watch.context import Context

LOOK_EVERY_S = 900
"""Seconds between two looks for one run: each asks the providers for their offers."""


def look_for_move(
    context: Context, record: RunRecord, wallets: Mapping[str, Funds], now_s: int
) -> Move | None:
    """Return the best machine to move to; None if there is none, if it is too early, or if this process
    looked a short time ago.
    """
    run = record.run
    last_s = context.looked.get(run.run_id)
    if not d.may_move(run, record.lease, now_s) or (
        last_s is not None and 0 <= now_s - last_s < LOOK_EVERY_S
    ):
        return None
    context.looked[run.run_id] = now_s
    try:
        offers = d.affordable(run, context.pods.offers(run.spec.hardware), wallets)
    except ExternalError as error:
        context.watched(run.run_id, "OffersUnread", f"{error}; the run stays where it is")
        return None
    market = context.seen.market(context.store, run, now_s, context.watched)
    return d.best_move(run, record.lease, offers, market, now_s)
