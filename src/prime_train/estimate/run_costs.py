"""What a run needs, takes and costs on each machine for rent: the one estimate behind every answer to "which
machine, how many hours, what price to the end".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from prime_train.estimate.cost.bill import Bill, bill_of, smoke_bill
from prime_train.market.quotes import Market, Quote
from prime_train.market.ranking import Ranking, rank
from prime_train.runs.offer import Offer
from prime_train.spec.spec import HardwareSpec


@dataclass(frozen=True)
class MachineCosts:
    """What the run takes on one machine. `quote`: as expected; `full`: the same line by line, with ranges;
    None: it would not end.
    """

    quote: Quote
    full: Bill | None

    @property
    def offer(self) -> Offer:
        return self.quote.offer

    @property
    def smoke(self) -> Bill | None:
        """Return the bill up to the end of the smoke run; None if there is none."""
        return smoke_bill(self.full)


@dataclass(frozen=True)
class RunCosts:
    """The answer. `ranking`: the offers in the order in which a launch would try them, and why the others are
    left out; `market`: what it is derived from.
    """

    market: Market
    ranking: Ranking

    @cached_property
    def machines(self) -> tuple[MachineCosts, ...]:
        """The machines that fit, in the order in which a launch would try them."""
        return tuple(MachineCosts(quote, bill_of(self.market, quote)) for quote in self.ranking.quotes)


def run_costs(
    offers: Sequence[Offer], hardware: HardwareSpec, market: Market, *, on_demand: bool = False
) -> RunCosts:
    """Return what the run takes on each of these offers. `on_demand`: spot machines are left out where
    another one fits, as after several preemptions in an hour.
    """
    return RunCosts(market, rank(offers, hardware, on_demand=on_demand, market=market))
