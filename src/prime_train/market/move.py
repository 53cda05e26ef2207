"""Whether a run that trains should leave its machine for one that is for rent now.

Both ways are compared until the present machine is lost or the job is done, because from then on they are alike: what is left by then costs
on either way what it costs on the best offer now. So a machine that is a little cheaper is worth a move only if the present one can be
expected to last long enough to earn back what the move costs: the save and the stop of the present machine, during which it is still paid,
and the start of the next one.
"""

import math
from collections.abc import Sequence

from prime_train.market.quotes import Market, Quote
from prime_train.runs.decision import Move
from prime_train.runs.offer import Offer

LEAVE_S = 120.0
"""Seconds for which a machine is paid after the order to save and stop, until the provider has confirmed its end, without the save."""


def move_to(market: Market, held: Offer, best: Quote, *, among: Sequence[Offer] = ()) -> Move:
    """Return what a move from a machine that was rented as `held` to the best offer would save. `market`: the work that is left at this
    moment; `among`: all offers, from which the price level of a spot machine is told."""
    here = market.quotes([held], among=[*among, held])[0]
    course = market.course(held, here.share)
    leave_h = course.upload_h + LEAVE_S / 3600
    leave_usd, start_usd = leave_h * held.usd_per_hour, best.start_h * best.offer.usd_per_hour
    if not math.isfinite(best.usd):
        return Move(best, here.usd, best.usd, leave_usd + start_usd)
    rate, whole_h = max(course.losses_per_h, 1e-9), course.work_h + course.upload_h
    lost = -math.expm1(-rate * whole_h)
    left_share = 1.0 - _durable_h(rate, course.work_h, course.interval_h, course.upload_h) / course.work_h if course.work_h > 0 else 0.0
    again_usd = lost * (start_usd + course.detection_h * best.offer.usd_per_hour) + left_share * (best.usd - start_usd)
    return Move(best, lost / rate * held.usd_per_hour + again_usd, best.usd + leave_usd, leave_usd + start_usd)


def _durable_h(rate: float, work_h: float, interval_h: float, upload_h: float) -> float:
    """Return the expected hours of training that are durable when the machine is lost or has done all."""
    if interval_h <= 0 or interval_h >= work_h:
        return work_h * math.exp(-rate * (work_h + upload_h))
    saves, last_h = divmod(work_h, interval_h)
    ratio = math.exp(-rate * interval_h)
    whole = interval_h * math.exp(-rate * upload_h) * ratio * -math.expm1(-rate * interval_h * saves) / -math.expm1(-rate * interval_h)
    return whole + last_h * math.exp(-rate * (work_h + upload_h))
