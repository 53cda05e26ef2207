"""What earlier runs of this account tell of the cost of a run: the time of a step, how long machines take to start, and how often they are
lost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prime_train.core.market import priors
from prime_train.core.market.observations import Times
from prime_train.core.market.quotes import Market
from prime_train.core.market.step_times import Measurement, Source
from prime_train.core.market.step_times import StepTime as MarketStepTime
from prime_train.core.offers import Offer
from prime_train.estimate.cost.bill import NOTHING_SEEN, SEEN_SPREAD, Known, Seen, StepTime
from prime_train.estimate.cost.duration import Between
from prime_train.reports.cost.machine import Machine

MIB_PER_GIB = 1024
SEEN_MIN = 0.5
"""The faded weight of observed times from which on they are used: one that is two weeks old has this weight."""
_KNOWN = {Source.MEASURED: Known.MEASURED, Source.SIMILAR: Known.SIMILAR, Source.SCALED: Known.SCALED}


def measured(market: Market | None, machine: Machine) -> StepTime | None:
    """Return the time of a step on such a machine by what was measured, there or elsewhere; None if nothing was."""
    found = _found(market.work.step_times, machine) if market is not None else None
    if found is None or found.source is Source.ESTIMATED:
        return None
    return StepTime(Between(found.seconds / found.spread, found.seconds * found.spread), _KNOWN[found.source], described(found.basis))


def _found(times: Mapping[tuple[str, int], MarketStepTime], machine: Machine) -> MarketStepTime | None:
    found = times.get(machine.kind_and_count)
    if found is not None or machine.kind or machine.offer is not None:
        return found
    # A config that names no kind of GPU runs on any machine, so any on which it was measured will do.
    return next((time for time in times.values() if time.source is Source.MEASURED), None)


def described(basis: Measurement | None) -> str:
    """Return in words in which run a step was measured: probe qwen-probe-x7k2m, 12 steps"""
    if basis is None:
        return ""
    run = f"{'probe ' if basis.is_probe else ''}{basis.run}" if basis.run else "a probe" if basis.is_probe else "an earlier run"
    return f"{run}, {basis.steps:,} step{'' if basis.steps == 1 else 's'}"


@dataclass(frozen=True)
class MeasuredKind:
    """What was measured of this config on a kind of machine."""

    gpu: str
    gpu_count: int
    measurement: Measurement

    @property
    def text(self) -> str:
        """Return the measurement in words: 1x H100_80GB: 3.2 s a step, varying by 8%, at most 61.2 of 79.6 GiB in use on one GPU (probe
        qwen-x7k2m, 12 steps)"""
        return f"{self.figures} ({described(self.measurement)})"

    @property
    def figures(self) -> str:
        """Return the measurement in words, without the run that made it."""
        one = self.measurement
        name = f"{self.gpu_count}x {self.gpu}" if self.gpu else "a machine without a GPU"
        of = f" of {one.gpu_mib / MIB_PER_GIB:.1f}" if one.gpu_mib else ""
        memory = f", at most {one.gpu_peak_mib / MIB_PER_GIB:.1f}{of} GiB in use on one GPU" if one.gpu_peak_mib else ""
        varies = f", varying by {one.spread_s / one.seconds:.0%}" if one.spread_s else ""
        return f"{name}: {one.seconds:.3g} s a step{varies}{memory}"


def measured_kinds(market: Market | None) -> tuple[MeasuredKind, ...]:
    """Return what was measured of the config itself, on each kind of machine."""
    times = market.work.step_times if market is not None else {}
    return tuple(
        MeasuredKind(gpu, count, time.basis)
        for (gpu, count), time in times.items()
        if time.source is Source.MEASURED and time.basis is not None
    )


def seen_of(market: Market | None, machine: Machine, among: Sequence[Offer]) -> Seen:
    """Return what was seen of such a machine's start and losses. `market`: None, or without a store, if nothing is known here; `among`: the
    offers by which the price level of a spot machine is told."""
    if market is None or not market.seen.machines:
        return NOTHING_SEEN
    seen, offer, setup = market.seen, machine.offer, _between(market.seen.setup.get(market.work.config))
    if offer is None:
        return Seen(setup=setup, losses_per_h=1 / priors.loss_every_h("", spot=machine.rate.spot, share=None))
    losses_per_h = market.losses_per_h(offer, market.shares([offer], among=among)[0])
    return Seen(_between(seen.boot.get(offer.provider)), setup, losses_per_h)


def _between(times: Times | None) -> Between | None:
    if times is None or times.weight < SEEN_MIN:
        return None
    mean_s = times.total_s / times.weight
    return Between(mean_s, mean_s) * SEEN_SPREAD
