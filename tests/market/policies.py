"""Policies that the product is compared with: two that need no estimate, and one that knows what no product
could.
"""

import math
from dataclasses import dataclass

from prime_train.runs.offer import Offer
from tests.market.simulator import Seen, Turn
from tests.market.traces import Market, Trace


class _Stays:
    """A policy that keeps its machine until that is lost."""

    def leaves(self, seen: Seen, held: Turn) -> bool:
        return False


@dataclass(frozen=True)
class CheapestSpot(_Stays):
    """Rents the spot machine with the cheapest work, and on-demand only where there is none."""

    trace: Trace

    def choose(self, seen: Seen) -> Offer | None:
        return min(
            seen.offers, key=lambda offer: (not offer.spot, _usd_per_work(self.trace, offer)), default=None
        )


@dataclass(frozen=True)
class OnDemand(_Stays):
    """Rents the on-demand machine with the cheapest work, and waits where there is none."""

    trace: Trace

    def choose(self, seen: Seen) -> Offer | None:
        return min(
            (o for o in seen.offers if not o.spot),
            key=lambda offer: _usd_per_work(self.trace, offer),
            default=None,
        )


def _usd_per_work(trace: Trace, offer: Offer) -> float:
    return offer.usd_per_hour / trace.job.speeds[offer.gpu]


class Informed:
    """Knows the speed of each kind of GPU, the present chance of a loss at each market and the mean of what
    the best choice costs over the whole trace, but not the future. What it costs more than the clairvoyant is
    the price of not knowing the future.
    """

    def __init__(self, trace: Trace, *, moves: bool = True, margin: float = 0.0) -> None:
        self._trace, self._moves, self._margin = trace, moves, margin
        self._markets = {market.offer.offer_id: market for market in trace.markets}
        self._later_usd = self._mean_usd_per_work()

    def choose(self, seen: Seen) -> Offer | None:
        return min(
            seen.offers, key=lambda offer: self._usd(seen, offer, self._start_min(offer)), default=None
        )

    def leaves(self, seen: Seen, held: Turn) -> bool:
        if not self._moves:
            return False
        best = self.choose(seen)
        if best is None or (
            best.offer_id == held.offer.offer_id and best.usd_per_hour >= held.offer.usd_per_hour
        ):
            return False
        stay_usd = self._usd(seen, held.offer, 0.0)
        flush_usd = held.offer.usd_per_hour * self._trace.job.flush_min / 60
        return self._usd(seen, best, self._start_min(best)) + flush_usd < stay_usd * (1 - self._margin)

    def _start_min(self, offer: Offer) -> float:
        return self._trace.start_min(self._markets[offer.offer_id])

    def _usd(self, seen: Seen, offer: Offer, start_min: float) -> float:
        """Return the expected dollars to the end: on this machine until it is lost, and then at the mean
        price of later machines.
        """
        job, market = self._trace.job, self._markets[offer.offer_id]
        rate, speed = market.rate(seen.at_min) / 60, self._trace.speed(market)
        train_min = seen.left_min / speed
        whole_min = start_min + train_min + job.flush_min
        paid_min = -math.expm1(-rate * whole_min) / rate
        # Work is durable at the ends of save intervals that the machine outlives.
        saves = train_min / job.save_min
        kept = math.exp(-rate * (start_min + job.flush_min + job.save_min))
        per_save = math.exp(-rate * job.save_min)
        done_min = job.save_min * kept * (1 - per_save**saves) / (1 - per_save)
        lost = -math.expm1(-rate * whole_min)
        left_min = max(0.0, seen.left_min - done_min * speed) if lost > 1e-9 else 0.0
        again_usd = lost * self._later_usd * self._trace.job.start_min
        return offer.usd_per_hour * paid_min / 60 + left_min * self._later_usd + again_usd

    def _mean_usd_per_work(self) -> float:
        steps = range(0, len(self._trace.markets[0].prices), 8)
        best = [
            min(
                (self._long_run_usd(market, step) for market in self._trace.markets if market.stock[step]),
                default=0.0,
            )
            for step in steps
        ]
        known = [usd for usd in best if usd]
        return sum(known) / len(known)

    def _long_run_usd(self, market: Market, step: int) -> float:
        """Return the dollars for a minute of work if this market stayed as it is, with a new machine after
        each loss.
        """
        job, rate = self._trace.job, market.rates[step] / 60
        lasting = (
            job.save_min
            * math.exp(-rate * (self._trace.start_min(market) + job.flush_min))
            / math.expm1(rate * job.save_min)
        )
        return market.prices[step] / 60 / (lasting * rate * self._trace.speed(market))
