"""What a job is expected to cost on each offer: the quotes of the market, at both ends of the estimated time and in its middle."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from prime_train.core.market.quotes import Market, Quote
from prime_train.core.market.step_times import SPREADS, Source, StepTime
from prime_train.core.offers import Offer
from prime_train.estimate.cost.duration import HOUR_S, Between


@dataclass(frozen=True)
class Costs:
    """The expected cost of a job on one offer: `time_s` seconds from the order to the last durable step, losses included; `usd` dollars.
    `quote` is that of the middle of the range."""

    quote: Quote
    time_s: Between
    usd: Between


def costs_of(market: Market, offers: Sequence[Offer], training: Sequence[Between | None]) -> list[Costs | None]:
    """Return the costs on each offer. `training`: the estimated seconds of all training on each of them; None: not known, and then the cost
    is not known either. Where `market` knows how long the work takes on a kind of machine, that counts instead."""
    shares = market.shares(offers)
    return [
        _costs(market, offer, share, seconds) if seconds is not None else None
        for offer, share, seconds in zip(offers, shares, training, strict=True)
    ]


def _costs(market: Market, offer: Offer, share: float | None, seconds: Between) -> Costs | None:
    work, known_h = market.work, market.work.hours_on(offer)
    spread, steps = Between(seconds.low / seconds.expected, seconds.high / seconds.expected), work.steps or 1
    step = work.step_time(offer) if known_h is not None else None
    if step is None:
        step = StepTime(seconds.expected / steps, Source.ESTIMATED)
    elif step.source is not Source.ESTIMATED:
        spread = Between(1 / SPREADS[step.source], SPREADS[step.source])
    times = [replace(step, seconds=step.seconds * by) for by in (spread.low, 1.0, spread.high)]
    low, middle, high = (_quote(market, offer, share, steps, time) for time in times)
    if high.usd == float("inf"):
        return None
    return Costs(middle, Between(low.hours * HOUR_S, high.hours * HOUR_S), Between(low.usd, high.usd))


def _quote(market: Market, offer: Offer, share: float | None, steps: int, step: StepTime) -> Quote:
    work = replace(market.work, steps=steps, step_times={(offer.gpu, offer.gpu_count): step})
    return replace(market, work=work).quote(offer, share)
