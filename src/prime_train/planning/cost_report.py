"""What a training costs: for each type of machine the bills of the full run and of the smoke run, in the
order in which a launch would try them, and the source of the step time.
"""

from dataclasses import dataclass

from prime_train.estimate.cost.bill import Bill
from prime_train.estimate.run_costs import MachineCosts, RunCosts
from prime_train.market.step_times import StepTime
from prime_train.planning.cost_seen import MeasuredKind, measured_kinds
from prime_train.runs.forecast import kind_of
from prime_train.runs.offer import Offer, variant_title
from prime_train.spec.spec import HardwareSpec, RunSpec

TYPES_MAX = 5


@dataclass(frozen=True)
class Priced:
    """One machine with its costs. `name`: what it is, in words; `step`: the time of a step on it, None: not
    known.
    """

    name: str
    costs: MachineCosts
    step: StepTime | None

    @property
    def offer(self) -> Offer:
        return self.costs.offer

    @property
    def full(self) -> Bill | None:
        """Return the bill of the full run; None if it would not end on this machine."""
        return self.costs.full

    @property
    def smoke(self) -> Bill | None:
        return self.costs.smoke

    @property
    def usd_per_hour(self) -> float:
        return self.offer.usd_per_hour


@dataclass(frozen=True)
class CostReport:
    """What a run costs. `priced`: a machine of each type, in the order in which a launch would try them;
    `measured`: what was measured of the config in earlier runs, on each kind of machine; `basis`: what losses
    and start times are based on; `prices`: where the prices are from, in words, empty for offers of now;
    `length`: where the number of steps is from, in words, empty if it is given.
    """

    title: str
    spec: RunSpec
    priced: tuple[Priced, ...]
    measured: tuple[MeasuredKind, ...] = ()
    basis: str = ""
    prices: str = ""
    length: str = ""

    @property
    def best(self) -> Priced | None:
        """Return the machine that a launch would rent; None if there is none."""
        return self.priced[0] if self.priced else None


def cost_report(title: str, spec: RunSpec, costs: RunCosts, prices: str = "") -> CostReport:
    market = costs.market
    return CostReport(
        title,
        spec,
        priced_types(costs, spec.hardware),
        measured_kinds(market),
        market.basis,
        prices,
        market.length,
    )


def priced_types(costs: RunCosts, hardware: HardwareSpec) -> tuple[Priced, ...]:
    """Return the first machine of each type in the order in which a launch would try them, at most
    `TYPES_MAX`.
    """
    found: dict[str, Priced] = {}
    for one in costs.machines:
        name = type_name(one.offer, hardware)
        found.setdefault(name, Priced(name, one, costs.market.work.step_time(one.offer)))
    return tuple(found.values())[:TYPES_MAX]


def type_name(offer: Offer, hardware: HardwareSpec) -> str:
    """Return the type of machine in words: 2x H100_80GB spot"""
    sold, (gpu, count), variant = (
        "spot" if offer.spot else "on-demand",
        kind_of(offer),
        variant_title(offer, hardware),
    )
    name = (
        f"{count}x {gpu} {sold}"
        if gpu
        else f"{offer.provider or 'one'} {sold}{'' if offer.provider else ' machine'}"
    )
    return f"{name}, {variant}" if variant else name
