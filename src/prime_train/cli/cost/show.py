"""The text output of `prime-train cost`: the run's cost on each machine, the cheapest one itemised, and the budget."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prime_train.console import console
from prime_train.core.text.formatting import usd
from prime_train.estimate.cost.bill import Bill, Known
from prime_train.operations.launching.probe import USD as PROBE_USD
from prime_train.reports.cost.report import CostReport, Priced
from prime_train.reports.find.formatting import time_range, usd_range


def show(found: CostReport) -> None:
    console().print(render(found))


def render(found: CostReport) -> RenderableType:
    best = found.cheapest
    assert best is not None
    hardware = f"{best.machine.count} GPUs" if best.machine.count > 1 else "1 GPU"
    parts: list[RenderableType] = [
        Text(f"{found.title}: {found.spec.name}, {hardware if best.machine.kind else 'any machine'}", style="bold")
    ]
    if len(found.priced) > 1:
        parts += [Text(), _machines(found.priced)]
    parts += [Text(), Text(f"On {best.machine.name} at {usd(best.machine.rate.usd_per_hour)}/h"), _bill(best.full)]
    parts += [Text(), *(Text(line) for line in _words(found, best))]
    return Group(*parts)


def _machines(priced: tuple[Priced, ...]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("machine", "$/h", "time", "full run", "smoke run"):
        table.add_column(name, no_wrap=True)
    for one in priced:
        smoke = usd_range(one.smoke.usd) if one.smoke is not None else "-"
        row = (one.machine.name, f"{one.machine.rate.usd_per_hour:.2f}", time_range(one.full.time), usd_range(one.full.usd), smoke)
        table.add_row(*row)
    return table


def _bill(bill: Bill) -> Table:
    table = Table.grid(padding=(0, 2))
    for _ in range(3):
        table.add_column(no_wrap=True)
    table.add_column(style="dim")
    for line in bill.lines:
        table.add_row(line.name, time_range(line.time), usd_range(bill.rate.usd(line.time)), line.why)
    table.add_row(Text("total", style="bold"), Text(time_range(bill.time), style="bold"), Text(usd_range(bill.usd), style="bold"), "")
    return table


def _words(found: CostReport, best: Priced) -> Iterator[str]:
    if best.smoke is not None:
        yield f"Smoke run alone: {time_range(best.smoke.time)}, {usd_range(best.smoke.usd)}."
    budget = found.spec.budget
    yield f"Budget: {best.full.budget_says(budget.usd, budget.hours)}."
    for one in found.measured:
        yield f"Measured on {one.text}."
    if best.step.known is Known.PUBLISHED:
        yield f"The time of a step is only estimated: prime-train probe {found.title} measures it, for {usd(PROBE_USD)} at most."
    if found.unknown:
        yield f"Left out, because the speed of their GPUs is unknown: {', '.join(found.unknown)}."
