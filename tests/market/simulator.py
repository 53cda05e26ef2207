"""Runs a job through a trace of the market under a policy, and adds up what it costs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from prime_train.runs.offer import Offer
from tests.market.traces import STEP_MIN, Market, Trace


@dataclass(frozen=True)
class Turn:
    """One machine's turn at the job. `offer` has the price at which it was rented; `first_step_min` is None
    if it never trained.
    """

    offer: Offer
    launched_min: float
    heard_min: float
    """When the machine has booted."""
    resumed_min: float
    """Work that was durable when it was rented."""
    first_step_min: float | None = None
    ended_min: float | None = None
    lost: bool = False
    """Whether it was taken away, rather than left."""
    trained_min: float = 0.0
    """Work that it did, durable or not."""


@dataclass(frozen=True)
class Seen:
    """What a control plane knows at a moment: the offers now, what its earlier machines did, and the work
    that is not durable yet.
    """

    at_min: float
    offers: tuple[Offer, ...]
    turns: tuple[Turn, ...]
    left_min: float
    """Minutes of work on the reference kind that are left to train."""


class Policy(Protocol):
    def choose(self, seen: Seen) -> Offer | None:
        """Return the offer to rent; None to wait for other offers."""
        ...

    def leaves(self, seen: Seen, held: Turn) -> bool:
        """Return whether to save and leave the machine on which the job trains, and choose again. Asked at
        each step of the trace.
        """
        ...


@dataclass(frozen=True)
class Cost:
    usd: float
    hours: float
    losses: int
    moves: int


class OutOfTrace(Exception):
    """The job did not end within the trace."""


def cost(trace: Trace, policy: Policy) -> Cost:
    """Return what the job of the trace costs under the policy."""
    return _Play(trace, policy).cost()


class _Play:
    def __init__(self, trace: Trace, policy: Policy) -> None:
        self._trace, self._policy = trace, policy
        self._markets = {market.offer.offer_id: market for market in trace.markets}
        self._at_min, self._left_min, self._usd = 0.0, trace.job.work_min, 0.0
        self._turns: list[Turn] = []

    def cost(self) -> Cost:
        while self._left_min > 0:
            chosen = self._policy.choose(self._seen(self._at_min, self._left_min))
            if chosen is None:
                self._at_min = _next_step_min(self._at_min)
            else:
                self._train(self._markets[chosen.offer_id])
        losses = sum(turn.lost for turn in self._turns)
        return Cost(self._usd, self._at_min / 60, losses, len(self._turns) - losses - 1)

    def _seen(self, at_min: float, left_min: float) -> Seen:
        if at_min >= self._trace.end_min:
            raise OutOfTrace(f"trace {self._trace.seed} ends before its job does")
        return Seen(at_min, tuple(offers_at(self._trace.markets, at_min)), tuple(self._turns), left_min)

    def _train(self, market: Market) -> None:
        """Rent a machine of this market and train there until the job is done, the machine is lost or the
        policy leaves it.
        """
        job, speed, launched_min = self._trace.job, self._trace.speed(market), self._at_min
        rented, done_before_min = (
            replace(market.offer, usd_per_hour=market.price(launched_min)),
            job.work_min - self._left_min,
        )
        held = Turn(rented, launched_min, launched_min + market.boot_min, done_before_min)
        first_step_min = launched_min + self._trace.start_min(market)
        done_min, lost_min = (
            first_step_min + self._left_min / speed + job.flush_min,
            market.lost_min(launched_min),
        )
        training = replace(held, first_step_min=first_step_min)
        left_min = self._leaves_min(training, min(done_min - job.flush_min, lost_min), speed)
        ended_min = min(done_min, lost_min, left_min + job.flush_min)
        trained_min = max(0.0, ended_min - first_step_min)
        if ended_min == lost_min:
            saves = max(0, math.floor((trained_min - job.flush_min) / job.save_min))
            self._left_min -= saves * job.save_min * speed
        elif ended_min == done_min:
            self._left_min = 0.0
        else:
            self._left_min -= (trained_min - job.flush_min) * speed
        ended = replace(
            training if trained_min else held,
            ended_min=ended_min,
            lost=ended_min == lost_min,
            trained_min=trained_min * speed,
        )
        self._turns.append(ended)
        self._usd += rented.usd_per_hour * (ended_min - launched_min) / 60
        self._at_min = ended_min

    def _leaves_min(self, training: Turn, before_min: float, speed: float) -> float:
        """Return the moment at which the policy leaves the machine; infinity if it does not."""
        first_step_min = training.first_step_min or 0.0
        at_min = _next_step_min(first_step_min)
        while at_min < before_min:
            left_min = self._left_min - (at_min - first_step_min) * speed
            if self._policy.leaves(self._seen(at_min, left_min), training):
                return at_min
            at_min = _next_step_min(at_min)
        return math.inf


def offers_at(markets: Sequence[Market], at_min: float) -> list[Offer]:
    """Return the offers that are in stock at that minute, with their prices."""
    return [replace(one.offer, usd_per_hour=one.price(at_min)) for one in markets if one.in_stock(at_min)]


def _next_step_min(at_min: float) -> float:
    return (math.floor(at_min / STEP_MIN) + 1) * STEP_MIN
