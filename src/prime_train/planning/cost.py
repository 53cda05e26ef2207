"""Estimate how long a run takes and what it costs, item by item."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from prime_train.advice import Advice, Call, Operation, Option, SettingAdvice
from prime_train.app.home import Home
from prime_train.checks.memory_plan import plan_of
from prime_train.configs.loader import LoadedConfig, loaded_config
from prime_train.errors import UsageError
from prime_train.estimate.job import JobDescription
from prime_train.exit_codes import Exit
from prime_train.market.quotes import Market
from prime_train.planning.cost_forecast import forecast_of
from prime_train.planning.cost_report import CostReport, cost_report
from prime_train.planning.limits import STEP_S_MAX, STEPS_MAX, TOKENS_MAX, USD_PER_HOUR_MAX
from prime_train.planning.market_for_run import market_for, seen_here
from prime_train.planning.memory import check_range, plan_for
from prime_train.planning.offered import Offered, offered_here, priced_offers
from prime_train.spec.rule import Subject
from prime_train.spec.spec import RunSpec


@dataclass(frozen=True)
class CostRequest:
    """A request to estimate the cost of a run. Fields that are None or empty are taken from the config.

    `usd_per_hour`: the price of a machine in US dollars per hour; None: the machines for rent now, as a
    launch would try them, or without an account those of the catalogue. `spot`: whether the machine of that
    price can be preempted. `step_s`: seconds per step; None: as in an earlier run of the config, or estimated
    from published speeds. `steps`: steps of the run. `tokens`: tokens per step. `model`: an id such as
    `Qwen/Qwen3-8B`, or a size such as `8B`. With either of them, the time of a step is estimated also if it
    was measured.
    """

    config: Path
    usd_per_hour: float | None = None
    step_s: float | None = None
    steps: int | None = None
    tokens: float | None = None
    model: str = ""
    spot: bool | None = None

    def __post_init__(self) -> None:
        check_range(SettingAdvice.USD_PER_HOUR, self.usd_per_hour, 0, USD_PER_HOUR_MAX)
        check_range(SettingAdvice.STEP_S, self.step_s, 0, STEP_S_MAX)
        check_range(SettingAdvice.STEPS, self.steps, 1, STEPS_MAX)
        check_range(SettingAdvice.TOKENS, self.tokens, 1, TOKENS_MAX)


def estimate_cost(home: Home, request: CostRequest) -> CostReport:
    """Return the bill of the run on each type of machine, in the order in which a launch would try them: US
    dollars and seconds of its start, smoke run, training, saving and losses.

    Sends requests unless `request.usd_per_hour` is set. Raises UsageError if the config is not understood or
    no machine fits; and ExternalError if no provider answers.
    """
    loaded = loaded_config(request.config, home.environment)
    spec = loaded.spec
    if spec is None:
        message = f"{request.config} is a trainer's config, which contains no machine and no budget"
        raise UsageError(message, fix="give the config of a run that names this file")
    market = _market(home, spec, loaded, request)
    found = Offered() if request.usd_per_hour is not None else offered_here(home, spec.hardware)
    if request.step_s is not None:
        market = replace(market, work=replace(market.work, given_step_s=request.step_s))
    priced = priced_offers(found, loaded, market, usd_per_hour=request.usd_per_hour, spot=request.spot)
    if not priced.costs.machines:
        fix = Advice(
            "give a price with ",
            Option(SettingAdvice.USD_PER_HOUR, "20"),
            "; ",
            Call(Operation.FIND),
            " lists the machines for rent",
        )
        why = priced.costs.ranking.why_none if found.offers or not found.prices else found.prices
        raise UsageError(f"no machine for rent fits the config: {why}", fix=fix, code=Exit.FINDINGS)
    return cost_report(str(request.config), spec, priced.costs, priced.prices)


def _market(home: Home, spec: RunSpec, loaded: LoadedConfig, request: CostRequest) -> Market:
    """Return what the costs are derived from: the same as of a launch, unless the request says otherwise."""
    plan: Callable[[Subject], JobDescription | None] = (
        partial(_plan, request) if request.model or request.tokens is not None else plan_of
    )
    forecast = forecast_of([subject for _, subject in loaded.judged], plan)
    seen = seen_here(home)
    if plan is not plan_of and seen is not None:  # what was measured is about another model or batch
        seen = replace(seen, steps={}, similar={}, lengths={})
    market = market_for(spec, forecast, seen)
    return (
        market
        if request.steps is None
        else replace(market, work=replace(market.work, steps=request.steps, guess=None))
    )


def _plan(request: CostRequest, subject: Subject) -> JobDescription | None:
    plan = plan_for(subject, request.model, None) if request.model else plan_of(subject)
    if plan is None or request.tokens is None:
        return plan
    return replace(plan, batch_tokens=math.ceil(request.tokens), shortest=1.0)
