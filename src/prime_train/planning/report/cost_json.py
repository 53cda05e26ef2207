"""The cost report as JSON: the same as the text, unrounded, with ranges as [low, high]."""

import json
from dataclasses import asdict

from prime_train.estimate.cost.bill import Bill, known
from prime_train.estimate.cost.duration import HOUR_S, Between
from prime_train.planning.cost_report import CostReport, Priced
from prime_train.planning.market_rows import as_json as quote_as_json


def text(found: CostReport) -> str:
    fields = {
        "config": found.title,
        "run": found.spec.name,
        "budget_usd": found.spec.budget.usd,
        "prices": found.prices,
        "based_on": found.basis,
        "length": found.length,
        "machines": [_machine(found, one) for one in found.priced],
        "measured": [
            asdict(one.measurement) | {"gpu": one.gpu, "gpu_count": one.gpu_count} for one in found.measured
        ],
    }
    return json.dumps(fields, indent=2)


def _machine(found: CostReport, one: Priced) -> dict[str, object]:
    offer, step, budget = one.offer, one.step, found.spec.budget
    return {
        "machine": one.name,
        "provider": offer.provider,
        "offer_id": offer.offer_id,
        "gpu": offer.gpu,
        "gpu_count": offer.gpu_count,
        "usd_per_hour": offer.usd_per_hour,
        "spot": offer.spot,
        "fits": one.costs.quote.fit,
        "step": None
        if step is None
        else {
            "known": step.source,
            "why": known(step),
            "seconds": [step.seconds / step.spread, step.seconds * step.spread],
        },
        "to_the_end": quote_as_json(one.costs.quote),
        "full": _bill(one.full),
        "smoke": _bill(one.smoke),
        "budget": one.full.budget_says(budget.usd, budget.hours)
        if one.full is not None
        else one.costs.quote.why,
    }


def _bill(bill: Bill | None) -> dict[str, object] | None:
    if bill is None:
        return None
    return {
        "hours": _ends(bill.time * Between(1 / HOUR_S, 1 / HOUR_S)),
        "hours_expected": bill.expected_s / HOUR_S,
        "usd": _ends(bill.usd),
        "usd_expected": bill.expected_usd,
        "traffic_usd": bill.traffic_usd,
        "lines": [
            {
                "name": line.name,
                "seconds": _ends(line.time),
                "seconds_expected": line.expected_s,
                "usd": _ends(bill.usd_of(line.time)),
                "why": line.why,
            }
            for line in bill.lines
        ],
    }


def _ends(between: Between) -> list[float]:
    return [between.low, between.high]
