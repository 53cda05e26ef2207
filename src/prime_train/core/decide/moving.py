"""Decisions about leaving a machine on which a run trains for one on which the rest of it is expected to cost less."""

from collections.abc import Sequence

from prime_train.core import budget, ledger
from prime_train.core.alert_kinds import AlertKind
from prime_train.core.causes import Cause
from prime_train.core.decide.queued import avoided_offers, closed_providers, wants_on_demand
from prime_train.core.decision import AllClear, Decision, Drain, Notify
from prime_train.core.market.moving import Move, move_to
from prime_train.core.market.of_run import while_training
from prime_train.core.market.quotes import Market
from prime_train.core.market.ranking import rank
from prime_train.core.offers import Offer
from prime_train.core.run import DesiredState, DrainReason, Lease, Run, RunState, Severity
from prime_train.core.spec_choices import Migrate
from prime_train.core.text.formatting import usd
from prime_train.core.verdict import is_saving
from prime_train.core.wire import Heartbeat

TRAINED_S_MIN = 600
"""Seconds that a machine must have trained before the run leaves it: until then its step time is not known well, and what it cost to start
has not been earned back."""
MOVE_EVERY_S = 3600
"""Least seconds between two moves of a run."""
WORK_H_MIN = 0.5
"""Hours of training that must be left for a move."""


def may_move(run: Run, lease: Lease, now_s: int) -> bool:
    """Return whether the run could leave its machine now: it trains, has done so for a while, is not saving, and did not move recently."""
    attempt, heartbeat = run.current_attempt, lease.heartbeat
    if run.state is not RunState.TRAINING or run.desired is not DesiredState.RUN or attempt is None or heartbeat is None:
        return False
    if run.spec.hardware.migrate is Migrate.NEVER or run.spec.trainer.steps is None or attempt.offer.usd_per_hour <= 0:
        return False
    if attempt.first_step_s is None or now_s < attempt.first_step_s + TRAINED_S_MIN:
        return False
    if lease.attempt != attempt.number or is_saving(heartbeat) or heartbeat.preempting:
        return False
    return all(one.cause is not Cause.MOVED or (one.fenced_s or 0) <= now_s - MOVE_EVERY_S for one in run.attempts)


def best_move(run: Run, lease: Lease, offers: Sequence[Offer], market: Market, now_s: int) -> Move | None:
    """Return the best move to one of the offers; None if none can be judged. An offer that failed, or on whose kind of machine it is not
    known how long the run takes, or whose GPUs the training is not expected to fit, is none to move to."""
    assert run.current_attempt is not None
    held, market = run.current_attempt.offer, while_training(market, run, lease)
    left_h = market.work.hours_on(held)
    if left_h is None or left_h < WORK_H_MIN:
        return None
    ranking = rank(
        [offer for offer in offers if market.work.hours_on(offer) is not None],
        run.spec.hardware,
        avoided=avoided_offers(run, now_s),
        on_demand=wants_on_demand(run, now_s),
        market=market,
    )
    closed = closed_providers(run, now_s)
    for quote in ranking.quotes:
        offer = quote.offer
        is_barred = offer.provider in closed or offer.offer_id in run.excluded or offer in ranking.exclusions
        if not is_barred and not quote.misfit and not quote.is_late:
            return move_to(market, held, quote, among=offers)
    return None


def of_move(run: Run, heartbeat: Heartbeat, move: Move, now_s: int) -> Decision | None:
    """Return the order to save and leave, or the proposal of it, given once, or the all-clear when it would no longer pay; else None."""
    proposed = run.noted_s(AlertKind.CHEAPER) is not None
    left_usd = budget.save_usd(run) - ledger.spent(run, now_s).usd
    is_unsaved = bool(heartbeat.upload_problem or heartbeat.unsaved)
    if run.state is not RunState.TRAINING or is_unsaved or not move.pays or move.cost_usd >= left_usd:
        # Not as soon as a move no longer pays, or people would be told of each turn of a price that is close to that.
        return AllClear((AlertKind.CHEAPER,)) if proposed and move.saves_usd <= 0 else None
    if run.spec.hardware.migrate is Migrate.AUTO:
        return Drain(DrainReason.MOVE, f"a move saves {usd(move.saves_usd)}: {move.why}")
    if proposed:
        return None
    title = f"a move to another machine would save {usd(move.saves_usd)}"
    return Notify(AlertKind.CHEAPER, Severity.INFO, title, f"{move.why}; hardware.migrate: auto moves by itself")
