"""How well GPU memory is told before a run: ours and two published formulas, on published peaks.

    python -m tests.benchmarks.memory_model [ROWS.json ...]

Prints, over rows of quality A and B: median absolute error, share within 20 %, share more than 10 % below the peak (the side that kills
a run); by source, and with each source left out: the constants that were read off its rows (memory_software.py) replaced by the median
of all others'. The widths of memory_terms.py are shared by all, and stay.
"""

import statistics
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from prime_train.core import memory_software as software
from prime_train.core.memory import GIB, Method, Recompute, training_need
from prime_train.core.memory_software import PLAIN, SOFTWARE, Software
from prime_train.core.memory_terms import trained_params, weight_bytes
from tests.benchmarks.memory_rows import PEAKS, Row, estimate, model, rows, training

READ_OFF = ("whole_logit_bytes", "chunked_logit_bytes", "rest_gib", "loss_fragments", "natural_growth", "compiled_share", "border_bytes")
SAME_SOURCE = {
    software.TORCHTITAN_2025.name: software.TORCHTITAN.name,
    software.FSDP_LORA.name: software.FSDP_QLORA.name,
    software.DEEPSPEED.name: software.HF_TRAINER.name,
    software.BUCKETED.name: software.PLAIN.name,
}
CONTEXT_BYTES = 1.4 * 10**9


@dataclass(frozen=True)
class Score:
    rows: int
    median: float
    within_20: float
    below_10: float

    def __str__(self) -> str:
        return f"{self.rows:5d} {self.median:9.1%} {self.within_20:12.1%} {self.below_10:16.1%}"


def score(told: Iterable[tuple[float, float]]) -> Score:
    """Of pairs: what was told, what was measured."""
    errors = [told / measured - 1 for told, measured in told]
    return Score(
        len(errors),
        statistics.median(map(abs, errors)),
        sum(abs(error) <= 0.20 for error in errors) / len(errors),
        sum(error < -0.10 for error in errors) / len(errors),
    )


def accelerate(row: Row) -> float:
    """`accelerate estimate-memory` (16cb6eb8): 4 times the weights with Adam; a fifth on top of them to generate. It knows no GPUs."""
    weights = weight_bytes(model(row), training(row))
    if not row.is_training:
        return weights * 1.2 / row.gpus
    return weights * (4 if training(row).method is Method.FULL else 1) / training(row).shards(row.gpus)


def unsloth(row: Row) -> float:
    """Unsloth Studio, VRAM_ESTIMATION.md (015bdef0): no term for the loss, which its own kernels never hold whole."""
    shape, how = model(row), training(row)
    quantisable = shape.params - shape.embedding_params
    weights = quantisable * 2 / 3.2 + shape.embedding_params * 2 if how.quantised else shape.params * 2.0
    trained = trained_params(shape, how)
    states = trained * 2 + trained * 6
    tokens = how.seq_len * how.micro_batch
    layer = (tokens * (shape.hidden + 2 * shape.kv_width) + 2 * tokens + 2 * tokens * shape.ffn) * 2 * 1.25
    layers = shape.layers if how.recompute is Recompute.NONE else (2 if how.method is Method.FULL else 1)
    scores = how.micro_batch * shape.heads * how.seq_len**2 * 12 * (2 * layers if how.eager_attention else 0)
    activations = layer * layers + scores
    if how.method is Method.FULL:
        activations = max(activations, 0.15 * weights)
    if not row.is_training:
        states, activations = 0.0, 0.0
    # Of several GPUs, each after the first counts 85 %.
    together = 1 + 0.85 * (how.shards(row.gpus) - 1)
    return (weights + states) / together + activations + CONTEXT_BYTES


def without(source: Software) -> Software:
    """What it would be taken for, had its rows not been published."""
    own = {source.name, SAME_SOURCE.get(source.name, source.name)}
    others = [one for one in SOFTWARE if one.name not in own and SAME_SOURCE.get(one.name) not in own]
    middle = {name: statistics.median(getattr(one, name) for one in others) for name in READ_OFF}
    return replace(PLAIN, name=source.name, **middle, whole_at_load=source.whole_at_load, unties_head=source.unties_head)


def left_out(row: Row) -> float:
    if not row.is_training:
        return estimate(row)
    how = training(row)
    unknown = replace(how, software=without(how.software))
    return training_need(model(row), unknown, row.gpus).peak.total


WAYS: dict[str, Callable[[Row], float]] = {
    "ours": estimate,
    "ours, source left out": left_out,
    "Unsloth's": unsloth,
    "accelerate's": accelerate,
}


def covered(published: list[Row]) -> tuple[float, float]:
    """Share of training peaks in the band, and the median of its upper end over its lower."""
    needs = [(training_need(model(row), training(row), row.gpus), row.peak) for row in published if row.is_training]
    inside = sum(need.low <= peak <= need.high for need, peak in needs) / len(needs)
    return inside, statistics.median(need.high / need.low for need, _ in needs)


def main(paths: list[Path]) -> None:
    published = [row for path in paths or [PEAKS] for row in rows(path)]
    print(f"{'':34} rows    median  within 20 %  over 10 % below")
    for way, told in WAYS.items():
        print(f"{way:34}{score((told(row), row.peak) for row in published)}")
    for kind, wanted in (("training", True), ("inference", False)):
        some = [row for row in published if row.is_training is wanted]
        if some:
            print(f"{f'ours, {kind}':34}{score((estimate(row), row.peak) for row in some)}")
    inside, ratio = covered(published)
    print(f"\nin the band: {inside:.1%} of training peaks; its upper end is {ratio:.2f} times its lower\n")
    for source in sorted({row.source for row in published}):
        some = [row for row in published if row.source == source]
        for way in ("ours", "ours, source left out"):
            label = source[:34] if way == "ours" else "  left out"
            print(f"{label:34}{score((WAYS[way](row), row.peak) for row in some)}")
    print("\nfarthest off")
    for row in sorted(published, key=lambda row: -abs(estimate(row) / row.peak - 1))[:12]:
        print(f"{estimate(row) / GIB:8.1f} for {row.peak / GIB:6.1f} GiB  {row.name[:62]}")


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
