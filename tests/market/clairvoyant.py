"""A lower bound of what any choice of machines could cost in a trace that is known from its beginning to its
end.

The clairvoyant knows every price, every time without stock and every loss in advance. It saves and leaves a
machine just before that is lost, so it never repeats a step; it leaves machines for others whenever that is
cheaper. Only one thing is denied to it, as to every policy: it may not wait for better prices while some
machine is for rent, because a run is to be carried out.

A path is a sequence of rentals, each from one moment of the trace to a later one. It suffices to consider
moments where a price, the stock or a loss changes something: between them the cost is linear in the moment of
a change of machines, so it is least at an end. A change may happen just before or just after such a moment,
so the better price of the two counts, and stock on either side is stock.

Of all paths to a moment, what matters is the work they have done and the dollars they have cost. Dynamic
programming over the moments finds, for each of many prices of work, the least of (dollars - price x work):
together they are the lower convex hull of all paths to that moment, which lies below each of them. The last
rental, which ends with the job, is added to that hull. So the result is at most the cost of the best path (by
Lagrange duality, with the prices of work as multipliers), and a policy can only look worse by it than it is.
"""

import math

import numpy as np
from numpy.typing import NDArray

from tests.market.traces import STEP_MIN, Market, Trace

_Array = NDArray[np.float64]
MULTIPLIERS = 96


def least_usd(trace: Trace, *, moves: bool = True) -> float:
    """Return a lower bound of the cost of the job. Without `moves`, a machine that was rented is kept until
    it is lost, or until the job is done.
    """
    moments = np.array(_moments(trace))
    multipliers = _multipliers(trace)
    rentals = [_Rentals(trace, market, moments, multipliers) for market in trace.markets]
    hulls = np.full((len(moments), len(multipliers)), math.inf)
    hulls[0] = 0.0
    none_in_stock = [not any(market.in_stock(at_min) for market in trace.markets) for at_min in moments]
    for to in range(1, len(moments)):
        if none_in_stock[to - 1]:
            hulls[to] = hulls[to - 1]
        for each in rentals:
            hulls[to] = np.minimum(hulls[to], each.least(hulls, to, moves))
    return min(each.least_to_the_end(hulls, trace.job.work_min) for each in rentals)


class _Rentals:
    """The rentals of machines of one market that begin at each moment."""

    def __init__(self, trace: Trace, market: Market, moments: _Array, multipliers: _Array) -> None:
        self._moments, self._multipliers = moments, multipliers
        self._usd_per_min = np.array([_usd_per_min(market, at_min) for at_min in moments])
        self._lost_min = np.array([market.lost_min(at_min) for at_min in moments])
        self._speed = trace.speed(market)
        self._idle_min = trace.start_min(market) + trace.job.flush_min
        """Minutes without training: the start, and the last save."""
        self._prices, self._price_of = np.unique(self._usd_per_min, return_inverse=True)
        self._training = np.full((len(self._prices), len(multipliers)), math.inf)
        """For each price, the least of (dollars - multiplier x work) of the rentals that have trained, less
        what they pay and do from the start of the trace: so it stays the same until another is less.
        """
        self._next = 0
        """The first start that is not among them."""

    def least(self, hulls: _Array, to: int, moves: bool) -> _Array:
        """Return the least of (dollars - multiplier x work) of paths whose last rental is one of these and
        ends at moment `to`; to be asked for each moment in turn.
        """
        to_min = self._moments[to]
        while self._next < to and self._moments[self._next] + self._idle_min <= to_min:
            self._has_trained(hulls, self._next)
            self._next += 1
        is_loss = self._lost_min[to - 1] == to_min
        least = np.full(len(self._multipliers), math.inf)
        if moves or is_loss:
            rates = self._prices[:, None] - self._speed * self._multipliers
            known = np.isfinite(self._prices)
            least = (self._training[known] + rates[known] * to_min).min(axis=0, initial=math.inf)
            for start in range(self._next, to):
                least = np.minimum(
                    least, hulls[start] + self._usd_per_min[start] * (to_min - self._moments[start])
                )
        if is_loss:
            self._training[:], self._next = math.inf, to
        return np.asarray(least)

    def _has_trained(self, hulls: _Array, start: int) -> None:
        usd_per_min, at_min = self._usd_per_min[start], self._moments[start]
        if math.isfinite(usd_per_min):
            path = (
                hulls[start]
                - usd_per_min * at_min
                + self._speed * self._multipliers * (at_min + self._idle_min)
            )
            row = self._training[self._price_of[start]]
            np.minimum(row, path, out=row)

    def least_to_the_end(self, hulls: _Array, work_min: float) -> float:
        """Return the least cost of the job if its last rental is one of these."""
        starts = np.flatnonzero(np.isfinite(self._usd_per_min))
        most = np.clip((self._lost_min - self._moments - self._idle_min)[starts] * self._speed, 0.0, work_min)
        here = most > 0
        starts, most = starts[here], most[here]
        if not starts.size:
            return math.inf
        usd_per_min = self._usd_per_min[starts][:, None]
        # Of the work, the last rental does between nothing and the most it can, whichever the multiplier
        # makes cheaper.
        last = np.minimum(0.0, (usd_per_min / self._speed - self._multipliers) * most[:, None])
        return float(
            (hulls[starts] + self._multipliers * work_min + usd_per_min * self._idle_min + last)
            .max(axis=1)
            .min()
        )


def _usd_per_min(market: Market, at_min: float) -> float:
    """Return the better of the prices just before and just after the moment; infinity without stock in
    both.
    """
    sides = [side for side in (at_min - 0.5, at_min) if side >= 0 and market.in_stock(side)]
    return min((market.price(side) / 60 for side in sides), default=math.inf)


def _multipliers(trace: Trace) -> _Array:
    """Return prices of a minute of work, close together where markets are, from nothing to more than any
    market demands.
    """
    demanded = np.concatenate(
        [np.array(market.prices) / 60 / trace.speed(market) for market in trace.markets]
    )
    typical = np.quantile(demanded, np.linspace(0.0, 0.9, MULTIPLIERS - 17))
    return np.unique(np.concatenate(([0.0], typical, np.geomspace(demanded.min(), 3 * demanded.max(), 16))))


def _moments(trace: Trace) -> list[float]:
    """Return the moments at which a price, the stock or a loss changes something, in their order."""
    moments = {0.0}
    for market in trace.markets:
        moments.update(float(loss) for loss in market.losses)
        for step in range(1, len(market.prices)):
            if market.prices[step] != market.prices[step - 1] or market.stock[step] != market.stock[step - 1]:
                moments.add(float(step * STEP_MIN))
    return sorted(moments)
