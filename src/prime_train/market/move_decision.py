"""Decisions about leaving a machine on which a run trains for one on which the rest of it is expected to cost less."""

from collections.abc import Sequence

from prime_train.market.left_of_run import while_training
from prime_train.market.move import move_to
from prime_train.market.quotes import Market
from prime_train.market.ranking import rank
from prime_train.runs.decide.queued import avoided_offers, closed_providers, wants_on_demand
from prime_train.runs.decision import Move
from prime_train.runs.offer import Offer
from prime_train.runs.run import DesiredState, Lease, Run, RunState
from prime_train.runs.verdict import is_saving
from prime_train.spec.causes import Cause
from prime_train.spec.choices import Migrate

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
