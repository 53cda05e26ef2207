"""Scripts that save in the usual ways lose their machine once, and go on where their newest durable
checkpoint was.

Agent, bucket and trainer are real; the machine is lost by killing all its processes.
"""

import os
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from prime_train.buckets.folder import FolderBucket
from prime_train.buckets.port import Bucket
from prime_train.checkpoints.catalog import Reader, point_of
from prime_train.checkpoints.manifest import Manifest
from prime_train.checkpoints.pointers import write_pointers
from prime_train.checkpoints.restore import restore
from prime_train.spec.causes import Cause
from prime_train.spec.checkpoint_names import CheckpointNames
from prime_train.spec.spec import RunSpec
from tests.agent.attempts import RUN_ID, Attempt, attempt
from tests.agent.shapes.train import EVERY, SHAPES, STEPS, final
from tests.exhaustive import some_of
from tests.waiting import await_true

SCRIPT = (Path(__file__).parent / "train.py").read_bytes()
STOP_AT = 2 * EVERY + 2
LINES = {"kind": "regex", "pattern": r"^step (?P<step>\d+) loss (?P<loss>[\d.]+)"}


@dataclass(frozen=True)
class Config:
    """What a config says of a shape. `scale`: steps in prime-train for one of the script's."""

    checkpoints: Mapping[str, Any]
    resume: str = ""
    progress: Mapping[str, Any] | None = field(default_factory=lambda: LINES)
    scale: int = 1
    kind: str = "command"


CONFIGS: Mapping[str, Config] = {
    "fixed_file": Config(
        {"folder": "out", "pattern": "model.pt"},
        "--continue",
        {"kind": "regex", "pattern": r"^iter (?P<step>\d+): loss", "first": 0},
    ),
    "padded_files": Config({"folder": "runs/exp", "pattern": "ckpt-{step}.pt"}),
    "trainer_folders": Config(
        {"folder": "results", "pattern": "checkpoint-{step}", "sentinel": "trainer_state.json"},
        "--resume_from_checkpoint {checkpoint}",
        {"kind": "regex", "pattern": r"\| (?P<step>\d+)/(?P<steps>\d+) \["},
    ),
    "epoch_and_step": Config(
        {"folder": "logs/version_*/checkpoints", "pattern": "epoch={epoch}-step={step}.ckpt"},
        "--resume {checkpoint}",
        {"kind": "csv", "file": "logs/version_*/metrics.csv", "first": 0},
    ),
    "last_and_best": Config(
        {"folder": "runs/exp*/weights", "pattern": "last.pt"},
        "--resume {checkpoint}",
        {"kind": "csv", "file": "runs/exp/results.csv", "step": "epoch", "loss": "train/loss", "first": 0},
    ),
    "epoch_files": Config(
        {"folder": "output_dir", "pattern": "checkpoint-{epoch}.pth"},
        "--resume {checkpoint}",
        {
            "kind": "regex",
            "pattern": r"^Epoch: \[(?P<epoch>\d+)\]\s+\[\s*(?P<batch>\d+)/(?P<batches>\d+)\]",
            "first": 0,
        },
    ),
    "group": Config(
        {
            "folder": "log",
            "pattern": "model_{step}.pt",
            "also": ["meta_{step}.json", "optim_{step}_rank*.pt"],
        },
        "--step {step}",
    ),
    "folders_and_text": Config({"folder": "ckpts", "pattern": "global_step{step}", "sentinel": "DONE"}),
    "folders_and_link": Config({"folder": "save", "pattern": "step{step}", "settled_s": 1}),
    "archives": Config(
        {
            "folder": "models",
            "pattern": "rl_model_{step}_steps.zip",
            "also": ["rl_model_stats_{step}_steps.pkl"],
        },
        progress={"kind": "regex", "pattern": r"total_timesteps\s+\|\s+(?P<step>\d+)"},
        scale=100,
    ),
    "pair": Config({"folder": "gan", "pattern": "G_{step}.pth", "also": ["D_{step}.pth"]}),
    "file_and_path": Config({"folder": "work_dir", "pattern": "iter_{step}.pth"}, "--resume"),
    "lightnings_default": Config(
        {"folder": "lightning_logs/version_0/checkpoints", "settled_s": 1}, progress=None, kind="lightning"
    ),
}


def spec_of(shape: str) -> RunSpec:
    config = CONFIGS[shape]
    command = f"{'' if config.kind == 'lightning' else 'python3 '}train.py {shape}"
    trainer = {"kind": config.kind, "command": command, "steps": STEPS * config.scale, "stop_s": 20}
    trainer |= {"progress": config.progress} if config.progress else {}
    return RunSpec.model_validate(
        {
            "name": "tiny",
            "trainer": trainer | ({"resume": config.resume} if config.resume else {}),
            "checkpoints": {"every_steps": EVERY * config.scale, **config.checkpoints},
            "hardware": {"open_files_min": 256, "disk_gib": 1},
            "health": {"heartbeat_s": 1, "overdue_s": 3, "silence_s": 10},
            "budget": {"usd": 5.0},
        }
    )


def newest(bucket: Bucket) -> Manifest | None:
    return next(iter(Reader(bucket, RUN_ID).catalog().complete()), None)


def lose(here: Attempt) -> None:
    """Kill everything that runs on the machine at once."""
    here.agent.kill()
    for process in here.trainers():
        process.kill()


def states(folder: Path) -> list[dict[str, Any]]:
    """Return the states in all files below the folder that hold one."""
    found = [
        path
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and path.stat().st_size > 20_000
    ]
    return [pickle.loads(path.read_bytes())[0] for path in found]


@pytest.mark.parametrize("shape", some_of(SHAPES, one_in=3))
def test_a_script_of_a_usual_shape_goes_on_from_its_newest_durable_checkpoint(
    tmp_path: Path, shape: str
) -> None:
    wanted, scale, names = spec_of(shape), CONFIGS[shape].scale, CheckpointNames.of(spec_of(shape))
    files = {"train.py": SCRIPT}
    with attempt(tmp_path, wanted, files=files, env={"STOP_AT": str(STOP_AT)}) as first:
        await_true(
            "the second checkpoint is committed",
            lambda: any(one.step >= 2 * EVERY * scale for one in first.plane.commits),
        )
        lose(first)
    saved = newest(FolderBucket(tmp_path / "bucket"))
    assert saved is not None
    assert saved.step == 2 * EVERY * scale
    with attempt(tmp_path, wanted, files=files, attempt=2, resume=point_of(saved)) as second:
        assert second.wait() == 0
        (last,) = second.plane.exits
        assert last.exit is not None
        assert (last.exit.cause, last.exit.saved_step) == (Cause.FINISHED, STEPS * scale), last.exit
        assert (second.disk / "work" / "begun_at").read_text() == str(2 * EVERY)
    done = newest(FolderBucket(tmp_path / "bucket"))
    assert done is not None
    assert done.step == STEPS * scale
    into = tmp_path / "restored"
    path = restore(FolderBucket(tmp_path / "bucket"), RUN_ID, point_of(done), into, names=names)
    assert path.parent == into
    write_pointers(done, into, number=names.number(done.step), tree=into, replace=False)
    assert states(into)
    assert all(state == final() for state in states(into))
    assert os.path.lexists(path)
