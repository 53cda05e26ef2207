"""The section on one run in a pull request comment: GPU memory, machines for rent, cost and changes to the config."""

from collections.abc import Iterator, Mapping, Sequence

from prime_train.configs.changes import Change, of_config, of_trainer
from prime_train.core.offers import Ranking
from prime_train.core.spec import RunSpec, Spot
from prime_train.core.text.formatting import usd
from prime_train.core.text.redaction import masked
from prime_train.estimate.cost.bill import Known, Rate
from prime_train.estimate.memory.phases import GIB
from prime_train.estimate.placement import Fit
from prime_train.reports.cost.report import Machine, Priced, Told, of_offers, told
from prime_train.reports.find.words import size_range, time_range, usd_range
from prime_train.reports.markdown import code, folded, plain, table
from prime_train.reports.memory.report import told as memory_told
from prime_train.rules.hardware.memory_plan import plan_of
from prime_train.rules.rule import Subject

CHANGES_MAX = 40
NO_PRICE = "No price is known: give the workflow a key that may look at offers, or set `hardware.usd_per_hour_max`."
_FITS = {Fit.YES: "fits", Fit.TIGHT: "tight: the upper end does not fit", Fit.NO: "**does not fit**"}
_STEP_FROM = {
    Known.GIVEN: "as given",
    Known.MEASURED: "as in an earlier run of this config",
    Known.PUBLISHED: "from published speeds of such GPUs",
}


Texts = Mapping[str, str | None]
"""File contents by path; None: the file does not exist."""


def block(file: str, subject: Subject, ranking: Ranking | None, *, before: Texts, after: Texts) -> list[str]:
    """Return the section as Markdown lines. `ranking`: the offers, None if the provider cannot be queried. `before` and `after`: contents
    of the config and the files it refers to, on the base branch and in the working folder."""
    spec = subject.spec
    assert spec is not None
    memory, changes = _memory(subject), list(_changed(before, after))
    lines = [f"#### {code(spec.name)} ({code(file)})", "", *_money(spec, subject, ranking)]
    if before.get(file) is None:
        lines += ["", "New: the base branch has no such config."]
    if memory:
        lines += ["", *folded("GPU memory", memory)]
    if changes:
        lines += ["", *folded(f"What changes ({len(changes)})", _changes(changes))]
    return lines


def _money(spec: RunSpec, subject: Subject, ranking: Ranking | None) -> list[str]:
    machines = _machines(spec, ranking)
    lines = _for_rent(ranking)
    if not machines:
        return [*lines, NO_PRICE] if ranking is None else lines
    if not spec.trainer.steps:
        return [*lines, *_rates(machines), "", "What the run costs is not known: `trainer.steps` is not set."]
    found = told("", subject, machines, steps=spec.trainer.steps, known=None, plan=plan_of(subject))
    if found.cheapest is None:
        said = "What the run costs is not known: no speed is published for this model on these machines."
        return [*lines, *_rates(machines), "", said]
    head = ("machine", "an hour", "time", "full run", "smoke run")
    return [*lines, *table(head, [_priced(one) for one in found.priced]), "", *_words(found, found.cheapest)]


def _machines(spec: RunSpec, ranking: Ranking | None) -> tuple[Machine, ...]:
    """Return the machines for rent now. If the offers are unknown, return one machine at the config's maximum price, or none if it sets no
    maximum."""
    if ranking is not None:
        return of_offers(ranking.best)
    most = spec.hardware.usd_per_hour_max
    if most is None:
        return ()
    kind = spec.hardware.gpus[0] if spec.hardware.gpus else ""
    name = f"{spec.hardware.count}x {kind}" if kind else "one machine"
    return (Machine(f"{name}, at the most it may cost", kind, spec.hardware.count, Rate(most, spec.hardware.spot is not Spot.NEVER)),)


def _for_rent(ranking: Ranking | None) -> list[str]:
    if ranking is None or ranking.best:
        return []
    why = ranking.left_out[0].why if ranking.left_out else "nothing is for rent"
    return [f"**No machine for rent fits now**: {plain(why)}. The run would wait for one.", ""]


def _rates(machines: Sequence[Machine]) -> list[str]:
    return table(("machine", "an hour"), [(plain(machine.name), usd(machine.rate.usd_per_hour)) for machine in machines])


def _priced(one: Priced) -> tuple[str, ...]:
    smoke = usd_range(one.smoke.usd) if one.smoke is not None else "-"
    rate = usd(one.machine.rate.usd_per_hour)
    return plain(one.machine.name), rate, time_range(one.full.time), plain(usd_range(one.full.usd)), plain(smoke)


def _words(found: Told, best: Priced) -> list[str]:
    budget = found.spec.budget
    return [
        f"Budget: {plain(best.full.budget_says(budget.usd, budget.hours))}.",
        f"A step takes {time_range(best.step.seconds)}, {_STEP_FROM[best.step.known]}.",
    ]


def _memory(subject: Subject) -> list[str]:
    """Return the lines on GPU memory; none if the config does not specify what is trained."""
    plan, spec = plan_of(subject), subject.spec
    if plan is None or spec is None:
        return []
    found = memory_told("", plan, spec.hardware.gpus)
    need = found.need
    uses = [(plain(use.phase), f"{use.total / GIB:.1f}") for use in need.uses]
    lines = table(("phase of the trainer", "GiB on each GPU"), [*uses, ("**peak, nine in ten**", f"**{size_range(need.low, need.high)}**")])
    rows: list[tuple[str, ...]] = []
    for one in found.kinds:
        server = f"{one.serves:.0f} sequences of {plan.serving.seq_len:,} at once" if one.share is not None else "-"
        rows.append((plain(one.kind), f"{one.left / GIB:.0f}", _FITS[one.fit], server))
    return [*lines, "", *table(("GPU", "GiB for the trainer", "the trainer", "the server's cache"), rows)] if rows else lines


def _changed(before: Texts, after: Texts) -> Iterator[Change]:
    """Yield the changes in files that exist in both `before` and `after`."""
    for file, text in after.items():
        old = before.get(file)
        if old is not None and text is not None and old != text:
            yield from (of_trainer(old, text) if file.endswith(".toml") else of_config(old, text)) or ()


def _changes(changes: Sequence[Change]) -> list[str]:
    rows = [
        (code(change.key), plain(masked(change.said)), plain(change.meaning) or "of the trainer's config")
        for change in changes[:CHANGES_MAX]
    ]
    lines = table(("key", "from, to", "what it is"), rows)
    return [*lines, "", f"… and {len(changes) - CHANGES_MAX} more"] if len(changes) > CHANGES_MAX else lines
