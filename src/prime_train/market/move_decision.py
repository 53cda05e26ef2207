"""Decisions about leaving a machine on which a run trains for one on which the rest of it is expected to cost
less.
"""

import math
from collections.abc import Sequence

from prime_train.market.left_of_run import while_training
from prime_train.market.quotes import Market, Quote
from prime_train.market.ranking import rank
from prime_train.runs.decide.queued import avoided_offers, closed_providers, wants_on_demand
from prime_train.runs.decision import Move
from prime_train.runs.offer import Offer
from prime_train.runs.run import DesiredState, Lease, Run, RunState
from prime_train.runs.verdict import is_saving
from prime_train.spec.causes import Cause
from prime_train.spec.choices import Migrate

TRAINED_S_MIN = 600
"""Seconds that a machine must have trained before the run leaves it: until then its step time is not known
well, and what it cost to start has not been earned back.
"""
MOVE_EVERY_S = 3600
"""Least seconds between two moves of a run."""
WORK_H_MIN = 0.5
"""Hours of training that must be left for a move."""


def may_move(run: Run, lease: Lease, now_s: int) -> bool:
    """Return whether the run could leave its machine now: it trains, has done so for a while, is not saving,
    and did not move recently.
    """
    attempt, heartbeat = run.current_attempt, lease.heartbeat
    if (
        run.state is not RunState.TRAINING
        or run.desired is not DesiredState.RUN
        or attempt is None
        or heartbeat is None
    ):
        return False
    if (
        run.spec.hardware.migrate is Migrate.NEVER
        or run.spec.trainer.steps is None
        or attempt.offer.usd_per_hour <= 0
    ):
        return False
    if attempt.first_step_s is None or now_s < attempt.first_step_s + TRAINED_S_MIN:
        return False
    if lease.attempt != attempt.number or is_saving(heartbeat) or heartbeat.preempting:
        return False
    return all(
        one.cause is not Cause.MOVED or (one.fenced_s or 0) <= now_s - MOVE_EVERY_S for one in run.attempts
    )


def best_move(run: Run, lease: Lease, offers: Sequence[Offer], market: Market, now_s: int) -> Move | None:
    """Return the best move to one of the offers; None if none can be judged. An offer that failed, or on
    whose kind of machine it is not known how long the run takes, or whose GPUs the training is not expected
    to fit, is none to move to.
    """
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


# Whether a run that trains should leave its machine for one that is for rent now.
#
# Both ways are compared until the present machine is lost or the job is done, because from then on they are
# alike: what is left by then costs on either way what it costs on the best offer now. So a machine that is a
# little cheaper is worth a move only if the present one can be expected to last long enough to earn back what
# the move costs: the save and the stop of the present machine, during which it is still paid, and the start
# of the next one.
LEAVE_S = 120.0
"""Seconds for which a machine is paid after the order to save and stop, until the provider has confirmed its
end, without the save.
"""


def move_to(market: Market, held: Offer, best: Quote, *, among: Sequence[Offer] = ()) -> Move:
    """Return what a move from a machine that was rented as `held` to the best offer would save. `market`: the
    work that is left at this moment; `among`: all offers, from which the price level of a spot machine is
    told.
    """
    here = market.quotes([held], among=[*among, held])[0]
    course = market.course(held, here.share)
    leave_h = course.upload_h + LEAVE_S / 3600
    leave_usd, start_usd = leave_h * held.usd_per_hour, best.start_h * best.offer.usd_per_hour
    if not math.isfinite(best.usd):
        return Move(best, here.usd, best.usd, leave_usd + start_usd)
    rate, whole_h = max(course.losses_per_h, 1e-9), course.work_h + course.upload_h
    lost = -math.expm1(-rate * whole_h)
    left_share = (
        1.0 - _durable_h(rate, course.work_h, course.interval_h, course.upload_h) / course.work_h
        if course.work_h > 0
        else 0.0
    )
    again_usd = lost * (start_usd + course.detection_h * best.offer.usd_per_hour) + left_share * (
        best.usd - start_usd
    )
    return Move(
        best, lost / rate * held.usd_per_hour + again_usd, best.usd + leave_usd, leave_usd + start_usd
    )


def _durable_h(rate: float, work_h: float, interval_h: float, upload_h: float) -> float:
    """Return the expected hours of training that are durable when the machine is lost or has done all."""
    if interval_h <= 0 or interval_h >= work_h:
        return work_h * math.exp(-rate * (work_h + upload_h))
    saves, last_h = divmod(work_h, interval_h)
    ratio = math.exp(-rate * interval_h)
    whole = (
        interval_h
        * math.exp(-rate * upload_h)
        * ratio
        * -math.expm1(-rate * interval_h * saves)
        / -math.expm1(-rate * interval_h)
    )
    return whole + last_h * math.exp(-rate * (work_h + upload_h))
