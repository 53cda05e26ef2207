"""Seeded traces of a market of GPU machines: prices, stock and losses of every kind of machine at several
providers.

The traces are synthetic. Published traces of spot prices are of other clouds and GPUs than those that are
rented here, show no stock, and tell nothing about losses, so they would have to be completed by assumptions
anyway. The assumptions are the constants below, each with its reason. None of them was chosen by what a
policy makes of it.

Times are minutes since the start of the trace; a price and the stock hold for `STEP_MIN` minutes.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

from prime_train.runs.offer import Offer

STEP_MIN = 15
"""Providers' lists are asked every few minutes, and prices there change a few times a day: a finer grid
changes nothing.
"""
HOURS = (4.0, 200.0)
"""Hours of work on the reference kind, log-uniform: from an evening's fine-tuning to more than a week."""
COUNTS = (1, 2, 4, 8)
REFERENCE = "H100_80GB"
ON_DEMAND_USD = {"A100_80GB": (1.2, 2.0), "H100_80GB": (2.0, 3.3), "H200_141GB": (2.8, 4.2)}
"""On-demand dollars an hour of one GPU, as the providers' own pages list them."""
SPEEDS = {"A100_80GB": (0.42, 0.56), "H100_80GB": (1.0, 1.0), "H200_141GB": (1.0, 1.25)}
"""Speed relative to an H100: of training that is bound by computation and of training that is bound by memory
bandwidth.
"""
SPOT_PROVIDERS = ("prime", "runpod", "vast")
ON_DEMAND_ONLY = "lambda"
SPOT_SHARE = (0.35, 0.75)
"""Ordinary spot price as a share of the on-demand price of the same machine: discounts of a quarter to two
thirds are advertised.
"""
SPOT_SHARE_LIMITS = (0.2, 1.1)
"""Bounds of that share: providers keep a floor, and bids above the on-demand price occur in a shortage but do
not last.
"""
VOLATILITY = (0.1, 0.3)
"""Standard deviation of the logarithm of the spot price around its mean."""
PRESSURE_H = (24.0, 6.0)
"""Hours after which a fluctuation of demand has decayed to a third: of all providers together (days), and of
one alone (hours).
"""
JUMP_EVERY_H, JUMP, JUMP_DECAY_H = 60.0, (0.5, 2.5), 8.0
"""Jumps of the demand, such as a large customer's job: how often, how high in standard deviations, and how
long they last.
"""
REPRICE_SHARE = 0.08
"""A listed price is changed when it is off by that much: lists change a few times a day, not by cents."""
PRICE_STEP = 0.02
"""Prices are listed in steps of this share of the on-demand price, because they are round."""
LOSS_EVERY_H = (4.0, 60.0)
"""Mean hours between two losses of a spot machine at ordinary demand, log-uniform: interruptible machines of
marketplaces last for hours to days.
"""
LOSS_BY_PRESSURE = 0.8
"""Demand that is one standard deviation higher raises the chance of a loss by this power of e, about
twofold.
"""
FAILURE_EVERY_H = 1500.0
"""Mean hours between two failures of any machine's hardware, which on-demand machines have too."""
SPOT_STOCK_H, ON_DEMAND_STOCK_H = (30.0, 2.5), (100.0, 3.0)
"""Mean hours with stock, and without, at ordinary demand."""
BOOT_MIN = (3, 15)
"""Minutes from the create call to a machine that answers; a property of the provider."""
LISTED = 0.75
"""Chance that a provider has a kind of machine at all."""


