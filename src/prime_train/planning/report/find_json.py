"""The machines for rent as JSON: everything in the table and more, unrounded."""

import json
from collections.abc import Mapping, Sequence
from typing import TypedDict

from prime_train.estimate.cost.duration import Between
from prime_train.estimate.job import ModelTraining
from prime_train.estimate.memory.phases import GIB
from prime_train.planning.market_rows import as_json as quote_as_json
from prime_train.planning.market_rows import exclusion_as_json
from prime_train.planning.placement import Candidate, MachineConstraints, Placement
from prime_train.planning.report.recommendation import assumptions, hardware, left_out
from prime_train.text.invocations import worded


class Machine(TypedDict):
    """A machine for rent, as JSON. Ranges are [low, high]; None if the GPU is not known. `against` has the
    reasons against the machine and the options that would help.
    """

    provider: str
    offer_id: str
    gpu: str
    socket: str
    gpu_count: int
    gpu_gb: int
    gpu_tflops_bf16: float | None
    gpu_gb_per_s: float | None
    spot: bool
    usd_per_hour: float
    place: str
    stock: str
    disk_gib: int
    variant: str
    fits: str
    need_gib: list[float] | None
    need_gib_parts: dict[str, dict[str, float]] | None
    hours: list[float] | None
    usd: list[float] | None
    usd_expected: float | None
    to_the_end: Mapping[str, object] | None
    against: list[dict[str, str]]
    excluded: Mapping[str, object] | None


def text(
    placement: Placement,
    job: ModelTraining,
    constraints: MachineConstraints,
    *,
    title: str,
    variants: Sequence[str] = (),
    basis: str = "",
    prices: str = "",
    ways: Sequence[str] = (),
    length: str = "",
) -> str:
    model = job.model
    fields = {
        "model": {
            "name": title,
            "shape_of": None if model.guessed else model.name,
            "guessed": model.guessed,
            "params": model.params,
            "params_active": model.active,
        },
        "job": {
            "method": job.training.method,
            "rl": job.rl,
            "tokens": job.tokens,
            "seq_len": job.training.seq_len,
        },
        "constraints": {
            "gpus": constraints.gpus,
            "usd_per_hour_max": constraints.usd_per_hour_max,
            "spot": constraints.spot,
            "kinds": constraints.kinds,
            "disk_gib": constraints.disk_gib,
        },
        "assumed": assumptions(job, constraints),
        "based_on": basis,
        "length": length,
        "prices": prices,
        "ways": list(ways),
        "recommended": _id(placement.best),
        "hardware": None if placement.best is None else hardware(placement.best, constraints),
        "runner_up": _id(placement.runner_up),
        "nearest": [one.offer.offer_id for one in placement.nearest],
        "variants": list(variants),
        "machines": [_machine(one, variants) for one in placement.able],
        "left_out": [_machine(one, variants) for one in placement.left_out],
        "left_out_counts": dict(left_out(placement)),
    }
    return json.dumps(fields, indent=2, ensure_ascii=False)


def _machine(one: Candidate, variants: Sequence[str]) -> Machine:
    offer, need = one.offer, one.need
    return Machine(
        provider=offer.provider,
        offer_id=offer.offer_id,
        gpu=offer.gpu,
        socket=offer.socket,
        gpu_count=offer.gpu_count,
        gpu_gb=offer.gpu_gb,
        gpu_tflops_bf16=None if one.gpu is None else one.gpu.tflops,
        gpu_gb_per_s=None if one.gpu is None else one.gpu.gb_per_s,
        spot=offer.spot,
        usd_per_hour=offer.usd_per_hour,
        place=offer.region,
        stock=offer.stock,
        disk_gib=offer.disk_gib,
        variant=variants[one.variant - 1] if one.variant else "",
        fits=one.fit,
        need_gib=None
        if one.gpu_need is None
        else [one.gpu_need.low_bytes / GIB, one.gpu_need.high_bytes / GIB],
        need_gib_parts=None if need is None else {use.phase: _parts(use.parts) for use in need.uses},
        hours=_ends(one.time_s, 3600),
        usd=_ends(one.usd, 1),
        usd_expected=None if one.costs is None else one.costs.quote.usd,
        to_the_end=None if one.costs is None else quote_as_json(one.costs.quote),
        against=[
            {"code": objection.against, "why": objection.why, "fix": worded(objection.fix)}
            for objection in one.against
        ],
        excluded=exclusion_as_json(one.exclusion),
    )


def _ends(between: Between | None, unit: float) -> list[float] | None:
    return None if between is None else [between.low / unit, between.high / unit]


def _parts(parts: dict[str, float]) -> dict[str, float]:
    return {name: size / GIB for name, size in parts.items()}


def _id(one: Candidate | None) -> str | None:
    return None if one is None else one.offer.offer_id
