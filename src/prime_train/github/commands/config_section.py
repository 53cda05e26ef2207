"""The section on one run in a pull request comment: GPU memory, machines for rent, cost and changes to the
config.
"""

from collections.abc import Sequence

from prime_train.checks.changes import ConfigChange
from prime_train.estimate.cost.duration import Between
from prime_train.estimate.memory.phases import GIB
from prime_train.estimate.ranges import size_range, time_range, usd_range
from prime_train.launch.review import ConfigReview
from prime_train.market.step_times import StepTime, TimeSource
from prime_train.planning.cost_report import CostReport, Priced
from prime_train.planning.market_rows import market_rows
from prime_train.planning.memory_report import MemoryReport
from prime_train.runs.forecast import Fit
from prime_train.text.formatting import usd
from prime_train.text.markdown import code, folded, plain, table
from prime_train.text.redaction import redacted

CHANGES_MAX = 40
NO_PRICE = "No price is known now."
PROBE = (
    "To measure it in a short run, put the label `probe` on this pull request, or run `prime-train probe`."
)
_FITS = {
    Fit.YES: "fits",
    Fit.TIGHT: "barely: the upper end of the estimate does not fit",
    Fit.UNLIKELY: "**probably does not fit**",
    Fit.NO: "**does not fit**",
}
STEP_UNKNOWN = "How long a step takes on these machines is not known: their hours of training are assumed."
_STEP_FROM = {
    TimeSource.GIVEN: "as given",
    TimeSource.MEASURED: "as in an earlier run of this config",
    TimeSource.SIMILAR: "scaled from earlier runs of this model and trainer",
    TimeSource.SCALED: "scaled from an earlier run on another kind of GPU",
    TimeSource.ESTIMATED: "from published speeds of such GPUs",
}


def block(file: str, found: ConfigReview) -> list[str]:
    """Return the section as Markdown lines."""
    memory = _memory(found.memory) if found.memory is not None else []
    lines = [f"#### {code(found.spec.name)} ({code(file)})", "", *_money(found), *_market(found)]
    if found.is_new:
        lines += ["", "New: the base branch does not have this config."]
    if memory:
        lines += ["", *folded("GPU memory", memory)]
    if found.changes:
        lines += ["", *folded(f"What changes ({len(found.changes)})", _changes(found.changes))]
    return lines


def _money(found: ConfigReview) -> list[str]:
    """Return what the run takes on each type of machine, in the order in which a launch would try them."""
    offers, cost = found.offers, found.cost
    if offers is None:
        return [NO_PRICE]
    if cost is None or cost.best is None:
        return [
            f"**No suitable machine is for rent now**: {plain(found.why_none)}. The run would wait for one."
        ]
    prices = [
        f"{plain(offers.prices[:1].upper() + offers.prices[1:])}: what is free now, and what it costs now, "
        "is not known.",
        "",
    ]
    prices = prices if offers.prices else []
    head = ("machine", "an hour", "time", "to the end", "full run", "smoke run")
    return [*prices, *table(head, [_priced(one) for one in cost.priced]), "", *_words(cost, cost.best)]


def _market(found: ConfigReview) -> list[str]:
    """Return the machines in the order in which they would be tried, with the reasons."""
    ranked = found.offers.costs.ranking if found.offers is not None else None
    if ranked is None or not ranked.quotes:
        return []
    rows = [
        (plain(row.machine), row.price, row.total, plain(row.why))
        for row in market_rows(ranked, found.spec.hardware)
    ]
    more = [f"… and {len(ranked.quotes) - len(rows)} more."] if len(ranked.quotes) > len(rows) else []
    saving = [f"Saving: {plain(found.saving)}."] if found.saving else []
    length = [f"{plain(ranked.length[:1].upper() + ranked.length[1:])}."] if ranked.length else []
    foot = " ".join([*more, *length, f"{ranked.basis[:1].upper()}{plain(ranked.basis[1:])}.", *saving])
    return [
        "",
        "Machines in the order in which they would be tried:",
        "",
        *table(("machine", "an hour", "to the end", "why"), rows),
        "",
        foot,
    ]


def _priced(one: Priced) -> tuple[str, ...]:
    time, full = (
        (time_range(one.full.time), usd_range(one.full.usd)) if one.full is not None else ("no end", "no end")
    )
    smoke = usd_range(one.smoke.usd) if one.smoke is not None else "-"
    return plain(one.name), usd(one.usd_per_hour), time, one.costs.quote.total, plain(full), plain(smoke)


def _words(found: CostReport, best: Priced) -> list[str]:
    budget, step = found.spec.budget, best.step
    return [
        *(
            [f"Budget: {plain(best.full.budget_says(budget.usd, budget.hours))}."]
            if best.full is not None
            else []
        ),
        f"A step takes {time_range(_range_of(step))}, {_STEP_FROM[step.source]}."
        if step is not None
        else STEP_UNKNOWN,
        *(f"Measured on {plain(one.text)}." for one in found.measured),
        *([PROBE] if step is not None and step.source is TimeSource.ESTIMATED else []),
    ]


def _range_of(step: StepTime) -> Between:
    return Between(step.seconds / step.spread, step.seconds * step.spread)


def _memory(found: MemoryReport) -> list[str]:
    need = found.need
    uses = [(plain(use.phase), f"{use.total / GIB:.1f}") for use in need.uses]
    lines = table(
        ("phase of the trainer", "GiB on each GPU"),
        [*uses, ("**peak, nine in ten**", f"**{size_range(need.low, need.high)}**")],
    )
    rows: list[tuple[str, ...]] = []
    for one in found.kinds:
        server = (
            f"{one.serves:.0f} sequences of {found.plan.serving.seq_len:,} at once"
            if one.share is not None
            else "-"
        )
        rows.append((plain(one.kind), f"{one.left / GIB:.0f}", _FITS[one.fit], server))
    return (
        [*lines, "", *table(("GPU", "GiB for the trainer", "the trainer", "the server's cache"), rows)]
        if rows
        else lines
    )


def _changes(changes: Sequence[ConfigChange]) -> list[str]:
    rows = [
        (code(change.key), plain(redacted(change.text)), plain(change.meaning) or "of the trainer's config")
        for change in changes[:CHANGES_MAX]
    ]
    lines = table(("key", "from, to", "what it is"), rows)
    return [*lines, "", f"… and {len(changes) - CHANGES_MAX} more"] if len(changes) > CHANGES_MAX else lines
