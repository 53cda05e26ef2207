"""Every kind of trainer with the three faults that checkpoints have: half of one is written, one is written
again while it is uploaded, and the trainer does not resume. The agent, the bucket and the trainer's process
are real; the trainer writes what that of its kind writes.
"""

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from prime_agent.checkpoints.uploader import Uploader
from prime_train.buckets.folder import FolderBucket
from prime_train.buckets.port import Bucket
from prime_train.checkpoints.catalog import Reader
from prime_train.checkpoints.manifest import Manifest
from prime_train.checkpoints.verify import verify
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.wire import Heartbeat
from prime_train.spec.causes import Cause
from prime_train.spec.finding import Severity
from prime_train.spec.reader import read_text
from prime_train.spec.spec import RunSpec
from prime_train.trainers.registry import TRAINERS
from tests.agent.attempts import RUN_ID, Attempt, attempt
from tests.agent.checkpoints.saving import NOW_S, download, point_of
from tests.agent.kinds.layouts import EVERY, LAYOUTS, MARKER, STEPS, content, cuts, write
from tests.agent.kinds.train import GO
from tests.exhaustive import some_of
from tests.fakes.prime_rl.upstream import upstream_in
from tests.trainers.prime_rl.prime_rl_spec import REF

ROOT = Path(__file__).parents[3]
SCRIPT = b"from tests.agent.kinds.train import main\n\nmain()\n"
FILES = {"train.py": SCRIPT, "rl.toml": b'[model]\nname = "Qwen/Qwen3-0.6B"\n'}


@dataclass(frozen=True)
class Kind:
    """A row of the table. `wrong`: a part of the config with which the trainer would not resume; None where
    only the trainer's behaviour shows that, because its script decides what its arguments mean.
    """

    trainer: Mapping[str, Any]
    checkpoints: Mapping[str, Any] = field(default_factory=dict)
    wrong: Mapping[str, Any] | None = None
    said: str = ""
    """What `validate` says of `wrong`."""


JSONL = {"progress": {"file": "progress.jsonl"}}
OWN = "--out {checkpoints}"
KINDS: Mapping[str, Kind] = {
    "command": Kind(
        {"command": f"python3 train.py {OWN}", "resume": "--resume-step {step}", **JSONL},
        {"sentinel": "COMPLETE"},
    ),
    "torchrun": Kind(
        {"command": f"train.py {OWN}", "workers": 2, "resume": "--resume {checkpoint}", **JSONL},
        {"sentinel": ".metadata"},
    ),
    "hf": Kind(
        {"command": "train.py --output_dir {checkpoints}"},
        {},
        {"resume": "--resume_from_checkpoint {step}"},
        "takes a folder",
    ),
    "lightning": Kind(
        {"command": f"train.py {OWN}"}, {}, {"resume": "--ckpt_path last"}, "does not pass the checkpoint"
    ),
    "torchtitan": Kind(
        {"command": "train.py --module tiny"}, {}, {"resume": "--load {step}"}, "does not say which step"
    ),
    "verl": Kind(
        {"command": "python3 train.py trainer.save_freq=4"},
        {},
        {"resume": "trainer.resume_mode=auto"},
        "does not pass",
    ),
    "areal": Kind(
        {"command": "python3 train.py --config c.yaml"}, {}, {"resume": "recover.mode=on"}, "has no effect"
    ),
    "trm": Kind(
        {"command": "train.py arch=trm"},
        {},
        {"resume": "+load_checkpiont={checkpoint}/checkpoint.pt"},
        "does not pass",
    ),
    "prime_rl": Kind(
        {"prime_rl": {"config": "rl.toml", "ref": REF}},
        {"every_steps": EVERY},
        {"prime_rl": {"config": "rl.toml", "ref": REF, "overrides": ["--resume.step", "2"]}},
        "the checkpoint to resume is chosen from the bucket",
    ),
}


def sections(kind: str, *, signs: Path | None = None, fault: str = "", **trainer: Any) -> dict[str, Any]:
    row = KINDS[kind]
    return {
        "name": "tiny",
        "trainer": {"kind": kind, "steps": STEPS, "stop_s": 20, **row.trainer, **trainer},
        "checkpoints": {"settled_s": 1, **row.checkpoints},
        "hardware": {"open_files_min": 256, "disk_gib": 1},
        "health": {"heartbeat_s": 1, "overdue_s": 3, "silence_s": 10},
        "budget": {"usd": 5.0},
        "environment": {"KIND": kind, "FAULT": fault, "SIGNS": str(signs), "PYTHONPATH": str(ROOT)},
    }


def programs(folder: Path) -> dict[str, str]:
    """Return variables with which `python3`, `torchrun` and prime-rl's `uv` start the trainer."""
    folder.mkdir()
    script = f"exec {sys.executable}"
    until = 'while [ "$1" != {0} ]; do shift; done; {1}'
    for name, text in {
        "python3": f'{script} "$@"',
        "torchrun": f'{until.format("train.py", "")} {script} "$@"',
        "uv": f'if [ "$1" != run ]; then exit 0; fi\n{until.format("rl", "shift;")} {script} train.py "$@"',
    }.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)}


