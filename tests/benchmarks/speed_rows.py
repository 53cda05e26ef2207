"""Published speeds of training as requests for estimates: one row of tests/data/training_speeds.json is a
model, a pass and a machine.

    python -m tests.benchmarks.speed_rows [ROWS.json ...]

prints how many lie in the estimated range.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prime_train.estimate.cost.training_speed import Pass, tokens_per_s
from prime_train.estimate.gpus import GPUS, Gpu
from prime_train.estimate.memory.phases import Method, Recompute
from prime_train.estimate.models.dimensions import Model
from tests.benchmarks.memory.row_parser import Row, recompute_of
from tests.benchmarks.memory.rows import model

SPEEDS = Path(__file__).parent.parent / "data" / "training_speeds.json"
NAMES = {"6000": "A6000", "4090": "RTX4090", "3090": "RTX3090", "A10G": "A10"}
UNSAID = "A100"
"""The GPU if no known kind is given."""


@dataclass(frozen=True)
class Speed:
    """A published speed. `tokens_per_s`: of all GPUs together."""

    name: str
    model: Model
    done: Pass
    gpu: Gpu
    gpus: int
    tokens_per_s: float


def speeds(path: Path = SPEEDS) -> list[Speed]:
    """Return the rows with tokens per second and the model's shape."""
    reported = [
        row for row in json.loads(path.read_text()) if row["kind"] == "throughput-train" and row.get("layers")
    ]
    return [speed(row) for row in reported if str(row.get("throughput_unit")).startswith("tokens/s")]


def speed(stated: dict[str, Any]) -> Speed:
    row = Row(stated)
    done = Pass(
        row.complete("seq_len", 4096),
        row.complete("micro_batch", 1),
        Method.LORA if "lora" in row.text("method") else Method.FULL,
        recompute_of(row.text("activation_checkpointing"))
        if stated.get("activation_checkpointing")
        else Recompute.FULL,
        rl="rl" in row.text("method").split(),
    )
    times = row.gpus if "/s/GPU" in stated["throughput_unit"] else 1
    return Speed(row.name, model(row), done, gpu_of(stated["gpu"]), row.gpus, stated["throughput"] * times)


def gpu_of(name: str) -> Gpu:
    plain = name.upper().replace(" ", "")
    found = sorted((family for family in GPUS if family in plain), key=len)
    return GPUS[
        found[-1] if found else next((family for word, family in NAMES.items() if word in plain), UNSAID)
    ]


def speed_told(row: Speed) -> tuple[float, float]:
    return tokens_per_s(row.model, row.done, row.gpu, row.gpus)


def main(paths: list[Path]) -> None:
    found = [row for path in paths or [SPEEDS] for row in speeds(path)]
    inside = [row for row in found if speed_told(row)[0] <= row.tokens_per_s <= speed_told(row)[1]]
    print(
        f"{len(inside)} of {len(found)} in a range of "
        f"{max(speed_told(row)[1] / speed_told(row)[0] for row in found):.2f} times; not in it:"
    )
    for row in found:
        if row not in inside:
            slow, fast = speed_told(row)
            print(
                f"{slow:12,.0f} to {fast:12,.0f}, measured {row.tokens_per_s:12,.0f} tokens/s  "
                f"{row.name[:44]}"
            )


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
