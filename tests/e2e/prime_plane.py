"""A control plane of real processes that rents from a fake Prime Intellect and trains with a fake prime-rl,
over real SSH.
"""

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from prime_train.runs.run import Run, RunState
from tests.e2e.plane import Plane, plane
from tests.fakes.nvml import Driver
from tests.fakes.prime import EXAMPLES, SPOT, FakePrime, GpuRow
from tests.fakes.prime.pods import Pod
from tests.fakes.prime_rl import uv_in
from tests.fakes.prime_rl.upstream import upstream_in
from tests.waiting import await_true

STEPS = 20
STEP_S = 0.2

SECOND_SPOT = SPOT.model_copy(
    update={
        "cloudId": "a100-other",
        "dataCenter": "OTHER-1",
        "prices": SPOT.prices.model_copy(update={"onDemand": 0.7}),
    }
)
TWO_GPUS = SPOT.model_copy(update={"cloudId": "a100-two", "gpuCount": 2})
TWO_MORE_GPUS = SECOND_SPOT.model_copy(update={"cloudId": "a100-two-more", "gpuCount": 2})
ROWS: tuple[GpuRow, ...] = (*EXAMPLES, SECOND_SPOT, TWO_GPUS, TWO_MORE_GPUS)
TWO_GPU_MACHINE = {"gpus": ["A100"], "count": 2, "open_files_min": 1024, "disk_gib": 1}
HEALTH = {
    "heartbeat_s": 1,
    "overdue_s": 3,
    # Far beyond what a busy machine of the tests may need: nothing here dies of silence.
    "silence_s": 120,
    "first_heartbeat_s": 240,
    "first_step_s": 240,
    "stall_s": 240,
    "inference_idle_s": 3,
    "gpu_idle_s": 3,
    "settle_s": 3,
    "drain_s": 20,
}
CONFIG = """\
[model]
name = "example/tiny"  # of a size that nobody knows: the disks here are small
[inference]
[deployment]
num_infer_gpus = 1
num_train_gpus = 1  # prime-train: ignore[PR321] these machines have none
[orchestrator]
group_size = 8
renderer.name = "default"
[[orchestrator.train.source]]
name = "sums"
env.taskset.id = "sums"
"""


@dataclass
class PrimePlane:
    """A control plane, its provider, and the instructions for the fake trainers (`FAKE_RL_...`)."""

    plane: Plane
    fake: FakePrime
    folder: Path
    trainer: Mapping[str, str]

    def launch(self, **sections: object) -> str:
        """Write a config and a working tree into the folder, and launch the config."""
        return self.plane.launch(write_run(self.folder, self.trainer, **sections))

    def run(self, run_id: str) -> Run:
        return self.plane.run(run_id)

    def await_step(self, run_id: str, step: int) -> Pod:
        """Wait until this many steps are made and a checkpoint is durable. Return the machine that made
        them.
        """

        def is_there() -> bool:
            record = self.plane.store.load(run_id)
            heartbeat = record.lease.heartbeat if record is not None else None
            return (
                record is not None
                and record.lease.open
                and record.lease.committed_step >= 5
                and heartbeat is not None
                and heartbeat.step >= step
            )

        await_true(f"step {step} is made", is_there)
        (pod,) = self.fake.alive
        return pod

    def await_end(self, run_id: str) -> Run:
        """Wait until the run is over, no pod is paid for, and the ledger is settled."""
        await_true(f"{run_id} is over", lambda: self.run(run_id).is_over)
        await_true("no pod is left", lambda: not self.fake.alive)
        await_true(
            "the ledger is settled", lambda: all(a.ended_s is not None for a in self.run(run_id).attempts)
        )
        return self.run(run_id)

    def await_success(self, run_id: str) -> Run:
        """Wait as `await_end` does, and check the success: the last step is in the bucket, and no attempt
        began before a durable step.
        """
        try:
            run = self.await_end(run_id)
            assert run.state is RunState.SUCCEEDED, run.why
            assert run.durable_step == STEPS
            for earlier, later in zip(run.attempts, run.attempts[1:], strict=False):
                assert later.resumed_step >= earlier.durable_step
            return run
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.evidence()}") from error

    def kinds(self, run_id: str) -> list[str]:
        return [line.kind for line in self.plane.history(run_id)]

    def evidence(self) -> str:
        """Return what a person needs to analyse a failure."""
        logs = [path for folder in self.folder.glob("prime/*/disk") for path in folder.rglob("*.log")]
        parts = [f"== {path}\n{path.read_text(errors='replace')[-2000:]}" for path in logs]
        requested = [
            f"{request.method} {request.path} {request.status}" for request in self.fake.requests[-40:]
        ]
        return "\n".join([self.plane.evidence(), *parts, *requested])


def write_run(folder: Path, trainer: Mapping[str, str], **sections: object) -> Path:
    """Write the config beside the working tree."""
    tree = folder / "tree"
    tree.mkdir(parents=True, exist_ok=True)
    (tree / "rl.toml").write_text(CONFIG)
    config = folder / "prime.yaml"
    config.write_text(yaml.safe_dump(_config(folder, tree, trainer) | sections))
    return config


def _config(folder: Path, tree: Path, trainer: Mapping[str, str]) -> dict[str, object]:
    upstream, commits = upstream_in(folder / "upstream")
    uv = uv_in(folder / "bin")
    path = os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    return {
        "name": "rl",
        "trainer": {
            "kind": "prime_rl",
            "steps": STEPS,
            "stop_s": 5,
            "code": {"folder": str(tree)},
            "prime_rl": {"config": "rl.toml", "ref": commits[-1], "run_name": "tiny"},
        },
        "environment": {**upstream, **uv, "PATH": path, "FAKE_RL_STEP_S": str(STEP_S), **trainer},
        "hardware": {"open_files_min": 1024, "disk_gib": 1},
        "checkpoints": {"every_steps": 5, "keep": 2, "settled_s": 1},
        "health": HEALTH,
        "budget": {"usd": 50, "restarts_without_progress": 6},
    }


def python(path: Path, env: Mapping[str, str]) -> Path:
    """Return the Python of a machine's image, with the agent in it and a driver beside it."""
    output = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in env.items())
    path.write_text(f'#!/bin/sh\n{output}exec {shlex.quote(sys.executable)} "$@"\n')
    path.chmod(0o755)
    return path


@contextmanager
def prime_plane(
    folder: Path, trainer: Mapping[str, str] | None = None, *, driver: Driver | None = None
) -> Iterator[PrimePlane]:
    """Run the control plane. `trainer`: variables for the fake prime-rl. `driver`: describes the machines'
    GPUs.
    """
    with FakePrime(folder / "prime", running=True) as fake:
        fake.rows = ROWS
        settings = {
            "PRIME_API_KEY": fake.api_key,
            "PRIME_API_BASE_URL": fake.url,
            "PRIME_TRAIN_POD_PYTHON": str(
                python(folder / "python", driver.env if driver is not None else {})
            ),
        }
        with plane(folder, settings=settings) as here:
            try:
                yield PrimePlane(here, fake, folder, trainer or {})
            finally:
                for kept in here.kept:
                    kept.stop()
