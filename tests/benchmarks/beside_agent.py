"""The uploading half of an agent as a process of its own: it uploads one checkpoint after the other, and
prints a line for each, until it is killed.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from prime_train.buckets.open import open_bucket
from prime_train.checkpoints.manifest import CHUNK_BYTES
from tests.agent.checkpoints.saving import NOW_S, uploader

STEPS_MAX = 10_000
FIRST = "step_1"


def checkpoints(disk: Path) -> Path:
    return disk / "tree" / "checkpoints"


def main() -> None:
    disk = Path(sys.argv[1])
    agent = uploader(open_bucket(os.environ["BENCH_BUCKET"], make=True), disk, files=[])
    for step in _steps(disk):
        (local,) = agent.scan(NOW_S)
        agent.upload(local, cancelled=lambda: False)
        print(step, flush=True)
    raise RuntimeError(f"{STEPS_MAX} checkpoints were uploaded, and nobody ended it")


def _steps(disk: Path) -> Iterator[int]:
    """Yield checkpoints of increasing steps; no chunk of them was ever sent."""
    (path,) = checkpoints(disk).iterdir()
    for step in range(1, STEPS_MAX + 1):
        path = path.rename(path.with_name(f"step_{step}"))
        for file in path.glob("*.bin"):
            with file.open("r+b") as open_file:
                for at in range(0, file.stat().st_size, CHUNK_BYTES):
                    open_file.seek(at)
                    open_file.write(step.to_bytes(8, "little"))
        yield step


if __name__ == "__main__":
    main()
