"""The cost report as JSON: the same as the text, unrounded, with ranges as [low, high]."""

import json
from dataclasses import asdict

from prime_train.estimate.cost.bill import Bill
from prime_train.estimate.cost.duration import HOUR_S, Between
from prime_train.reports.cost.report import CostReport, Priced


def text(found: CostReport) -> str:
    fields = {
        "config": found.title,
        "run": found.spec.name,
        "budget_usd": found.spec.budget.usd,
        "machines": [_machine(found, one) for one in found.priced],
        "left_out": list(found.unknown),
        "measured": [asdict(one.measurement) | {"gpu": one.gpu, "gpu_count": one.gpu_count} for one in found.measured],
    }
    return json.dumps(fields, indent=2)


def _machine(found: CostReport, one: Priced) -> dict[str, object]:
    machine, budget = one.machine, found.spec.budget
    return {
        "machine": machine.name,
        "gpu": machine.kind,
        "gpu_count": machine.count,
        "usd_per_hour": machine.rate.usd_per_hour,
        "spot": machine.rate.spot,
        "step": {"known": one.step.known, "why": one.step.why, "seconds": _ends(one.step.seconds)},
        "full": _bill(one.full),
        "smoke": _bill(one.smoke) if one.smoke is not None else None,
        "budget": one.full.budget_says(budget.usd, budget.hours),
    }


def _bill(bill: Bill) -> dict[str, object]:
    lines = [
        {"name": line.name, "seconds": _ends(line.time), "usd": _ends(bill.rate.usd(line.time)), "why": line.why} for line in bill.lines
    ]
    return {"hours": _ends(bill.time * Between(1 / HOUR_S, 1 / HOUR_S)), "usd": _ends(bill.usd), "lines": lines}


def _ends(between: Between) -> list[float]:
    return [between.low, between.high]
