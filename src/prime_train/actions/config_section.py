"""The section on one run in a pull request comment: GPU memory, machines for rent, cost and changes to the config."""

from collections.abc import Sequence

from prime_train.configs.changes import Change
from prime_train.core.text.formatting import usd
from prime_train.core.text.redaction import redacted
from prime_train.estimate.cost.bill import Known
from prime_train.estimate.memory.phases import GIB
from prime_train.estimate.placement import Fit
from prime_train.operations.configs.review import ConfigReview
from prime_train.reports.cost.machine import Machine
from prime_train.reports.cost.report import CostReport, Priced
from prime_train.reports.find.formatting import size_range, time_range, usd_range
from prime_train.reports.markdown import code, folded, plain, table
from prime_train.reports.market import market_rows
from prime_train.reports.memory.report import MemoryReport

CHANGES_MAX = 40
NO_PRICE = "No price is known: give the workflow an API key that may read offers, or set `hardware.usd_per_hour_max`."
PROBE = "To measure it in a short run, put the label `probe` on this pull request, or run `prime-train probe`."
_FITS = {Fit.YES: "fits", Fit.TIGHT: "barely: the upper end of the estimate does not fit", Fit.NO: "**does not fit**"}
_STEP_FROM = {
    Known.GIVEN: "as given",
    Known.MEASURED: "as in an earlier run of this config",
    Known.SIMILAR: "scaled from earlier runs of this model and trainer",
    Known.SCALED: "scaled from an earlier run on another kind of GPU",
    Known.PUBLISHED: "from published speeds of such GPUs",
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
    why, cost = found.why_none, found.cost
    lines = [f"**No suitable machine is for rent now**: {plain(why)}. The run would wait for one.", ""] if why else []
    if not found.machines:
        return lines if found.is_priced_by_offers else [*lines, NO_PRICE]
    if cost is None:
        return [*lines, *_rates(found.machines), "", "The cost of the run is unknown: `trainer.steps` is not set."]
    if cost.cheapest is None:
        note = "The cost of the run is unknown: no speed is published for this model on these machines."
        return [*lines, *_rates(found.machines), "", note]
    head = ("machine", "an hour", "time", "full run", "smoke run")
    lines += [*table(head, [_priced(one) for one in cost.priced]), "", *_words(cost, cost.cheapest)]
    if not found.unpriced:
        return lines
    return [*lines, "", f"Time and cost are those of {plain(found.variant)}. Other machines:", "", *_rates(found.unpriced)]


def _market(found: ConfigReview) -> list[str]:
    """Return the machines in the order in which they would be tried, with the reasons."""
    ranked = found.ranking
    if ranked is None or not ranked.quotes:
        return []
    rows = [(plain(row.machine), row.price, row.total, plain(row.why)) for row in market_rows(ranked, found.spec.hardware)]
    more = [f"… and {len(ranked.quotes) - len(rows)} more."] if len(ranked.quotes) > len(rows) else []
    saving = [f"Saving: {plain(found.saving)}."] if found.saving else []
    foot = " ".join([*more, f"{ranked.basis[:1].upper()}{plain(ranked.basis[1:])}.", *saving])
    return [
        "",
        "Machines in the order in which they would be tried:",
        "",
        *table(("machine", "an hour", "to the end", "why"), rows),
        "",
        foot,
    ]


def _rates(machines: Sequence[Machine]) -> list[str]:
    return table(("machine", "an hour"), [(plain(machine.name), usd(machine.rate.usd_per_hour)) for machine in machines])


def _priced(one: Priced) -> tuple[str, ...]:
    smoke = usd_range(one.smoke.usd) if one.smoke is not None else "-"
    rate = usd(one.machine.rate.usd_per_hour)
    return plain(one.machine.name), rate, time_range(one.full.time), plain(usd_range(one.full.usd)), plain(smoke)


def _words(found: CostReport, best: Priced) -> list[str]:
    budget = found.spec.budget
    return [
        f"Budget: {plain(best.full.budget_says(budget.usd, budget.hours))}.",
        f"A step takes {time_range(best.step.seconds)}, {_STEP_FROM[best.step.known]}.",
        *(f"Measured on {plain(one.text)}." for one in found.measured),
        *([PROBE] if best.step.known is Known.PUBLISHED else []),
    ]


def _memory(found: MemoryReport) -> list[str]:
    need = found.need
    uses = [(plain(use.phase), f"{use.total / GIB:.1f}") for use in need.uses]
    lines = table(("phase of the trainer", "GiB on each GPU"), [*uses, ("**peak, nine in ten**", f"**{size_range(need.low, need.high)}**")])
    rows: list[tuple[str, ...]] = []
    for one in found.kinds:
        server = f"{one.serves:.0f} sequences of {found.plan.serving.seq_len:,} at once" if one.share is not None else "-"
        rows.append((plain(one.kind), f"{one.left / GIB:.0f}", _FITS[one.fit], server))
    return [*lines, "", *table(("GPU", "GiB for the trainer", "the trainer", "the server's cache"), rows)] if rows else lines


def _changes(changes: Sequence[Change]) -> list[str]:
    rows = [
        (code(change.key), plain(redacted(change.text)), plain(change.meaning) or "of the trainer's config")
        for change in changes[:CHANGES_MAX]
    ]
    lines = table(("key", "from, to", "what it is"), rows)
    return [*lines, "", f"… and {len(changes) - CHANGES_MAX} more"] if len(changes) > CHANGES_MAX else lines
