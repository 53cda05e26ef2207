"""Report what a launch would do now: the decision, the machine it would rent, and why other machines are
rejected.
"""

from collections.abc import Iterator
from dataclasses import asdict

from prime_train.app.home import Home
from prime_train.clock import wall_s
from prime_train.estimate.run_costs import run_costs
from prime_train.launch.code.archive import CodeSnapshot
from prime_train.launch.launch import LaunchPlan
from prime_train.launch.launch_config import Checked
from prime_train.market.ranking import Ranking
from prime_train.planning.market_for_run import market_for, seen_here
from prime_train.planning.market_rows import (
    as_json,
    excluded_rows,
    exclusion_as_json,
    market_rows,
    named,
    save_advice,
)
from prime_train.planning.offered import offers_there
from prime_train.runs.decide import Launch, decide
from prime_train.runs.offer import Offer, variant_title
from prime_train.runs.run import Run
from prime_train.runs.verdict import PodsObserved
from prime_train.spec.spec import RunSpec
from prime_train.text.deadline import parse_deadline
from prime_train.text.formatting import size, span, usd
from prime_train.trainers.conventions.environment_by_version import VersionedVariable, machine, possible
from prime_train.trainers.of_spec import trainer_for
from prime_train.trainers.prime_rl.conventions import KIND, shares_gpu

NEXT_MAX = 5
REASONS_MAX = 10


def ranking(home: Home, what: Checked) -> Ranking:
    """Return the offers, ranked as a launch would rank them now. Raises ExternalError if no provider answers,
    or can be asked from here.
    """
    now_s, spec = wall_s(), what.spec
    decision = decide(Run(spec.name, spec, created_s=now_s), None, PodsObserved((), frozenset()), now_s)
    on_demand = isinstance(decision, Launch) and decision.on_demand
    from_step = what.start.manifest.step if what.start is not None else None
    market = market_for(spec, what.forecast, seen_here(home), from_step=from_step, probe=what.probe)
    there = offers_there(home, spec.hardware)
    offers = there if there is not None else home.pods().offers(spec.hardware)
    return run_costs(offers, spec.hardware, market, on_demand=on_demand).ranking


def rows(what: Checked, ranked: Ranking) -> Iterator[tuple[str, str]]:
    """Yield the report as rows of a name and a text."""
    spec, made = what.spec, what.plan
    yield from _decided(what, ranked)
    yield from _next_best(spec, ranked)
    if what.start is not None:
        yield "starts from", what.start.text
    if spec.trainer.kind == KIND and shares_gpu(spec.hardware):
        yield (
            "GPU",
            "trainer and inference share it: the server is started first, then prime-rl's launcher without "
            "it",
        )
    yield "code", _code(spec, made)
    yield "commit", made.commit or "none: not a git checkout"
    for row in environment_rows(spec, ranked):
        yield "environment", f"{row.variable}={row.value} {row.condition}: {row.reason}"
    yield from _left_out(spec, ranked)
    yield "", "nothing was launched"


def record(what: Checked, ranked: Ranking) -> dict[str, object]:
    """Return the offers for JSON output: those that fit in the order in which they would be tried, and the
    others with the reason.
    """
    spec, made = what.spec, what.plan
    return {
        "offers": [
            {
                **asdict(quote.offer),
                "variant": variant_title(quote.offer, spec.hardware),
                "to_the_end": as_json(quote),
            }
            | {"excluded": exclusion_as_json(ranked.exclusions.get(quote.offer))}
            for quote in ranked.quotes
        ],
        "based_on": ranked.basis,
        "length": ranked.length,
        "left_out": [{**asdict(row.offer), "why": row.why} for row in ranked.left_out],
        "environment": [
            {
                "variable": row.variable,
                "value": row.value,
                "condition": row.condition,
                "reason": row.reason,
                "source": row.source,
            }
            for row in environment_rows(spec, ranked)
        ],
        "starts_from": [asdict(one) for one in what.start.lineage.ancestors]
        if what.start is not None
        else [],
        "commit": made.commit,
        "files": len(made.snapshot.files) if made.snapshot is not None else None,
        "size_bytes": made.snapshot.size if made.snapshot is not None else None,
    }


