"""The uploading half of an agent, as a process of its own: told `go`, it uploads one checkpoint after the other; `stop` calls it off."""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from threading import Event

from prime_agent.checkpoints import Cancelled, Uploader
from prime_train.adapters.bucket.open import open_bucket
from prime_train.core.manifest import CHUNK_BYTES
from tests.agent.saving import NOW_S, uploader

STEPS_MAX = 10_000
FIRST = "step_1"


def checkpoints(disk: Path) -> Path:
    return disk / "tree" / "checkpoints"


def main() -> None:
    disk, stopped = Path(sys.argv[1]), Event()
    agent, steps = uploader(open_bucket(os.environ["BENCH_BUCKET"]), disk, files=[]), _steps(disk)
    under_way: Future[int] | None = None
    with ThreadPoolExecutor(1) as pool:
        _say("ready")
        for line in sys.stdin:
            if line == "go\n":
                stopped.clear()
                under_way = pool.submit(_upload_until, agent, steps, stopped)
            elif under_way is not None:
                stopped.set()
                _say(str(under_way.result()))


def _say(text: str) -> None:
    print(text, flush=True)


def _steps(disk: Path) -> Iterator[int]:
    """Each time the checkpoint of a later step, of which no chunk was ever sent."""
    (path,) = checkpoints(disk).iterdir()
    for step in range(1, STEPS_MAX + 1):
        path = path.rename(path.with_name(f"step_{step}"))
        for file in path.glob("*.bin"):
            with file.open("r+b") as open_file:
                for at in range(0, file.stat().st_size, CHUNK_BYTES):
                    open_file.seek(at)
                    open_file.write(step.to_bytes(8, "little"))
        yield step


def _upload_until(agent: Uploader, steps: Iterator[int], stopped: Event) -> int:
    """Bytes that were in the bucket before `stopped`."""
    sent = 0
    for _ in islice(steps, STEPS_MAX):
        (local,) = agent.scan(NOW_S)
        try:
            agent.upload(local, cancelled=stopped.is_set)
        except Cancelled:
            return sent + agent.sent.bytes_sent
        sent += agent.sent.bytes_sent
    raise RuntimeError(f"{STEPS_MAX} checkpoints were uploaded, and nobody said stop")


if __name__ == "__main__":
    main()
