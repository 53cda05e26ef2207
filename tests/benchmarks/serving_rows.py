"""Published speeds of inference servers as requests for estimates: one row of tests/data/serving_speeds.json.

    python -m tests.benchmarks.serving_rows [ROWS.json ...]

prints how many lie in the estimated range.
"""

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prime_train.estimate.cost.serving_speed import Requests, new_tokens_per_s
from prime_train.estimate.gpus import Gpu
from prime_train.estimate.memory.phases import GIB, Serving
from prime_train.estimate.models.dimensions import Model
from tests.benchmarks.memory.row_parser import Row, weight_of
from tests.benchmarks.memory.rows import model
from tests.benchmarks.speed_rows import gpu_of

SERVED = Path(__file__).parent.parent / "data" / "serving_speeds.json"
GPU_GIB = {"H200": 140.0, "H20": 96.0}
OTHER_GIB = 79.2
DECODED = 2048
AT_ONCE = 256
"""Number of concurrent sequences of a server if none is given."""
_LENGTHS = re.compile(r"mean in (\d+)() / out (\d+)()|~?(\d+)(k?) in ?/ ?~?(\d+)(k?) out")


@dataclass(frozen=True)
class Served:
    """A published speed. `tokens_per_s`: as given, of new tokens alone or including those of the prompts."""

    name: str
    model: Model
    serving: Serving
    gpu: Gpu
    gpus: int
    requests: Requests
    tokens_per_s: float
    counts_prompts: bool


def served(path: Path = SERVED) -> list[Served]:
    """Return the rows that give the model's shape and the requests, with the server at full load."""
    rows = [
        row for row in json.loads(path.read_text()) if row["kind"] == "throughput-infer" and row.get("layers")
    ]
    reported = [(row, requests(row)) for row in rows]
    return [_served(row, requested) for row, requested in reported if requested is not None]


def requests(stated: dict[str, Any]) -> Requests | None:
    """Return the requests; None if they are not given, or came at a fixed rate."""
    notes, found = str(stated.get("notes", "")), _LENGTHS.search(str(stated.get("notes", "")))
    if "rate-limited" in notes:
        return None
    if "bs 1" in stated["throughput_unit"] and stated.get("seq_len"):
        return Requests(1, max(0, stated["seq_len"] - DECODED), DECODED, 1)
    if found is None:
        return None
    prompt, times, new, new_times = [group for group in found.groups() if group is not None]
    count, at_once = re.search(r"(\d+) (?:requests|prompts)", notes), re.search(r"concurrency (\d+)", notes)
    number = int(count[1]) if count else 1
    most = int(at_once[1]) if at_once else min(number, AT_ONCE)
    return Requests(number, int(prompt) * (1000 if times else 1), int(new) * (1000 if new_times else 1), most)


def served_told(row: Served) -> tuple[float, float]:
    gpu_bytes = GPU_GIB.get(row.gpu.family, OTHER_GIB) * GIB
    slow, fast = new_tokens_per_s(
        row.model, row.serving, row.gpu, row.gpus, row.requests, gpu_bytes=gpu_bytes, utilization=0.9
    )
    times = (row.requests.prompt + row.requests.new) / row.requests.new if row.counts_prompts else 1.0
    return slow * times, fast * times


def _served(stated: dict[str, Any], requested: Requests) -> Served:
    row = Row(stated)
    serving, counts = Serving(weight_bytes=weight_of(row)), "prompt" in stated["throughput_unit"]
    return Served(
        row.name,
        model(row),
        serving,
        gpu_of(stated["gpu"]),
        row.gpus,
        requested,
        stated["throughput"],
        counts,
    )


def main(paths: list[Path]) -> None:
    found = [(row, served_told(row)) for path in paths or [SERVED] for row in served(path)]
    outside = [
        (row, reported) for row, reported in found if not reported[0] <= row.tokens_per_s <= reported[1]
    ]
    print(
        f"{len(found) - len(outside)} of {len(found)} in a range of "
        f"{max(fast / slow for _, (slow, fast) in found):.2f} times; not in it:"
    )
    for row, (slow, fast) in outside:
        print(f"{slow:10,.0f} to {fast:10,.0f}, measured {row.tokens_per_s:10,.0f} tokens/s  {row.name}")


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
