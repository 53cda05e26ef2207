"""The text output of `prime-train cost`: the run's cost on each type of machine, itemised for the one that a
launch would rent, and the budget.
"""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prime_train.estimate.cost.bill import Bill
from prime_train.estimate.ranges import time_range, usd_range
from prime_train.market.step_times import TimeSource
from prime_train.planning.cost_report import CostReport, Priced
from prime_train.planning.limits import PROBE_USD
from prime_train.terminal.console import console
from prime_train.text.formatting import usd


def show(found: CostReport) -> None:
    console().print(render(found))


def render(found: CostReport) -> RenderableType:
    best = found.best
    assert best is not None
    parts: list[RenderableType] = [
        Text(f"{found.title}: {found.spec.name}, on {best.name} at {usd(best.usd_per_hour)}/h", style="bold")
    ]
    if len(found.priced) > 1:
        parts += [Text(), _machines(found.priced)]
    parts += [Text(), Text(best.costs.quote.why)]
    if best.full is not None:
        parts += [_bill(best.full)]
    parts += [Text(), *(Text(line) for line in _words(found, best))]
    return Group(*parts)


def _machines(priced: Sequence[Priced]) -> Table:
    """Return a table in the order in which a launch would try the machines."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("machine", "$/h", "time", "expected", "full run", "smoke run"):
        table.add_column(name, no_wrap=True)
    for one in priced:
        time, full = (
            (time_range(one.full.time), usd_range(one.full.usd))
            if one.full is not None
            else ("no end", "no end")
        )
        smoke = usd_range(one.smoke.usd) if one.smoke is not None else "-"
        table.add_row(one.name, f"{one.usd_per_hour:.2f}", time, one.costs.quote.total, full, smoke)
    return table


def _bill(bill: Bill) -> Table:
    table = Table.grid(padding=(0, 2))
    for _ in range(3):
        table.add_column(no_wrap=True)
    table.add_column(style="dim")
    for line in bill.lines:
        table.add_row(line.name, time_range(line.time), usd_range(bill.usd_of(line.time)), line.why)
    if bill.traffic_usd:
        table.add_row(
            "traffic", "", usd(bill.traffic_usd), "downloads and uploads that the provider charges for"
        )
    table.add_row(
        Text("total", style="bold"),
        Text(time_range(bill.time), style="bold"),
        Text(usd_range(bill.usd), style="bold"),
        "",
    )
    return table


def _words(found: CostReport, best: Priced) -> Iterator[str]:
    if best.smoke is not None:
        yield f"Smoke run alone: {time_range(best.smoke.time)}, {usd_range(best.smoke.usd)}."
    budget = found.spec.budget
    if best.full is not None:
        yield f"Budget: {best.full.budget_says(budget.usd, budget.hours)}."
    for one in found.measured:
        yield f"Measured on {one.text}."
    if best.step is not None and best.step.source is TimeSource.ESTIMATED:
        yield (
            f"The time of a step is only estimated: prime-train probe {found.title} measures it, "
            "for "
            f"{usd(PROBE_USD)} at most."
        )
    if best.step is None:
        yield (
            "How long a step takes is not known: give it with --step-s, or the model with --model and "
            "--tokens."
        )
    if found.length:
        yield f"Length: {found.length}."
    yield f"Based on: {found.basis}."
    if found.prices:
        yield f"Prices: {found.prices.removeprefix('prices ')}."
