"""The agent's GPU reader in a process of its own, which finds the driver of `tests.fakes.nvml`.

Run as a program, it reads lines with a number of seconds, does one reading with that time limit for each, and
writes it as a line of JSON.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from prime_agent.gpu.driver import NvidiaGpus
from prime_agent.gpu.reading import GpuLoad, GpuSnapshot, Xid

LOOKS_MAX = 10_000


class Eyes:
    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def look(self, wait_s: float = 30.0) -> GpuSnapshot:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{wait_s}\n")
        self._process.stdin.flush()
        seen: dict[str, Any] = json.loads(self._process.stdout.readline())
        loads = tuple(GpuLoad(**load | {"slowed_by": tuple(load["slowed_by"])}) for load in seen.pop("loads"))
        return GpuSnapshot(loads, xids=tuple(Xid(**xid) for xid in seen.pop("xids")), **seen)

    def look_until_heard(self, count: int) -> GpuSnapshot:
        """Wait until this many Xids have been received."""
        for _ in range(LOOKS_MAX):
            snapshot = self.look()
            if len(snapshot.xids) >= count:
                return snapshot
        raise AssertionError(f"not {count} Xids: {snapshot}")


@contextmanager
def eyes(env: Mapping[str, str]) -> Iterator[Eyes]:
    command = [sys.executable, "-m", "tests.agent.gpu.gpu_reader_process"]
    path = os.pathsep.join(sys.path)
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **env},
    ) as process:
        try:
            yield Eyes(process)
        finally:
            process.kill()


def main() -> None:
    gpus = NvidiaGpus()
    for line in sys.stdin:
        print(json.dumps(asdict(gpus.look(float(line)))), flush=True)
    # Threads that wait for the driver do not keep the process.
    os._exit(0)


if __name__ == "__main__":
    main()
