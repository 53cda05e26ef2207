"""The accuracy of memory estimates: prime-train's and two published formulas, on published peaks.

    python -m tests.benchmarks.memory.model [ROWS.json ...]

Prints, over rows of quality A and B: median absolute error, share within 20 %, share more than 10 % below the
peak (the side that kills a run). prime-train's estimate occurs as it ships, with each source left out in turn
and everything fitted without it (its trainer is then unknown), and over random halves, of which one is used
for the fit and the other is estimated. The widths of memory_terms.py are shared by all, and stay.
"""

import statistics
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from prime_train.estimate.memory.formulas import trained_params, weight_bytes
from prime_train.estimate.memory.phases import GIB, Method, Need, Recompute
from prime_train.estimate.memory.software_factors import LEARNED
from tests.benchmarks.memory.held_out import SPLITS, halves, need_of, reported, sources_left_out
from tests.benchmarks.memory.row_parser import PEAKS, Row
from tests.benchmarks.memory.rows import estimate, model, rows, training

CONTEXT_BYTES = 1.4 * 10**9


@dataclass(frozen=True)
class Score:
    rows: int
    median: float
    within_20: float
    below_10: float

    def __str__(self) -> str:
        return f"{self.rows:5d} {self.median:9.1%} {self.within_20:12.1%} {self.below_10:16.1%}"


def score(reported: Iterable[tuple[float, float]]) -> Score:
    """Return the score of pairs of estimate and measurement."""
    errors = [reported / measured - 1 for reported, measured in reported]
    return Score(
        len(errors),
        statistics.median(map(abs, errors)),
        sum(abs(error) <= 0.20 for error in errors) / len(errors),
        sum(error < -0.10 for error in errors) / len(errors),
    )


def accelerate(row: Row) -> float:
    """`accelerate estimate-memory` (16cb6eb8): 4 times the weights with Adam, and a fifth more for
    generation. It does not consider GPUs.
    """
    weights = weight_bytes(model(row), training(row))
    if not row.is_training:
        return weights * 1.2 / row.gpus
    return weights * (4 if training(row).method is Method.FULL else 1) / training(row).shards(row.gpus)


def unsloth(row: Row) -> float:
    """Unsloth Studio, VRAM_ESTIMATION.md (015bdef0): no term for the loss, because its own kernels never hold
    all logits.
    """
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


WAYS: dict[str, Callable[[Row], float]] = {"ours": estimate, "Unsloth's": unsloth, "accelerate's": accelerate}
QUICK_SPLITS = 5


def covered(needs: Iterable[tuple[Need, float]]) -> tuple[float, float]:
    """Return the share of peaks within the band, and the median of its upper end over its lower."""
    all_of_them = list(needs)
    inside = sum(need.low <= peak <= need.high for need, peak in all_of_them) / len(all_of_them)
    return inside, statistics.median(need.high / need.low for need, _ in all_of_them)


def main(paths: Iterable[Path] = (), *, quick: bool = False) -> None:
    published = [row for path in list(paths) or [PEAKS] for row in rows(path)]
    trained = [row for row in published if row.is_training]
    left_out = list(sources_left_out(published))
    splits = QUICK_SPLITS if quick else SPLITS
    print(f"{'':34} rows    median  within 20 %  over 10 % below")
    _print("ours", _reported(estimate, published))
    _print("ours, its source left out", reported(left_out))
    _print(
        f"ours, {splits} random halves",
        [pair for half in halves(published, splits) for pair in reported(half)],
    )
    for way in ("Unsloth's", "accelerate's"):
        _print(way, _reported(WAYS[way], published))
    _print("ours, training", _reported(estimate, trained))
    _print(
        "ours, training, source left out",
        reported((row, learned) for row, learned in left_out if row.is_training),
    )
    for label, needs in (
        ("as it ships", [(need_of(row, LEARNED), row.peak) for row in trained]),
        (
            "its source left out",
            [(need_of(row, learned), row.peak) for row, learned in left_out if row.is_training],
        ),
    ):
        inside, ratio = covered(needs)
        print(
            f"\nin the band, {label}: {inside:.1%} of training peaks; its upper end is {ratio:.2f} times its "
            "lower",
            end="",
        )
    print("\n")
    for source in sorted({row.source for row in published}):
        _print(source[:34], _reported(estimate, [row for row in published if row.source == source]))
        _print("  left out", reported((row, learned) for row, learned in left_out if row.source == source))
    print("\nfarthest off, its source left out")
    for row, learned in sorted(left_out, key=lambda one: -abs(estimate(*one) / one[0].peak - 1))[:16]:
        print(f"{estimate(row, learned) / GIB:8.1f} for {row.peak / GIB:6.1f} GiB  {row.name[:62]}")


def _reported(way: Callable[[Row], float], published: list[Row]) -> list[tuple[float, float]]:
    return [(way(row), row.peak) for row in published]


def _print(label: str, pairs: list[tuple[float, float]]) -> None:
    print(f"{label:34}{score(pairs)}")


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
