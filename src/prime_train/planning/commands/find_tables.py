"""The text output of `prime-train find`: the job, a table of the machines that fit, and a recommendation."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prime_train.estimate.job import ModelTraining
from prime_train.estimate.memory.phases import Method
from prime_train.estimate.ranges import large, time_range, usd_range
from prime_train.planning.find import FoundMachines
from prime_train.planning.placement import Candidate, machine
from prime_train.planning.report.recommendation import advice, needed
from prime_train.runs.forecast import Fit
from prime_train.terminal.columns import Column, Fitting
from prime_train.terminal.console import console

PLACE_CHARS = 9
_COLOURS = {Fit.YES: "green", Fit.TIGHT: "yellow", Fit.UNLIKELY: "red", Fit.NO: "red"}
_STYLES = {"take": "bold", "assumed": "dim"}
_STOCK = {"available": "yes", "medium": "mid"}


def show(found: FoundMachines, limit: int) -> None:
    """Print at most `limit` machines, and the advice."""
    console().print(render(found, limit))


def render(found: FoundMachines, limit: int) -> RenderableType:
    placement, job = found.placement, found.job
    parts: list[RenderableType] = [Text(headline(job, found.title)), Text()]
    if placement.able:
        parts += [table(placement.able[:limit]), Text()]
    words = Table.grid(padding=(0, 2))
    words.add_column(no_wrap=True, style="bold")
    words.add_column()
    every = (
        ("length", found.length),
        ("saving", found.saving),
        ("based on", found.basis),
        ("prices", found.prices),
    )
    notes = [(name, text) for name, text in every if text]
    for name, text in advice(
        placement, job, found.constraints, limit=limit, variants=found.variants, notes=notes, ways=found.ways
    ):
        words.add_row(name, Text(text, style=_STYLES.get(name, "")))
    return Group(*parts, words)


def headline(job: ModelTraining, title: str) -> str:
    model = job.model
    size = f"{large(model.params)} parameters" + (
        f", {large(model.active)} of them active per token" if model.is_moe else ""
    )
    how = (
        "full fine-tuning" if job.training.method is Method.FULL else f"LoRA of rank {job.training.lora_rank}"
    )
    what = f"{how} by RL, with rollouts on half of the GPUs" if job.rl else how
    return f"{title}: {size}; {what}; {large(job.tokens)} tokens in sequences of {job.training.seq_len:,}"


def table(rows: Sequence[Candidate]) -> RenderableType:
    offers = [one.offer for one in rows]
    return Fitting(
        (
            Column("machine", _texts(machine(offer) for offer in offers)),
            *(
                [Column("from", _texts(offer.provider for offer in offers))]
                if len({offer.provider for offer in offers}) > 1
                else []
            ),
            Column(
                "VRAM GB", _texts(f"{offer.gpu_count * offer.gpu_gb} ({offer.gpu_gb})" for offer in offers), 1
            ),
            Column("$/h", _texts(f"{offer.usd_per_hour:.2f}" for offer in offers)),
            Column("spot", _texts("yes" if offer.spot else "no" for offer in offers)),
            *([Column("variant", _texts(str(one.variant) for one in rows))] if rows[0].variant else []),
            Column("time", _texts(time_range(one.time_s) if one.time_s else "?" for one in rows)),
            Column("total", _texts(usd_range(one.usd) if one.usd else "?" for one in rows)),
            Column(
                "losses", _texts(f"{one.costs.quote.losses:.1f}" if one.costs else "?" for one in rows), 5
            ),
            Column("fits", tuple(Text(one.fit, style=_COLOURS[one.fit]) for one in rows)),
            Column(
                "place",
                _texts(offer.region or "?" for offer in offers),
                2,
                _texts(_short_place(offer.region) for offer in offers),
            ),
            Column(
                "stock",
                _texts(_STOCK.get(offer.stock.lower(), offer.stock.lower()) or "?" for offer in offers),
                3,
            ),
            Column("GB needed", _texts(needed(one) for one in rows), 4),
        )
    )


def _short_place(region: str) -> str:
    return region if len(region) <= PLACE_CHARS else f"{region[: PLACE_CHARS - 1]}…"


def _texts(cells: Iterator[str]) -> tuple[Text, ...]:
    return tuple(Text(cell) for cell in cells)
