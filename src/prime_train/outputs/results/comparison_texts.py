"""The results of a run beside those of a base run, in words and tables, and what follows for the check of its
pull request.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prime_train.outputs.results.comparison import ComparedNumber, Comparison, PullResults
from prime_train.outputs.results.numbers import RunResults
from prime_train.runs.run import Run
from prime_train.spec.requirements import JudgedRequirement, Met
from prime_train.text.formatting import span
from prime_train.text.markdown import code, plain, table
from prime_train.text.redaction import redacted

HEAD = ("number", "base", "this run", "difference", "required", "")
NOT_REPORTED, NOT_FINITE = "not reported", "not finite"
_MARKS = {Met.MET: "✅", Met.NOT_MET: "❌", Met.PENDING: "⏳"}
_STATES = {Met.MET: "success", Met.NOT_MET: "failure", Met.PENDING: "pending"}
NO_BASE = (
    "There is no base to compare with: no run of this config that was launched from the base branch has "
    "succeeded."
)


@dataclass(frozen=True)
class RequirementCheck:
    """The check of a pull request for one config. `state`: success, failure or pending, as GitHub names
    them.
    """

    state: str
    text: str


def check_of(run: Run, found: PullResults) -> RequirementCheck | None:
    """Return the check that tells whether the run meets its requirements; None if it has none, was not
    launched from the branch of a pull request, or a newer run decides.
    """
    if (
        not run.spec.require
        or run.origin is None
        or run.origin.pull is None
        or not run.origin.base
        or not found.is_newest
    ):
        return None
    if not run.is_over:
        return RequirementCheck("pending", f"{run.run_id} has not ended")
    if found.unread:
        return RequirementCheck(
            "pending", f"the results of {run.run_id} cannot be read: {redacted(found.unread)}"
        )
    comparison = found.comparison
    if comparison is None or comparison.outcome is None:
        return RequirementCheck("pending", f"{run.run_id} has ended without any result")
    worst = [one for one in comparison.requirements if one.outcome is comparison.outcome]
    if comparison.outcome is Met.MET and len(worst) > 1:
        return RequirementCheck("success", f"all {len(worst)} requirements are met")
    more = f" (and {len(worst) - 1} more)" if len(worst) > 1 else ""
    return RequirementCheck(
        _STATES[comparison.outcome],
        f"{comparison.outcome}: {worst[0].requirement.text}{_reason(comparison, worst[0])}{more}",
    )


def lines_of(comparison: Comparison, now_s: int) -> list[str]:
    """Return the comparison as Markdown lines."""
    lines = [source(comparison, now_s, code), ""]
    lines += table(HEAD, rows_of(comparison, code))
    reasons = reasons_of(comparison, code, plain)
    return lines + [line for reason in reasons for line in ("", reason)]


def reasons_of(
    comparison: Comparison, named: Callable[[str], str] = str, told: Callable[[str], str] = str
) -> list[str]:
    """Return, for each requirement without two numbers to compare, why that is so. `named` formats the
    requirements, `told` the reasons.
    """
    return [f"{named(one.requirement.text)}: {told(one.why)}." for one in comparison.requirements if one.why]


def row_of(comparison: Comparison, now_s: int) -> dict[str, object]:
    """Return the comparison as plain values for JSON."""
    base = comparison.base
    return {
        "run": _side(comparison.this),
        "base": _side(base) | {"age_s": max(0, now_s - base.ended_s)} if base is not None else None,
        "seeds": list(comparison.seeds),
        "numbers": [
            {
                "name": one.name,
                "base": one.base,
                "this": one.this,
                "difference": one.difference,
                "error": one.error,
            }
            for one in comparison.numbers
        ],
        "requirements": [
            {"text": one.requirement.text, "outcome": one.outcome.value, "limit": one.limit, "why": one.why}
            for one in comparison.requirements
        ],
        "outcome": comparison.outcome.value if comparison.outcome is not None else None,
    }


def _side(results: RunResults) -> dict[str, object]:
    return {
        "run": results.run,
        "step": results.step,
        "commit": results.commit,
        "ended_s": results.ended_s,
        "seed": results.seed,
    }


def source(comparison: Comparison, now_s: int, named: Callable[[str], str] = str) -> str:
    """Return what is compared with what, as sentences. `named` formats the names of runs and commits."""
    base = comparison.base
    if base is None:
        return NO_BASE
    text = f"Base: {named(base.run)}, {_place(base, named)}, ended {span(max(0, now_s - base.ended_s))} ago."
    if comparison.seeds:
        seeds = ", ".join(map(str, comparison.seeds))
        return (
            f"{text} Means of {len(comparison.seeds)} pairs of runs with the same seed ({seeds}); ± "
            "is the standard error."
        )
    return f"{text} One run is compared with one run, so it is not known how much of a difference is noise."


def _place(results: RunResults, named: Callable[[str], str]) -> str:
    commit = f" at commit {named(results.commit[:12])}" if results.commit else ""
    return f"step {results.step:,}{commit}"


def rows_of(comparison: Comparison, formatted: Callable[[str], str] = str) -> list[tuple[str, ...]]:
    """Return the rows of a table with the columns `HEAD`; a number with several requirements has several
    rows.
    """
    by_name: dict[str, list[JudgedRequirement]] = {}
    for one in comparison.requirements:
        by_name.setdefault(one.requirement.name, []).append(one)
    rows: list[tuple[str, ...]] = []
    for number in comparison.numbers:
        cells: tuple[str, ...] = (
            formatted(number.name),
            _shown(number.base, is_there=number.in_base, has_side=comparison.base is not None),
        )
        cells += (_shown(number.this, is_there=number.in_this), _difference(number))
        requirements: Sequence[JudgedRequirement | None] = by_name.get(number.name) or [None]
        rows += [(*cells, *_required(one, formatted)) for one in requirements]
    return rows


def _required(one: JudgedRequirement | None, formatted: Callable[[str], str]) -> tuple[str, str]:
    if one is None:
        return "", ""
    limit = f" ({one.limit:.6g})" if one.limit is not None and one.requirement.of_base else ""
    return f"{formatted(one.requirement.text)}{limit}", f"{_MARKS[one.outcome]} {one.outcome}"


def _shown(value: float | None, *, is_there: bool, has_side: bool = True) -> str:
    if not has_side:
        return "-"
    return f"{value:.6g}" if value is not None else NOT_FINITE if is_there else NOT_REPORTED


def _difference(number: ComparedNumber) -> str:
    difference = number.difference
    if difference is None:
        return "-"
    error = f" ± {number.error:.2g}" if number.error is not None else ""
    share = f" ({difference / abs(number.base):+.1%})" if number.base else ""
    return f"{difference:+.6g}{error}{share}"


def _reason(comparison: Comparison, one: JudgedRequirement) -> str:
    if one.why:
        return f" ({one.why})"
    seen = next((number.this for number in comparison.numbers if number.name == one.requirement.name), None)
    limit = f", the limit is {one.limit:.6g}" if one.limit is not None and one.requirement.of_base else ""
    return f" (it is {seen:.6g}{limit})" if seen is not None else ""
