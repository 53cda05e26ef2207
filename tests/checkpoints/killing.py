"""Machines that die: a process that imports everything once and forks an agent for each life, to be killed at
a byte.

    with Driver() as driver:
        life = driver.begin(Job(...))       a process of its own, with its own threads
        os.kill(life.pid, signal.SIGKILL)
        assert life.wait() == -signal.SIGKILL

Run as a program it is that process: jobs come in as lines of JSON; out go the pid and, later, the exit code.
It forks before it has any thread, for a fork takes none along.
"""

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from prime_agent.checkpoints.uploader import Uploader
from prime_train.buckets.open import open_bucket
from prime_train.buckets.port import Bucket, Data
from prime_train.checkpoints.restore import restore
from prime_train.runs.resume_point import ResumePoint
from tests.agent.buckets import Counted
from tests.builders import spec

COMMITTED = "committed"
"""File in the machine's folder with the step that the control plane has confirmed."""

WAITING = "waiting"
"""Folder in the machine's folder with the checkpoints that the trainer will save, each when the previous one
is committed.
"""

ROUNDS_MAX = 10


@dataclass(frozen=True)
class Job:
    """One life of a machine. `left`: bytes that it may transfer until it kills itself; None if it is killed
    from outside.
    """

    what: str
    url: str
    run: str
    disk: str
    attempt: int = 1
    point: Mapping[str, Any] | None = None
    left: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def resume(self) -> ResumePoint | None:
        return ResumePoint.model_validate(self.point) if self.point is not None else None


@dataclass
class Life:
    driver: "Driver"
    pid: int

    def wait(self) -> int:
        """Wait for the process, and return its exit code, negative for a signal."""
        return int(self.driver.line())


class Driver:
    """The process that forks; use it as a context manager. One life at a time."""

    def __enter__(self) -> Self:
        root = Path(__file__).parent.parent.parent
        env = {**os.environ, "PYTHONPATH": str(root)}
        command = [sys.executable, "-m", "tests.checkpoints.killing"]
        self._process = subprocess.Popen(
            command, cwd=root, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def begin(self, job: Job) -> Life:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asdict(job)) + "\n")
        self._process.stdin.flush()
        return Life(self, int(self.line()))

    def line(self) -> str:
        assert self._process.stdout is not None
        message = self._process.stdout.readline()
        assert message, "the driver has ended"
        return message


# ---------------------------------------------------------------- in the driver's process


class Deadly(Counted):
    """A bucket whose machine dies after this many transferred bytes, even in the middle of an object."""

    def __init__(self, inner: Bucket, folder: Path, left: int) -> None:
        super().__init__(inner)
        self._folder = folder
        self._left = left

    def put(self, key: str, data: Data) -> None:
        if not self._passes(len(data)):
            (self._folder / ".tmp" / f"{os.getpid():032x}").write_bytes(data[: self._left])
            os.kill(os.getpid(), signal.SIGKILL)
        super().put(key, data)

    def read(self, key: str) -> Data | None:
        data = super().read(key)
        if data is not None and not self._passes(len(data)):
            os.kill(os.getpid(), signal.SIGKILL)
        return data

    def _passes(self, size: int) -> bool:
        with self._lock:
            passes = size < self._left
            self._left -= size if passes else 0
        return passes


def upload(job: Job, bucket: Bucket) -> None:
    """Do what an agent does while its trainer saves."""
    disk = Path(job.disk)
    made = Uploader(
        bucket=bucket,
        spec=spec(checkpoints={"sentinel": "COMPLETE", "keep": 1}),
        run_id=job.run,
        attempt=job.attempt,
        work=disk / "tree",
        stage=disk / "stage",
        known=job.resume,
        clock=lambda: int(time.time()),
        monotonic_s=time.monotonic,
    )
    for _ in range(ROUNDS_MAX):
        waiting = made.scan(int(time.time()))
        if waiting:
            manifest = made.upload(waiting[0], cancelled=lambda: False)
            (disk / COMMITTED).write_text(str(manifest.step))
            made.committed(manifest, int(time.time()))
        if not _save_next(disk):
            return
    raise AssertionError(f"more than {ROUNDS_MAX} checkpoints")


def _save_next(disk: Path) -> bool:
    saved = disk / "tree" / "checkpoints"
    saved.mkdir(parents=True, exist_ok=True)
    coming = sorted((disk / WAITING).iterdir())
    if coming:
        coming[0].rename(saved / coming[0].name)
    return bool(coming)


def download(job: Job, bucket: Bucket) -> None:
    """Do what an agent does before it starts its trainer."""
    assert job.resume is not None
    restore(bucket, job.run, job.resume, Path(job.disk) / "tree" / "checkpoints")


WORK = {"upload": upload, "download": download}


def _live(job: Job, bucket: Bucket) -> None:
    """Run one life in the forked process; does not return."""
    code = 1
    try:
        WORK[job.what](
            job,
            bucket if job.left is None else Deadly(bucket, Path(job.url.removeprefix("file://")), job.left),
        )
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def main() -> None:
    opened: dict[str, Bucket] = {}
    for line in sys.stdin:
        job = Job(**json.loads(line))
        if job.url not in opened:
            opened[job.url] = open_bucket(job.url, job.env, make=True)
        pid = os.fork()
        if pid == 0:
            _live(job, opened[job.url])
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
