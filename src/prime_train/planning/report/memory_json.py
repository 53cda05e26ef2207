"""The memory report as JSON: the same as the text, unrounded and in GiB."""

import json

from prime_train.checks.host_bytes import host_bytes
from prime_train.estimate.memory.phases import GIB
from prime_train.planning.memory_report import MemoryReport, OnKind
from prime_train.planning.report.memory_formulas import of_serving, of_training


def text(found: MemoryReport) -> str:
    others = [{"variant": other.variant, "fits": other.fits, **_fields(other)} for other in found.others]
    fields = {
        "config": found.title,
        "variant": found.variant,
        **_fields(found),
        "fits": found.fits,
        "other_variants": others,
    }
    return json.dumps(fields, indent=2)


def _fields(found: MemoryReport) -> dict[str, object]:
    plan, need = found.plan, found.need
    return {
        "model": {"name": plan.model.name, "params": plan.model.params, "guessed": plan.model.guessed},
        "trainer": {
            "gpus": plan.train_gpus,
            "method": plan.training.method,
            "seq_len": plan.training.seq_len,
            "micro_batch": plan.training.micro_batch,
            "sharding": plan.training.sharding,
            "assumed": list(plan.assumed),
            "phases_gib": {
                use.phase: {part: size / GIB for part, size in use.parts.items()} for use in need.uses
            },
            "peak_phase": need.peak.phase,
            "peak_gib": need.peak.total / GIB,
            "band_gib": [need.low / GIB, need.high / GIB],
            "formulas": dict(of_training(plan, need.peak)),
            "host_gib": host_bytes(plan) / GIB,
        },
        "gpu_need_gib": [
            end / GIB
            for end in (found.gpu_need.low_bytes, found.gpu_need.expected_bytes, found.gpu_need.high_bytes)
        ],
        "kinds": [_kind(found, one) for one in found.kinds],
    }


def _kind(found: MemoryReport, one: OnKind) -> dict[str, object]:
    fields: dict[str, object] = {
        "gpu": one.kind,
        "usable_gib": one.usable / GIB,
        "trainer_has_gib": one.left / GIB,
    }
    fields |= {"trainer": one.fit, "fits": one.whole}
    if one.share is not None:
        fields["server"] = {
            "gpus": found.plan.serve_gpus,
            "utilization": found.plan.utilization,
            "budget_gib": one.share.budget / GIB,
            "parts_gib": {name: size / GIB for name, size, _ in of_serving(found.plan, one.share.parts)},
            "formulas": {name: made for name, _, made in of_serving(found.plan, one.share.parts)},
            "cache_tokens": max(0, int(one.share.kv_tokens)),
            "sequences": one.serves,
            "seq_len": found.plan.serving.seq_len,
            "new_tokens_per_s": one.speed,
        }
    return fields
