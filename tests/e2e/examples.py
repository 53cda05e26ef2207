"""The examples as their pages say that they are run, on a control plane of their own, with two changes: machines are
declared lost in seconds, and the first one is lost in the middle of training.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml

from prime_agent.checkpoints.gather import Gatherer
from prime_train.checkpoints.catalog import Reader, point_of
from prime_train.checkpoints.restore import restore
from prime_train.runs.run import Run, RunState
from prime_train.spec.causes import Cause
from prime_train.spec.reader import read_config
from prime_train.trainers.of_spec import trainer_for
from tests.e2e.plane import Plane, plane
from tests.e2e.points import LOSE_FIRST
from tests.waiting import HANG_S

FOLDER = Path(__file__).parents[2] / "examples"
HEALTH = {"heartbeat_s": 1, "overdue_s": 20, "silence_s": 60, "first_heartbeat_s": 120, "settle_s": 3}


@dataclass(frozen=True)
class Example:
    """An example, with the step of its first checkpoint. `second` is a pattern of the arguments with which the
    trainer opens a file of its second one.
    """

    name: str
    first: int
    second: str


def commands(example: str) -> list[list[str]]:
    """Return the commands of prime-train on the page of an example, in their order."""
    text = (FOLDER / example / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"^\$ prime-train (.*)$", text, re.MULTILINE)
    return [shlex.split(line, comments=True) for line in found]


@dataclass(frozen=True)
class Interrupted:
    """The run of an example that lost its first machine, and is over."""

    plane: Plane
    run: Run
    folder: Path

    def last_checkpoint(self) -> Path:
        """Return the newest checkpoint in the bucket: a folder, or a file if that is what the trainer saves."""
        newest = next(iter(Reader(self.plane.bucket, self.run.run_id).catalog().complete()))
        assert newest.step == self.run.spec.trainer.steps
        return restore(self.plane.bucket, self.run.run_id, point_of(newest), self.folder / "restored")

    def output(self, *words: str) -> str:
        done = self.plane.cli(*words)
        assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@contextmanager
def interrupted(
    example: Example,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Interrupted]:
    """Run the example as its page says, in a copy of its folder. With `environment`, the trainer gets these variables,
    and its libraries are there already, so that the config's `setup` is left out.
    """
    copy = folder / "example"
    shutil.copytree(FOLDER / example.name, copy, ignore=shutil.ignore_patterns("__pycache__"))
    config = copy / f"{example.name}.yaml"
    sections = yaml.safe_load(config.read_text(encoding="utf-8")) | {"health": HEALTH}
    if environment is not None:
        sections |= {"environment": dict(environment), "setup": []}
    sections["hardware"]["disk_gib"] = 1
    config.write_text(yaml.safe_dump(sections))
    first, *others = commands(example.name)
    assert first == ["run", config.name, "--follow"]
    point = replace(LOSE_FIRST, role="example", event="open|os.rename", pattern=example.second)
    monkeypatch.chdir(copy)
    with plane(folder / "plane", [point]) as here:
        try:
            run = here.await_end(here.launch(Path(config.name)))
            assert run.state is RunState.SUCCEEDED, run.why
            assert [attempt.cause for attempt in run.attempts] == [Cause.PREEMPTED, Cause.FINISHED]
            assert run.attempts[1].resumed_step == example.first
            done = Interrupted(here, run, folder)
            for words in others:
                done.output(*words)
            yield done
        except AssertionError as error:
            raise AssertionError(f"{error}\n{here.evidence()}") from error


def uninterrupted(example: Example, folder: Path, environment: Mapping[str, str] | None = None) -> Path:
    """Train in another copy of the example's folder, without prime-train; return that folder."""
    copy = folder / "uninterrupted"
    shutil.copytree(FOLDER / example.name, copy, ignore=shutil.ignore_patterns("__pycache__"))
    spec = read_config(copy / f"{example.name}.yaml").spec
    assert spec is not None
    trainer = trainer_for(spec)
    command = trainer.command(
        spec, checkpoints=str(copy / spec.checkpoints.folder), resume_step=None, resume_folder=None
    )
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    own = trainer.environment(spec, attempt=0, run_id="uninterrupted-1")
    env = {**os.environ, "PATH": path, **own, **(environment or {})}
    done = subprocess.run(
        command, shell=True, cwd=copy, env=env, capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    Gatherer(trainer, spec, copy).gather(above=-1, resumed_step=0)
    return copy
