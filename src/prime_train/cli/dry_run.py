"""What a launch would do: the decision, the machine it would take, and why not the others."""

from typing import TYPE_CHECKING

import typer

from prime_train.cli.amounts import size, span, usd
from prime_train.cli.home import Home, wall_s
from prime_train.cli.launch import Plan
from prime_train.core.decide import Launch, decide
from prime_train.core.offers import Offer, Ranking, rank
from prime_train.core.run import Run
from prime_train.core.verdict import PodsSeen

if TYPE_CHECKING:
    from prime_train.core.spec import RunSpec

OFFERS_MAX = 20


def ranking(home: Home, spec: "RunSpec") -> Ranking:
    """The offers as a launch would rank them now."""
    now_s = wall_s()
    decision = decide(Run(spec.name, spec, created_s=now_s), None, PodsSeen((), frozenset()), now_s)
    on_demand = isinstance(decision, Launch) and decision.on_demand
    return rank(home.pods().offers(spec.hardware), spec.hardware, on_demand=on_demand)


def show(spec: "RunSpec", made: Plan, ranked: Ranking) -> None:
    first = ranked.best[0] if ranked.best else None
    if first is None:
        typer.echo("decision    wait: no machine that fits is for rent now")
    else:
        typer.echo(f"decision    launch on {_named(first)}")
        typer.echo(f"price       {usd(first.usd_per_hour)} an hour")
        typer.echo(f"budget      {usd(spec.budget.usd)}{_hours(spec)}: enough for {span(_affordable_s(spec, first))}")
    typer.echo(f"tree        {_tree(spec, made)}")
    typer.echo(f"commit      {made.commit or 'none: not a git checkout'}")
    for offer in ranked.best[1:OFFERS_MAX]:
        typer.echo(f"next best   {_named(offer)}, {usd(offer.usd_per_hour)} an hour")
    for row in ranked.left_out[:OFFERS_MAX]:
        typer.echo(f"left out    {_named(row.offer)}: {row.why}")
    typer.echo("nothing was launched")


def _affordable_s(spec: "RunSpec", offer: Offer) -> float:
    by_money_s = spec.budget.usd / offer.usd_per_hour * 3600 if offer.usd_per_hour > 0 else float("inf")
    by_hours_s = spec.budget.hours * 3600 if spec.budget.hours is not None else float("inf")
    least_s = min(by_money_s, by_hours_s)
    return least_s if least_s != float("inf") else 0.0


def _hours(spec: "RunSpec") -> str:
    return f", {spec.budget.hours:g} hours" if spec.budget.hours is not None else ""


def _named(offer: Offer) -> str:
    what = f"{offer.gpu_count} x {offer.gpu}, " if offer.gpu else ""
    return f"{offer.provider} {offer.offer_id} ({what}{'spot' if offer.spot else 'on-demand'})"


def _tree(spec: "RunSpec", made: Plan) -> str:
    if made.tree is None:
        return f"{spec.trainer.tree.repo}"
    return f"{made.tree.folder.absolute()}: {len(made.tree.files)} files, {size(made.tree.size)}"