def environment_rows(spec: RunSpec, ranked: Ranking) -> list[VersionedVariable]:
    """Return the rows of the table of variables by version that would apply on the first machine. Versions
    are known only there.
    """
    if not ranked.best or not spec.hardware.gpus:
        return []
    offer = ranked.best[0]
    present = {
        *spec.environment,
        *spec.secrets,
        *trainer_for(spec).environment(spec, attempt=1, run_id=spec.name),
    }
    return list(possible(machine(spec, (offer.gpu,) * offer.gpu_count), present))


def _decided(what: Checked, ranked: Ranking) -> Iterator[tuple[str, str]]:
    spec = what.spec
    if not ranked.best:
        yield "decision", "wait: no suitable machine is for rent now"
        return
    first, quote = ranked.best[0], ranked.quotes[0]
    yield "decision", f"launch on {named(first, spec.hardware)}"
    yield "price", f"{usd(first.usd_per_hour)} an hour"
    yield "expected", quote.why
    if first in ranked.exclusions:
        yield "although", f"{ranked.exclusions[first].text}; nothing better is for rent"
    advice = save_advice(quote, spec, what.forecast)
    if advice:
        yield "saving", advice
    yield "budget", f"{usd(spec.budget.usd)}{_hours(spec)}: enough for {span(_affordable_s(spec, first))}"


def _next_best(spec: RunSpec, ranked: Ranking) -> Iterator[tuple[str, str]]:
    for row in market_rows(ranked, spec.hardware, limit=1 + NEXT_MAX)[1:]:
        yield "next best", f"{row.machine}: {row.why}"
    if len(ranked.best) > 1 + NEXT_MAX:
        yield "", f"and {len(ranked.best) - 1 - NEXT_MAX} more suitable machines"
    for line in excluded_rows(ranked.exclusions):
        yield "comes last", line
    if ranked.best:
        if ranked.length:
            yield "length", ranked.length
        yield "based on", ranked.basis


def _left_out(spec: RunSpec, ranked: Ranking) -> Iterator[tuple[str, str]]:
    """Yield a row for each reason for rejection, with the offers rejected for it."""
    reasons: dict[str, list[Offer]] = {}
    for left_out in ranked.left_out:
        reasons.setdefault(left_out.why, []).append(left_out.offer)
    for why, offers in list(reasons.items())[:REASONS_MAX]:
        more = f" and {len(offers) - 1} more" if len(offers) > 1 else ""
        yield "left out", f"{named(offers[0], spec.hardware)}{more}: {why}"
    if len(reasons) > REASONS_MAX:
        yield (
            "",
            f"and {sum(map(len, list(reasons.values())[REASONS_MAX:]))} for {len(reasons) - REASONS_MAX} "
            "more reasons",
        )


def _affordable_s(spec: RunSpec, offer: Offer) -> float:
    by_money_s = spec.budget.usd / offer.usd_per_hour * 3600 if offer.usd_per_hour > 0 else float("inf")
    by_hours_s = spec.budget.hours * 3600 if spec.budget.hours is not None else float("inf")
    by_deadline_s = (
        parse_deadline(spec.budget.deadline) - wall_s() if spec.budget.deadline is not None else float("inf")
    )
    least_s = max(0.0, min(by_money_s, by_hours_s, by_deadline_s))
    return least_s if least_s != float("inf") else 0.0


def _hours(spec: RunSpec) -> str:
    hours = spec.budget.hours
    until = f", until {spec.budget.deadline}" if spec.budget.deadline is not None else ""
    return (f", {hours:g} hour{'' if hours == 1 else 's'}" if hours is not None else "") + until


def _code(spec: RunSpec, made: LaunchPlan) -> str:
    if made.snapshot is None:
        return f"{spec.trainer.code.repo}"
    return code_summary(made.snapshot)


def code_summary(snapshot: CodeSnapshot) -> str:
    """Return what goes up: the folder, the number of its files, and their size."""
    return f"{snapshot.folder.absolute()}: {len(snapshot.files)} files, {size(snapshot.size)}"
