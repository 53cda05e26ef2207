"""Estimate how long a run takes and what it costs, item by item."""

import math
from dataclasses import dataclass, replace
from pathlib import Path

from prime_train.control_plane.wiring.home import Home
from prime_train.core.advice import Advice, Call, Operation, Option, Setting
from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit
from prime_train.core.offers import Offer, rank, variant_of
from prime_train.core.spec import RunSpec
from prime_train.core.spec_choices import Spot
from prime_train.estimate.cost.bill import Known, Rate, StepTime
from prime_train.estimate.cost.duration import Between
from prime_train.operations.launching.market import market_for, seen_here
from prime_train.operations.memory import check_range, loaded_config, plan_for
from prime_train.reports.cost.forecast import forecast_of
from prime_train.reports.cost.machine import Machine
from prime_train.reports.cost.report import CostReport, all_of, cost_report, of_offers
from prime_train.rules.hardware.memory_plan import Plan, plan_of, steps_of
from prime_train.rules.rule import Subject

STEPS_MAX = 10**9
STEP_S_MAX = 10**6
TOKENS_MAX = 10**15
USD_PER_HOUR_MAX = 10**5


@dataclass(frozen=True)
class CostRequest:
    """A request to estimate the cost of a run. Fields that are None or empty are taken from the config.

    `usd_per_hour`: the price of the machine in US dollars per hour; None: the highest that the config allows. `spot`: whether the machine
    of that price can be preempted. `offers`: request prices from the provider instead. `step_s`: seconds per step; None: as in an earlier
    run of the config, or estimated from published speeds. `steps`: steps of the run. `tokens`: tokens per step. `model`: an id such as
    `Qwen/Qwen3-8B`, or a size such as `8B`. With either of them, the time of a step is estimated also if it was measured.
    """

    config: Path
    usd_per_hour: float | None = None
    offers: bool = False
    step_s: float | None = None
    steps: int | None = None
    tokens: float | None = None
    model: str = ""
    spot: bool | None = None

    def __post_init__(self) -> None:
        check_range(Setting.USD_PER_HOUR, self.usd_per_hour, 0, USD_PER_HOUR_MAX)
        check_range(Setting.STEP_S, self.step_s, 0, STEP_S_MAX)
        check_range(Setting.STEPS, self.steps, 1, STEPS_MAX)
        check_range(Setting.TOKENS, self.tokens, 1, TOKENS_MAX)


def estimate_cost(home: Home, request: CostRequest) -> CostReport:
    """Return the bill of the run on each machine: US dollars and seconds of its start, smoke run, training, saving and preemptions.

    Sends requests only if `request.offers` is set. Raises UsageError if the config is not understood, the price, the number of steps or the
    step time is not known, or no machine for rent fits; and ExternalError if the provider or the store does not answer.
    """
    loaded = loaded_config(request.config, home.environment)
    whole = loaded.spec
    if whole is None:
        message = f"{request.config} is a trainer's config, which contains no machine and no budget"
        raise UsageError(message, fix="give the config of a run that names this file")
    known = StepTime(Between(request.step_s, request.step_s), Known.GIVEN) if request.step_s else None
    market = market_for(whole, forecast_of([subject for _, subject in loaded.judged]), seen_here(home))
    if request.model or request.tokens is not None:  # what was measured is about another model or batch
        market = replace(market, work=replace(market.work, step_times={}))
    offered = _offered(home, whole) if request.offers else ()
    reports = []
    for number, (variant, subject) in enumerate(loaded.judged):
        spec = subject.spec
        assert spec is not None
        if request.offers:
            alike = [offer for offer in offered if not variant or variant_of(offer, whole.hardware) == number]
            machines = of_offers(alike, whole.hardware)
        else:
            machines = _priced(spec, request, variant)
        steps, plan = _steps(subject, request.steps), _plan(subject, request)
        reports.append(cost_report(str(request.config), subject, machines, steps=steps, known=known, plan=plan, market=market))
    found = all_of(reports)
    if not found.priced:
        ways = [Option(one) for one in (Setting.STEP_S, Setting.MODEL, Setting.TOKENS)]
        fix = Advice("set how long a step takes with ", ways[0], ", or which ", ways[1], " and how many ", ways[2], " it trains on")
        raise UsageError(f"the time of a step on {', '.join(found.unknown)} is unknown", fix=fix)
    return found


def _plan(subject: Subject, request: CostRequest) -> Plan | None:
    plan = plan_for(subject, request.model, None) if request.model else plan_of(subject)
    if plan is None or request.tokens is None:
        return plan
    return replace(plan, batch_tokens=math.ceil(request.tokens), shortest=1.0)


def _steps(subject: Subject, steps: int | None) -> int:
    """Return the number of steps: the given one, that of the run, or that of its trainer's own settings."""
    found = steps or (subject.spec.trainer.steps if subject.spec is not None else None) or steps_of(subject)
    if not found:
        fix = Advice("set trainer.steps, or use ", Option(Setting.STEPS, "1000"))
        raise UsageError("the config does not set the number of steps", fix=fix)
    return found


def _priced(spec: RunSpec, request: CostRequest, variant: str) -> tuple[Machine, ...]:
    """Return one machine at the given price, or at the highest that the config allows. Raises UsageError if neither is set. `variant`: the
    variant of the config that `spec` is, in words."""
    may_go = spec.hardware.spot is not Spot.NEVER if request.spot is None else request.spot
    machine = _machine(spec, request.usd_per_hour, may_go) if request.usd_per_hour else machine_at_most(spec, may_go)
    if machine is None:
        fix = Advice("set it with ", Option(Setting.USD_PER_HOUR, "20"), ", or query the provider with ", Option(Setting.OFFERS))
        raise UsageError("the price of the machine is unknown", fix=fix)
    return (replace(machine, name=f"{machine.name}, {variant}") if variant else machine,)


def machine_at_most(spec: RunSpec, may_go: bool | None = None) -> Machine | None:
    """Return a machine at the highest price that the config allows, or None if the config sets none. `may_go`: whether the machine can be
    preempted; None: it can, unless the config excludes spot machines."""
    price = spec.hardware.usd_per_hour_max
    if price is None:
        return None
    machine = _machine(spec, price, spec.hardware.spot is not Spot.NEVER if may_go is None else may_go)
    return replace(machine, name=f"{machine.name}, the most it may cost")


def _machine(spec: RunSpec, usd_per_hour: float, may_go: bool) -> Machine:
    kind = spec.hardware.gpus[0] if spec.hardware.gpus else ""
    sold = "spot" if may_go else "on-demand"
    name = f"{spec.hardware.count}x {kind} {sold}" if kind else f"one {sold} machine"
    return Machine(name, kind, spec.hardware.count, Rate(usd_per_hour, may_go))


def _offered(home: Home, spec: RunSpec) -> tuple[Offer, ...]:
    ranking = rank(home.pods().offers(spec.hardware), spec.hardware)
    if not ranking.best:
        fix = Advice(Call(Operation.FIND), " lists the machines for rent")
        raise UsageError(f"no machine for rent fits the config: {ranking.why_none}", fix=fix, code=Exit.FINDINGS)
    return ranking.best