class Place:
    """A bucket, and machines that use it one after the other."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder, self.kind, self.signs = folder, kind, folder / "signs"
        self.signs.mkdir()
        self.env, self.trainer = programs(folder / "bin"), {}
        if kind == "prime_rl":
            git, commits = upstream_in(folder / "upstream")
            self.env |= git
            self.trainer = {"prime_rl": {"config": "rl.toml", "ref": commits[-1]}}

    def attempt(
        self,
        fault: str,
        *,
        number: int = 1,
        agent: str = "prime_agent.main",
        resume: ResumePoint | None = None,
    ) -> Any:
        wanted = RunSpec.model_validate(sections(self.kind, signs=self.signs, fault=fault, **self.trainer))
        env = {**self.env, "SIGNS": str(self.signs)}
        return attempt(self.folder, wanted, files=FILES, env=env, attempt=number, agent=agent, resume=resume)

    def go(self) -> None:
        (self.signs / GO).touch()


def the_exit(here: Attempt) -> Heartbeat:
    assert here.wait() == 0
    (last,) = here.plane.exits
    return last


def cause_of(last: Heartbeat) -> Cause:
    assert last.exit is not None
    return last.exit.cause


def manifests(bucket: Bucket) -> list[Manifest]:
    """Return the complete checkpoints in the bucket, the newest first; each must be that of one save."""
    found = list(Reader(bucket, RUN_ID).catalog().complete())
    for manifest in found:
        assert verify(bucket, manifest) == []
        saves = {made[0] for data in download(bucket, manifest).values() if (made := MARKER.findall(data))}
        assert len(saves) == 1, saves
    return found


def first_checkpoint(place: Place, fault: str, cause: Cause) -> ResumePoint:
    """Run the first machine until its end; it must leave exactly the first checkpoint."""
    with place.attempt(fault) as first:
        first.plane.await_commit(EVERY)
        place.go()
        last = the_exit(first)
        assert (cause_of(last), last.uploaded_step) == (cause, EVERY)
        (left,) = manifests(first.bucket)
    assert left.step == EVERY
    return point_of(left)


@pytest.mark.parametrize("kind", some_of(KINDS, one_in=7))
def test_half_a_checkpoint_is_never_uploaded_and_another_machine_goes_on_from_the_whole_one(
    tmp_path: Path, kind: str
) -> None:
    place = Place(tmp_path, kind)
    point = first_checkpoint(place, "half", Cause.KILLED)
    with place.attempt("", number=2, resume=point) as second:
        last = the_exit(second)
        end = STEPS + (EVERY if LAYOUTS[kind].counts_anew else 0)
        assert (cause_of(last), last.step, last.uploaded_step) == (Cause.FINISHED, end, end)
        assert manifests(second.bucket)[0].step == end


@pytest.mark.parametrize("kind", some_of(KINDS, one_in=7))
def test_a_checkpoint_that_is_written_again_during_its_upload_is_never_a_mixture(
    tmp_path: Path, kind: str
) -> None:
    place = Place(tmp_path, kind)
    with place.attempt("in_place", agent="tests.agent.kinds.agent") as here:
        last = the_exit(here)
        assert (cause_of(last), last.step, last.uploaded_step) == (Cause.FINISHED, STEPS, STEPS)
        assert manifests(here.bucket)[0].step == STEPS


@pytest.mark.parametrize("kind", some_of(KINDS, one_in=7))
def test_a_trainer_that_does_not_resume_is_stopped_and_nothing_of_it_is_uploaded(
    tmp_path: Path, kind: str
) -> None:
    place = Place(tmp_path, kind)
    point = first_checkpoint(place, "half", Cause.KILLED)
    with place.attempt("deaf", number=2, resume=point) as second:
        last = the_exit(second)
        assert (cause_of(last), last.uploaded_step) == (Cause.RESUME_IGNORED, EVERY)
        assert [point_of(one) for one in manifests(second.bucket)] == [point]


@pytest.mark.parametrize("kind", [kind for kind, row in KINDS.items() if row.wrong])
def test_resume_arguments_with_which_it_would_start_over_are_an_error_before_the_launch(kind: str) -> None:
    row = KINDS[kind]
    assert errors(kind, {}) == []
    (error,) = errors(kind, row.wrong or {})
    assert row.said in error


def errors(kind: str, trainer: Mapping[str, Any]) -> list[str]:
    read = read_text(yaml.safe_dump(sections(kind, **trainer)), "tiny.yaml")
    found = [finding.message for finding in read.findings if finding.severity is Severity.ERROR]
    return found if read.spec is None else [*found, *TRAINERS[kind].conflicts(read.spec)]


@pytest.mark.parametrize("kind", KINDS)
def test_wherever_a_save_is_interrupted_what_is_there_is_no_checkpoint(tmp_path: Path, kind: str) -> None:
    made = RunSpec.model_validate(sections(kind))
    bucket, files = FolderBucket(tmp_path / "bucket", make=True), LAYOUTS[kind].checkpoint(2 * EVERY)
    for number, cut in enumerate(cuts(files, 2 * EVERY, 1)):
        work = tmp_path / f"{number}"
        uploader = Uploader(
            bucket=bucket,
            spec=made,
            run_id=RUN_ID,
            attempt=1,
            work=work,
            stage=tmp_path / "stage",
            known=None,
            clock=lambda: NOW_S,
            monotonic_s=time.monotonic,
        )
        (work / made.checkpoints.folder).mkdir(parents=True)
        write(work / made.checkpoints.folder, cut)
        assert uploader.scan(NOW_S) == [], sorted(cut)
    write(work / made.checkpoints.folder, {path: content(path, 2 * EVERY, 1) for path in files})
    assert [found.step for found in uploader.scan(NOW_S)] == [2 * EVERY]
