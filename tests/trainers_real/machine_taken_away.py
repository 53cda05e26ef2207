"""A run of a real trainer whose machine is taken away in mid-training, beside the same training without
interruption.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from prime_agent.checkpoints.gather import Gatherer
from prime_train.buckets.keys import evidence_key
from prime_train.checkpoints.catalog import Reader, point_of
from prime_train.checkpoints.manifest import Manifest
from prime_train.checkpoints.restore import restore
from prime_train.runs.run import Run
from prime_train.spec.reader import read_config
from prime_train.trainers.of_spec import trainer_for
from tests.e2e.plane import Plane, plane
from tests.tools import TOOLS
from tests.waiting import HANG_S, await_true

TRAINERS, TRAINERS_RL = TOOLS / "trainers" / "bin", TOOLS / "trainers-rl" / "bin"
"""Folders of the Pythons that `make test-trainers` installs the libraries for: that of verl and AReaL, and
that of all others.
"""
SCRIPTS = Path(__file__).parent / "scripts"
QUIET = {
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "CUDA_VISIBLE_DEVICES": "",
}
HF_ARGUMENTS = (
    "--output_dir {checkpoints} --max_steps 12 --save_steps 4 --logging_steps 1 "
    "--per_device_train_batch_size 4 --learning_rate 1e-2 --use_cpu True --report_to none --seed 3 "
    "--data_seed 4"
)
TITAN_ARGUMENTS = (
    "--module train_titan --config tiny --dump_folder out --checkpoint.interval 4 --training.steps 12 "
    "--lr_scheduler.warmup_steps 2"
)
AREAL_COMMAND = "python3 train_areal.py --config areal_tiny.yaml recover.freq_steps=4"
UNTROUBLED = 9
"""The number of an attempt to which nothing happens."""
HEALTH = {"heartbeat_s": 1, "overdue_s": 20, "silence_s": 60, "first_heartbeat_s": 120, "settle_s": 3}


@dataclass(frozen=True)
class Training:
    """A config with a user's script. `trainer` and `checkpoints` are sections of the config; the training has
    `steps` steps.
    """

    trainer: dict[str, Any]
    checkpoints: dict[str, Any] = field(default_factory=dict)
    steps: int = 12
    environment: dict[str, str] = field(default_factory=dict)
    programs: Path = TRAINERS

    def write(self, folder: Path) -> Path:
        """Write the config and its working tree, and return the path of the config."""
        tree = folder / "tree"
        shutil.copytree(SCRIPTS, tree, ignore=shutil.ignore_patterns("__pycache__"))
        config = folder / "real.yaml"
        sections = {
            "name": "real",
            "trainer": {"steps": self.steps, "stop_s": 5, "code": {"folder": str(tree)}, **self.trainer},
            "hardware": {"open_files_min": 1024, "disk_gib": 1},
            "checkpoints": {"settled_s": 1, **self.checkpoints},
            "health": HEALTH,
            "budget": {"usd": 5},
            "environment": {**self.environment, **QUIET, "PATH": f"{self.programs}:{os.environ['PATH']}"},
        }
        config.write_text(yaml.safe_dump(sections))
        return config


@dataclass(frozen=True)
class Interrupted:
    """A run on a control plane of its own."""

    plane: Plane
    run_id: str
    folder: Path

    @property
    def run(self) -> Run:
        return self.plane.run(self.run_id)

    def await_committed(self, step: int) -> None:
        def is_committed_or_over() -> bool:
            record = self.plane.store.load(self.run_id)
            return record is not None and (record.lease.committed_step >= step or record.run.is_over)

        await_true(f"step {step} is durable", is_committed_or_over)
        assert not self.run.is_over, f"the run is over before step {step} is durable"

    def take_machine_away(self, *, notice_s: int = 0) -> None:
        """Kill every process of the machine at once, or SIGTERM and some seconds before, and delete its
        disk.
        """
        (pod,) = self.plane.pods.list()
        self.plane.pods.preempt(pod.pod_id, notice_s)

    @property
    def work(self) -> Path:
        """Return the working tree on the only machine."""
        (pod,) = self.plane.pods.list()
        disk = self.plane.pods.disk(pod.pod_id)
        assert disk is not None
        return disk / "work"

    def log(self, attempt: int) -> str:
        """Return the trainer's output in an attempt."""
        found = self.plane.bucket.get(evidence_key(self.run_id, attempt, "trainer.log"))
        return "" if found is None else found.data.decode(errors="replace")

    def manifests(self) -> Sequence[Manifest]:
        """Return the complete checkpoints in the bucket, newest first."""
        return list(Reader(self.plane.bucket, self.run_id).catalog().complete())

    def restored(self, step: int) -> Path:
        """Return the folder of the checkpoint of this step, restored from the bucket."""
        manifest = next(one for one in self.manifests() if one.step == step)
        return restore(self.plane.bucket, self.run_id, point_of(manifest), self.folder / f"restored-{step}")


@contextmanager
def launched(folder: Path, training: Training) -> Iterator[Interrupted]:
    """Launch the training on a control plane of its own."""
    assert (TRAINERS / "python").exists(), "the libraries are not installed: make test-trainers"
    config = training.write(folder)
    with plane(folder) as here:
        try:
            yield Interrupted(here, here.launch(config), folder)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{here.evidence()}") from error


def uninterrupted(folder: Path, training: Training, *, after: Path | None = None) -> Path:
    """Train without interruption and without an agent; return the folder of the last checkpoint. `after` is
    the checkpoint to begin with, for trainers that then count their steps anew.
    """
    spec = read_config(training.write(folder)).spec
    assert spec is not None
    trainer, work = trainer_for(spec), folder / "tree"
    first = None if after is None else trainer.step_of(spec, after.name)
    checkpoints, resumed = str(work / spec.checkpoints.folder), None if after is None else str(after)
    command = trainer.command(spec, checkpoints=checkpoints, resume_step=first, resume_folder=resumed)
    env = {**os.environ, **trainer.environment(spec, attempt=UNTROUBLED, run_id="uninterrupted-1")}
    done = subprocess.run(
        command, shell=True, cwd=work, env=env, capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    Gatherer(trainer, spec, work).gather(above=-1, resumed_step=first or 0)
    return work / spec.checkpoints.folder / trainer.folder_of(spec, (first or 0) + training.steps)


def differences(first: Path, second: Path, scratch: Path) -> list[str]:
    """Return the names of the tensors and values in which two checkpoints differ; there must be some to
    compare.
    """
    command = [str(TRAINERS / "python"), str(SCRIPTS / "compare.py"), str(first), str(second), str(scratch)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["tensors"] > 3
    return list(found["different"])
