"""One attempt for tests: a control plane that answers, a bucket in a folder, and the real agent as a separate
process.
"""

import io
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from prime_agent.agent import owner_of
from prime_agent.processes import marked
from prime_train.buckets.keys import code_key, evidence_key
from prime_train.buckets.open import open_bucket
from prime_train.buckets.port import Bucket
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.wire import Bootstrap
from prime_train.spec.spec import RunSpec
from tests.builders import spec
from tests.fakes.control_plane import FakeControlPlane
from tests.waiting import HANG_S

RUN_ID = "tiny-1"
DEMO = f"{sys.executable} -m prime_train.demo.train --out out --progress progress.jsonl --batch-size 8"

NO_CHECKPOINTS = {"folder": "checkpoints", "sentinel": None}
"""The section of a run that declares no checkpoints, and may end without any."""


def demo_spec(arguments: str, **changes: Any) -> RunSpec:
    """Return the spec of a run of the demo's trainer with these `arguments`. Sections given here are merged
    into small, fast ones.
    """
    sections: dict[str, Any] = {
        "trainer": {
            "command": f"{DEMO} {arguments}",
            "resume": "--resume-step {step}",
            "stop_s": 20,
            "progress": {"file": "progress.jsonl"},
        },
        "hardware": {"open_files_min": 256, "disk_gib": 1},
        "checkpoints": {"folder": "out/checkpoints", "sentinel": "COMPLETE"},
        "health": {"heartbeat_s": 1, "overdue_s": 3, "silence_s": 10},
    }
    for name, value in changes.items():
        sections[name] = sections.get(name, {}) | value if isinstance(value, dict) else value
    return spec(**sections)


@dataclass
class Attempt:
    """A running attempt. `agent`: the process; `disk`: its machine's disk."""

    plane: FakeControlPlane
    bucket: Bucket
    disk: Path
    agent: subprocess.Popen[bytes]

    def wait(self, *, limit_s: float = HANG_S) -> int:
        """Wait for the agent to exit, and return its exit code."""
        return self.agent.wait(limit_s)

    def evidence(self, name: str) -> str:
        content = self.bucket.get(evidence_key(RUN_ID, self.plane.bootstrap.attempt, name))
        assert content is not None, f"no {name} among the evidence"
        return content.data.decode()

    def trainers(self) -> list[psutil.Process]:
        """Return the living processes of the trainer."""
        return list(marked(f"{owner_of(self.plane.bootstrap, self.disk)}/trainer"))

    def log(self, name: str) -> str:
        path = self.disk / "logs" / name
        return path.read_text(errors="replace") if path.exists() else f"(no {name})"


@contextmanager
def attempt(
    folder: Path,
    wanted: RunSpec,
    *,
    files: Mapping[str, bytes] | None = None,
    resume: ResumePoint | None = None,
    attempt: int = 1,
    env: Mapping[str, str] | None = None,
    prepare: Callable[[FakeControlPlane], None] = lambda plane: None,
    agent: str = "prime_agent.main",
    **bootstrap: Any,
) -> Iterator[Attempt]:
    """Start the agent on a fresh disk, with `files` as the working tree; at the end nothing of it is left."""
    bucket = open_bucket((folder / "bucket").as_uri(), make=True)
    bucket.put(code_key(RUN_ID), packed(files or {"README": b"a tree"}))
    disk = folder / f"disk-{attempt}"
    disk.mkdir(parents=True)
    job = Bootstrap(
        run=RUN_ID,
        identity=f"{attempt:016x}",
        attempt=attempt,
        spec=wanted,
        bucket_url=(folder / "bucket").as_uri(),
        code_key=code_key(RUN_ID),
        resume=resume,
        **bootstrap,
    )
    with FakeControlPlane(job, clock=lambda: int(time.time())) as plane:
        prepare(plane)
        (disk / "ticket.json").write_text(plane.ticket.model_dump_json())
        command = [sys.executable, "-m", agent, "--ticket", str(disk / "ticket.json"), "--disk", str(disk)]
        with (disk / "agent.out").open("wb") as out:
            process = subprocess.Popen(
                command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})}
            )
        here = Attempt(plane, bucket, disk, process)
        try:
            yield here
        except AssertionError as error:
            raise AssertionError(
                f"{error}\n{here.log('agent.log')}\n{here.log('trainer.log')[-2000:]}\n{(disk / 'agent.out').read_text()}"
            ) from error
        finally:
            process.kill()
            process.wait()
            for left in marked(f"{owner_of(job, disk)}/"):
                left.kill()


def packed(files: Mapping[str, bytes]) -> bytes:
    """Return a gzipped tar with these files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()
