"""The text output of `prime-train memory`: the trainer's phases, the server, and the fit on each kind of
GPU.
"""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prime_train.estimate.memory.phases import GIB, Use
from prime_train.estimate.ranges import size_range
from prime_train.planning.memory_report import MemoryReport
from prime_train.planning.report.memory_formulas import of_serving, of_training
from prime_train.planning.report.memory_verdicts import fits, headline, needs, serves
from prime_train.runs.forecast import Fit
from prime_train.terminal.console import console

_SHORT = {"gradients": "grads", "optimizer": "optim", "activations": "activ", "gathered": "gather"}
_COLOURS = {Fit.YES: "green", Fit.TIGHT: "yellow", Fit.UNLIKELY: "red", Fit.NO: "red"}


def show(found: MemoryReport) -> None:
    console().print(render(found))


def render(found: MemoryReport) -> RenderableType:
    parts: list[RenderableType] = [Text(headline(found), style="bold"), Text()]
    if found.others:
        parts += [_variants((found, *found.others)), Text(), Text(f"In detail, {found.variant}:")]
    parts += [
        Text(f"Trainer: GiB of each of {_gpus(found.plan.train_gpus)}, by phase"),
        _phases(found),
        Text(),
    ]
    parts += [
        _formulas([(name, "", made) for name, made in of_training(found.plan, found.need.peak)]),
        Text(),
    ]
    if found.kinds and found.kinds[0].share is not None:
        rows = [
            (name, f"{size / GIB:.1f}", made)
            for name, size, made in of_serving(found.plan, found.kinds[0].share.parts)
        ]
        parts += [
            Text(f"Server: GiB of each of {_gpus(found.plan.serve_gpus)}, without its cache"),
            _formulas(rows),
            Text(),
        ]
    parts += [Text(line, style=style) for line, style in _verdicts(found)]
    return Group(*parts)


def _variants(reports: Sequence[MemoryReport]) -> Table:
    """Return a table with a row for each variant: the range that its trainer needs, and the kinds of GPU with
    how it fits.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("variant", "GPUs", "sequences", "GiB needed"):
        table.add_column(name, no_wrap=True, justify="left" if name == "variant" else "right")
    table.add_column("fits")
    for one in reports:
        text = (
            Text(", ").join(Text(f"{each.kind}: {each.fit}", style=_COLOURS[each.fit]) for each in one.kinds)
            if one.kinds
            else Text("?")
        )
        size = size_range(one.need.low, one.need.high)
        table.add_row(one.variant, str(one.plan.train_gpus), f"{one.plan.training.seq_len:,}", size, text)
    return table


def _phases(found: MemoryReport) -> Table:
    shown = [part for part in found.need.peak.parts if any(use.parts[part] > 0 for use in found.need.uses)]
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("phase", no_wrap=True)
    for part in (*shown, "total"):
        table.add_column(_SHORT.get(part, part), justify="right", no_wrap=True)
    for use in found.need.uses:
        style = "bold" if use is found.need.peak else ""
        table.add_row(*_cells(use, shown), style=style)
    return table


def _cells(use: Use, shown: list[str]) -> Iterator[str]:
    yield use.phase
    yield from (f"{use.parts[part] / GIB:.1f}" for part in shown)
    yield f"{use.total / GIB:.1f}"


def _formulas(rows: list[tuple[str, str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(style="dim")
    for row in rows:
        table.add_row(*row)
    return table


def _verdicts(found: MemoryReport) -> Iterator[tuple[str, str]]:
    """Yield lines with their style."""
    yield from ((line, "") for line in needs(found))
    if not found.kinds:
        yield "To see whether it fits, name the GPUs with their memory: --gpu H100_80GB.", ""
    for one in found.kinds:
        yield fits(found, one), _COLOURS[one.fit]
        if one.share is not None:
            yield serves(found, one), "" if one.serves >= 1 else "red"


def _gpus(count: int) -> str:
    return f"{count} GPUs" if count > 1 else "1 GPU"
