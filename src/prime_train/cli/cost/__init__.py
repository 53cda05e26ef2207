"""`prime-train cost CONFIG`: estimate the duration and the cost of a run, itemised."""

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.core.spec import RunSpec
    from prime_train.estimate.cost.bill import StepTime
    from prime_train.reports.cost.report import Machine
    from prime_train.rules.hardware.memory_plan import Plan
    from prime_train.rules.rule import Subject

STEPS_MAX = 10**9
STEP_S_MAX = 10**6
USD_PER_HOUR_MAX = 10**5


def cost(
    config: Annotated[Path, typer.Argument(help="A run's config, such as configs/demo.yaml.", show_default=False)],
    usd_per_hour: Annotated[float, typer.Option(min=0, max=USD_PER_HOUR_MAX, help="Price of the whole machine; 0: see --offers.")] = 0,
    offers: Annotated[bool, typer.Option("--offers", help="Ask the provider for prices.")] = False,
    step_s: Annotated[float, typer.Option(min=0, max=STEP_S_MAX, help="Seconds of a step; 0: of an earlier run, or estimated.")] = 0,
    steps: Annotated[int, typer.Option(min=0, max=STEPS_MAX, help="Steps; 0: as the config says.")] = 0,
    tokens: Annotated[str, typer.Option(help="Tokens of a step, such as 500k, to estimate its time.", show_default=False)] = "",
    model: Annotated[str, typer.Option(help="Model, where the config does not tell.", show_default=False)] = "",
    spot: Annotated[
        bool | None, typer.Option("--spot/--on-demand", help="With --usd-per-hour: can it be taken away?", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> Exit:
    """Show what a run costs, and why.

    Start, smoke run, training, preemptions, and whether its budget is enough.

    The time of a step is the one given, else that of an earlier run of the same config on this machine, else estimated from published
    speeds; it says which. Nothing is asked of the network but with --offers.
    """
    from prime_train.cli.cost import show as cost_show
    from prime_train.cli.memory import subject_of
    from prime_train.reports.cost import as_json as cost_json
    from prime_train.reports.cost.report import told

    subject = subject_of(config)
    spec = subject.spec
    if spec is None:
        raise UsageError(f"{config} is a trainer's config: it names no machine and no budget", fix="give the run's config that names it")
    plan = _plan(subject, model, tokens)
    machines = _offered(spec) if offers else _priced(spec, usd_per_hour, spot)
    known = _known(spec, step_s)
    found = told(str(config), subject, machines, steps=_steps(spec, steps), known=known, plan=plan)
    if not found.priced:
        raise UsageError(
            _unknown_step(machines), fix="say how long a step takes with --step-s, or which --model and how many --tokens it trains on"
        )
    if as_json:
        print(cost_json.text(found))
    else:
        cost_show.show(found)
    return Exit.OK


def _plan(subject: "Subject", name: str, tokens: str) -> "Plan | None":
    from prime_train.cli.amounts import tokens as parse_tokens
    from prime_train.cli.memory import plan_for
    from prime_train.rules.hardware.memory_plan import plan_of

    plan = plan_for(subject, name, None) if name else plan_of(subject)
    return replace(plan, batch_tokens=math.ceil(parse_tokens(tokens)), shortest=1.0) if plan is not None and tokens else plan


def _steps(spec: "RunSpec", steps: int) -> int:
    found = steps or spec.trainer.steps
    if not found:
        raise UsageError("the config does not tell how many steps the run has", fix="set trainer.steps, or say it with --steps 1000")
    return found


def _known(spec: "RunSpec", step_s: float) -> "StepTime | None":
    """Return the time of a step as given, or as measured in an earlier run of the same config, or None."""
    from prime_train.control_plane.wiring.home import Home
    from prime_train.estimate.cost.bill import Known, StepTime
    from prime_train.estimate.cost.duration import Between
    from prime_train.estimate.cost.measured import measured

    if step_s > 0:
        return StepTime(Between(step_s, step_s), Known.GIVEN)
    home = Home.of(os.environ)
    # Reading must not create a home if there is none.
    return measured(home.store().list_runs(), spec) if home.has_runs else None


def _priced(spec: "RunSpec", usd_per_hour: float, spot: bool | None) -> "tuple[Machine, ...]":
    """Return one machine at the given price, or at the highest that the config allows. Raises UsageError if neither is set."""
    from prime_train.core.spec import Spot
    from prime_train.estimate.cost.bill import Rate
    from prime_train.reports.cost.report import Machine

    price = usd_per_hour or spec.hardware.usd_per_hour_max
    if price is None:
        raise UsageError("no price is known", fix="say it with --usd-per-hour 20, or ask the provider with --offers")
    may_go = spec.hardware.spot is not Spot.NEVER if spot is None else spot
    kind = spec.hardware.gpus[0] if spec.hardware.gpus else ""
    most = "" if usd_per_hour else ", the most it may cost"
    sold = "spot" if may_go else "on-demand"
    machine = f"{spec.hardware.count}x {kind} {sold}" if kind else f"one {sold} machine"
    return (Machine(f"{machine}{most}", kind, spec.hardware.count, Rate(price, may_go)),)


def _offered(spec: "RunSpec") -> "tuple[Machine, ...]":
    from prime_train.control_plane.wiring.home import Home
    from prime_train.core.offers import rank
    from prime_train.reports.cost.report import of_offers

    ranking = rank(Home.of(os.environ).pods().offers(spec.hardware), spec.hardware)
    if not ranking.best:
        why = ranking.left_out[0].why if ranking.left_out else "nothing is for rent"
        raise UsageError(f"no machine for rent fits the config: {why}", fix="prime-train find shows what is for rent", code=Exit.FINDINGS)
    return of_offers(ranking.best)


def _unknown_step(machines: "tuple[Machine, ...]") -> str:
    names = ", ".join(machine.name for machine in machines)
    return f"how long a step takes on {names} is not known"
