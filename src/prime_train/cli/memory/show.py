"""The text output of `prime-train memory`: the trainer's phases, the server, and the fit on each kind of GPU."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prime_train.estimate.memory.phases import GIB, Method, Use
from prime_train.estimate.memory.serving import kv_bytes
from prime_train.estimate.placement import Fit
from prime_train.output import console
from prime_train.reports.find.words import large, size_range
from prime_train.reports.memory.formulas import of_serving, of_training
from prime_train.reports.memory.report import OnKind, Told, asked
from prime_train.rules.hardware.host_bytes import host_bytes
from prime_train.rules.hardware.memory_plan import Plan

_SHORT = {"gradients": "grads", "optimizer": "optim", "activations": "activ", "gathered": "gather"}
_COLOURS = {Fit.YES: "green", Fit.TIGHT: "yellow", Fit.NO: "red"}


def show(found: Told) -> None:
    console().print(picture(found))


def picture(found: Told) -> RenderableType:
    parts: list[RenderableType] = [Text(headline(found), style="bold"), Text()]
    parts += [Text(f"Trainer: GiB of each of {_gpus(found.plan.train_gpus)}, by phase"), _phases(found), Text()]
    parts += [_formulas([(name, "", made) for name, made in of_training(found.plan, found.need.peak)]), Text()]
    if found.kinds and found.kinds[0].share is not None:
        rows = [(name, f"{size / GIB:.1f}", made) for name, size, made in of_serving(found.plan, found.kinds[0].share.parts)]
        parts += [Text(f"Server: GiB of each of {_gpus(found.plan.serve_gpus)}, beside its cache"), _formulas(rows), Text()]
    parts += [Text(line, style=style) for line, style in _verdicts(found)]
    return Group(*parts)


def headline(found: Told) -> str:
    plan = found.plan
    guessed = " (shape guessed from its size)" if plan.model.guessed else ""
    how = "full fine-tuning" if plan.training.method is Method.FULL else f"LoRA of rank {plan.training.lora_rank}"
    return (
        f"{found.title}: {plan.model.name}, {large(plan.model.params)} parameters{guessed}; {how}, sequences of {plan.training.seq_len:,}"
    )


def _phases(found: Told) -> Table:
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


def _verdicts(found: Told) -> Iterator[tuple[str, str]]:
    need = found.need
    yield (
        f"The trainer's peak is the {need.peak.phase}: {size_range(need.low, need.high)} GiB (as nine in ten published ones).",
        "",
    )
    if host_bytes(found.plan) >= GIB:
        yield f"The host's memory holds {host_bytes(found.plan) / GIB:.0f} GiB of states that are offloaded.", ""
    if not found.kinds:
        yield "Say which GPUs, with their memory, to see whether it fits: --gpu H100_80GB.", ""
    for one in found.kinds:
        beside = f" beside the server's {found.plan.utilization:g}" if found.plan.together else ""
        yield f"{one.kind}: {one.left / GIB:.0f} GiB for the trainer{beside}: it {_verb(one.fit)}", _COLOURS[one.fit]
        if one.share is not None:
            yield _served(found, one), "" if one.serves >= 1 else "red"


def _verb(fit: Fit) -> str:
    return {Fit.YES: "fits", Fit.TIGHT: "is tight: the estimate fits, the upper end does not", Fit.NO: "does not fit"}[fit]


def _served(found: Told, one: OnKind) -> str:
    assert one.share is not None
    plan, left = found.plan, one.share.budget - one.share.parts.fixed
    if left <= 0:
        return f"{one.kind}: the server's {plan.utilization:g} ({one.share.budget / GIB:.0f} GiB) is too little for it"
    each = kv_bytes(plan.model, plan.serving, plan.serve_gpus)
    return (
        f"{one.kind}: {left / GIB:.0f} GiB of cache at {each / 1024:.0f} KiB a token: "
        f"{one.share.kv_tokens:,.0f} tokens, {one.serves:.1f} sequences of {plan.serving.seq_len:,}{_speed(plan, one)}"
    )


def _speed(plan: Plan, one: OnKind) -> str:
    if one.speed is None:
        return ""
    requests = asked(plan)
    return f"; {requests.at_once} at once, {requests.prompt:,} in and {requests.new:,} out, make {_range(*one.speed)} tokens/s"


def _range(low: float, high: float) -> str:
    return f"{low:,.0f} to {high:,.0f}"


def _gpus(count: int) -> str:
    return f"{count} GPUs" if count > 1 else "1 GPU"