@dataclass(frozen=True)
class Market:
    """One kind of machine at one provider. `offer` has the price of the first moment. A machine keeps the
    price at which it was rented, as the providers that are rented from bill it; each of `losses` takes every
    machine of this market.
    """

    offer: Offer
    boot_min: int
    prices: tuple[float, ...]
    stock: tuple[bool, ...]
    rates: tuple[float, ...]
    """Chance of a loss in each step, as losses an hour. No policy that could exist knows it."""
    losses: tuple[int, ...]

    def price(self, at_min: float) -> float:
        return self.prices[int(at_min) // STEP_MIN]

    def in_stock(self, at_min: float) -> bool:
        return self.stock[int(at_min) // STEP_MIN]

    def rate(self, at_min: float) -> float:
        return self.rates[int(at_min) // STEP_MIN]

    def lost_min(self, after_min: float) -> float:
        """Return the minute of the first loss after that minute; infinity if the trace has none."""
        return next((float(loss) for loss in self.losses if loss > after_min), math.inf)


@dataclass(frozen=True)
class Job:
    """A training run. Its work is measured in minutes on the reference kind of GPU."""

    work_min: float
    speeds: Mapping[str, float]
    save_min: int
    """Minutes of training between two checkpoints."""
    flush_min: float
    """Minutes to save and upload a checkpoint on request."""
    set_up_min: float
    restore_min: float

    @property
    def start_min(self) -> float:
        """Minutes between the boot of a machine and its first step."""
        return self.set_up_min + self.restore_min


@dataclass(frozen=True)
class Trace:
    seed: int
    job: Job
    markets: tuple[Market, ...]

    @property
    def end_min(self) -> int:
        return len(self.markets[0].prices) * STEP_MIN

    def start_min(self, market: Market) -> float:
        """Return the minutes from the create call to the first step."""
        return market.boot_min + self.job.start_min

    def speed(self, market: Market) -> float:
        return self.job.speeds[market.offer.gpu]


def trace(seed: int) -> Trace:
    """Return the trace of this seed, always the same."""
    random = Random(f"market {seed}")
    work_min = 60 * _log_uniform(random, *HOURS)
    # A machine may be half as fast as the reference, and wait for stock.
    steps = int((2.5 * work_min + 96 * 60) / STEP_MIN)
    job = Job(
        work_min,
        {kind: random.uniform(*SPEEDS[kind]) for kind in SPEEDS},
        save_min=random.choice((10, 20, 30, 60)),
        flush_min=random.uniform(0.5, 4.0),
        set_up_min=random.uniform(2.0, 8.0),
        restore_min=random.uniform(0.5, 8.0),
    )
    count, kinds = random.choice(COUNTS), _kinds(random)
    demand = {kind: _pressure(random, steps, PRESSURE_H[0]) for kind in kinds}
    return Trace(seed, job, tuple(_markets(random, count, demand, steps)))


def _kinds(random: Random) -> list[str]:
    """Return the kinds of GPU that the job may run on: the reference, and in half of the traces others."""
    others = [kind for kind in ON_DEMAND_USD if kind != REFERENCE]
    return [REFERENCE, *random.sample(others, random.choice((0, 0, 1, 2)))]


def _markets(random: Random, count: int, demand: Mapping[str, list[float]], steps: int) -> Iterator[Market]:
    providers = [*random.sample(SPOT_PROVIDERS, random.choice((2, 3))), ON_DEMAND_ONLY]
    boot_min = {provider: random.randint(*BOOT_MIN) for provider in providers}
    for kind, pressure in demand.items():
        level = {provider: random.uniform(*ON_DEMAND_USD[kind]) * count for provider in providers}
        for provider in providers:
            # The reference is on-demand at every provider, so that each trace has an on-demand baseline.
            if kind == REFERENCE or random.random() < LISTED:
                yield _on_demand(
                    random,
                    Offer(provider, f"{provider}-{kind}", level[provider], False, kind, count, 1000),
                    boot_min,
                    steps,
                )
            if provider != ON_DEMAND_ONLY and random.random() < LISTED:
                yield _spot(
                    random,
                    Offer(provider, f"{provider}-{kind}-spot", level[provider], True, kind, count, 1000),
                    boot_min,
                    pressure,
                )


def _on_demand(random: Random, offer: Offer, boot_min: Mapping[str, int], steps: int) -> Market:
    rates = [1 / FAILURE_EVERY_H] * steps
    stock = _stock(random, ON_DEMAND_STOCK_H, [0.0] * steps)
    return Market(
        offer,
        boot_min[offer.provider],
        (offer.usd_per_hour,) * steps,
        stock,
        tuple(rates),
        _losses(random, rates),
    )


def _spot(random: Random, offer: Offer, boot_min: Mapping[str, int], demand: list[float]) -> Market:
    own = _pressure(random, len(demand), PRESSURE_H[1])
    pressure = [math.sqrt(0.5) * (shared + mine) for shared, mine in zip(demand, own, strict=True)]
    ordinary, volatility = random.uniform(*SPOT_SHARE), random.uniform(*VOLATILITY)
    shares = [
        min(max(ordinary * math.exp(volatility * one), SPOT_SHARE_LIMITS[0]), SPOT_SHARE_LIMITS[1])
        for one in pressure
    ]
    prices = tuple(round(share * offer.usd_per_hour, 4) for share in _listed(shares))
    ordinary_rate = 1 / _log_uniform(random, *LOSS_EVERY_H)
    rates = [ordinary_rate * math.exp(LOSS_BY_PRESSURE * one) + 1 / FAILURE_EVERY_H for one in pressure]
    stock = _stock(random, SPOT_STOCK_H, pressure)
    first = Offer(offer.provider, offer.offer_id, prices[0], True, offer.gpu, offer.gpu_count, offer.disk_gib)
    return Market(first, boot_min[offer.provider], prices, stock, tuple(rates), _losses(random, rates))


def _pressure(random: Random, steps: int, decay_h: float) -> list[float]:
    """Return a walk with mean 0 and standard deviation 1 that reverts to its mean, with jumps that decay."""
    kept, kept_jump = math.exp(-STEP_MIN / 60 / decay_h), math.exp(-STEP_MIN / 60 / JUMP_DECAY_H)
    level, jump, walk = random.gauss(0, 1), 0.0, []
    for _ in range(steps):
        level = kept * level + math.sqrt(1 - kept**2) * random.gauss(0, 1)
        jump *= kept_jump
        if random.random() < STEP_MIN / 60 / JUMP_EVERY_H:
            jump += random.uniform(*JUMP)
        walk.append(level + jump)
    return walk


def _listed(shares: list[float]) -> Iterator[float]:
    listed = shares[0]
    for share in shares:
        if abs(share / listed - 1) > REPRICE_SHARE:
            listed = share
        yield PRICE_STEP * round(listed / PRICE_STEP)


def _stock(random: Random, mean_h: tuple[float, float], pressure: list[float]) -> tuple[bool, ...]:
    """Return whether there is stock in each step: demand ends it sooner, and lets it return later."""
    has, stock = random.random() < mean_h[0] / sum(mean_h), []
    for one in pressure:
        rate = (
            math.exp(LOSS_BY_PRESSURE * one) / mean_h[0]
            if has
            else math.exp(-LOSS_BY_PRESSURE * one) / mean_h[1]
        )
        if random.random() < 1 - math.exp(-rate * STEP_MIN / 60):
            has = not has
        stock.append(has)
    return tuple(stock)


def _losses(random: Random, rates: list[float]) -> tuple[int, ...]:
    """Return the minutes of the losses, at most one in a step."""
    return tuple(
        step * STEP_MIN + random.randrange(STEP_MIN)
        for step, rate in enumerate(rates)
        if random.random() < 1 - math.exp(-rate * STEP_MIN / 60)
    )


def _log_uniform(random: Random, least: float, most: float) -> float:
    return math.exp(random.uniform(math.log(least), math.log(most)))
