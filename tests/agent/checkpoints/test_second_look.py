"""A checkpoint that looked complete before it was, and one whose save was cut off."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from prime_agent.checkpoints.uploader import Means, Uploader
from prime_train.buckets.folder import FolderBucket
from prime_train.errors import TemporaryError
from prime_train.runs.resume_point import ResumePoint
from tests.agent.buckets import Counted
from tests.agent.checkpoints.formats import zipped
from tests.agent.checkpoints.saving import NOW_S, download, manifests, point_of, ship, write
from tests.builders import RUN_ID, spec

WEIGHTS = b"weights " * 4096


@dataclass
class Machine:
    """A machine with a trainer that has reached `step`. `is_heard`: whether the control plane answers;
    `has_ended`: in order.
    """

    bucket: Any
    disk: Path
    step: int = 0
    is_heard: bool = True
    has_ended: bool = False
    checkpoints: dict[str, Any] = field(default_factory=lambda: {"sentinel": "COMPLETE"})
    attempt: int = 1
    known: ResumePoint | None = None
    workers: int = 1

    def __post_init__(self) -> None:
        self.uploader = Uploader(
            bucket=self.bucket,
            spec=spec(checkpoints=self.checkpoints, trainer={"workers": self.workers}),
            run_id=RUN_ID,
            attempt=self.attempt,
            work=self.disk / "tree",
            stage=self.disk / "stage",
            known=self.known,
            clock=lambda: NOW_S,
            monotonic_s=time.monotonic,
            means=Means(gone_on=self._gone_on, is_heard=lambda: self.is_heard, now_s=lambda: float(NOW_S)),
        )

    def _gone_on(self, step: int) -> bool:
        return self.has_ended or self.step > step

    def save(self, step: int, **files: bytes) -> Path:
        self.step = max(self.step, step)
        return write(
            self.disk / "tree" / "checkpoints" / f"step_{step}",
            {name.replace("__", "."): data for name, data in files.items()},
        )

    def seen(self) -> list[int]:
        return [local.step for local in self.uploader.scan(NOW_S)]


@pytest.fixture
def bucket(tmp_path: Path) -> FolderBucket:
    return FolderBucket(tmp_path / "bucket", make=True)


def test_a_sentinel_that_came_before_its_files_is_replaced_by_the_whole_checkpoint(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    machine = Machine(bucket, tmp_path)
    machine.save(10, COMPLETE=b"x")
    early = ship(machine.uploader)
    assert [file.path for file in early.files] == ["COMPLETE"]

    machine.save(10, weights__bin=WEIGHTS)
    assert machine.seen() == [], "the trainer is still saving"
    machine.step = 11
    whole = ship(machine.uploader)
    assert (whole.key, whole.changes_late, whole.seen_whole) == (early.key, True, True)
    assert [download(bucket, one) for one in manifests(bucket)] == [
        {"COMPLETE": b"x", "weights.bin": WEIGHTS}
    ]
    assert machine.seen() == []


def test_from_then_on_a_sentinel_counts_once_the_trainer_has_gone_on_in_later_attempts_too(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    machine = Machine(bucket, tmp_path)
    machine.save(10, COMPLETE=b"x")
    ship(machine.uploader)
    machine.save(10, weights__bin=WEIGHTS)
    machine.step = 11
    known = point_of(ship(machine.uploader))

    machine.save(20, weights__bin=WEIGHTS, COMPLETE=b"x")
    assert machine.seen() == []
    machine.step = 21
    assert machine.seen() == [20]

    later = Machine(bucket, tmp_path / "later", attempt=2, known=known, step=10)
    later.uploader.disregard_present()
    later.save(20, weights__bin=WEIGHTS, COMPLETE=b"x")
    assert later.seen() == []
    later.step = 21
    assert later.seen() == [20]


def test_a_save_that_pauses_is_read_again_when_the_next_one_begins(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    machine = Machine(bucket, tmp_path, checkpoints={"settled_s": 5})
    machine.save(10, weights__bin=WEIGHTS)
    assert [file.path for file in ship(machine.uploader).files] == ["weights.bin"]
    folder = machine.save(10, optimizer__bin=WEIGHTS[:99])
    (machine.disk / "tree" / "checkpoints" / "step_20").mkdir()
    assert set(download(bucket, ship(machine.uploader))) == {"weights.bin", "optimizer.bin"}
    os.utime(folder / "weights.bin", (NOW_S, NOW_S))
    assert machine.seen() == [], "two looks at most, because a trainer may write into a folder for ever"


def test_a_save_that_pauses_and_dies_is_not_uploaded_where_earlier_ones_had_more(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    machine = Machine(bucket, tmp_path, checkpoints={"settled_s": 5})
    machine.save(10, weights__bin=WEIGHTS, optimizer__bin=WEIGHTS)
    ship(machine.uploader)
    machine.save(20, weights__bin=WEIGHTS)
    assert machine.seen() == []
    machine.save(20, optimizer__bin=WEIGHTS[: len(WEIGHTS) // 3])
    assert machine.seen() == [], "a third of the optimizer"
    machine.save(20, optimizer__bin=WEIGHTS)
    assert machine.seen() == [20]


@pytest.mark.parametrize(
    "is_over",
    [lambda machine: setattr(machine, "step", 31), lambda machine: setattr(machine, "has_ended", True)],
)
def test_a_last_checkpoint_of_fewer_files_counts_once_the_trainer_has_gone_on_or_ended(
    tmp_path: Path, bucket: FolderBucket, is_over: Callable[[Machine], None]
) -> None:
    machine = Machine(bucket, tmp_path)
    machine.save(20, weights__bin=WEIGHTS, optimizer__bin=WEIGHTS, COMPLETE=b"x")
    ship(machine.uploader)
    machine.save(30, weights__bin=WEIGHTS, COMPLETE=b"x")
    assert machine.seen() == []
    is_over(machine)
    assert ship(machine.uploader).seen_whole


@pytest.mark.parametrize(
    ("there", "late"),
    [
        (("model_rank_0.pt", "model_rank_2.pt"), "model_rank_1.pt"),
        (("optim_00-of-02.bin",), "optim_01-of-02.bin"),
        (("model_world_size_2_rank_0.pt",), "model_world_size_2_rank_1.pt"),
    ],
)
def test_a_checkpoint_waits_for_the_file_of_each_process(
    tmp_path: Path, bucket: FolderBucket, there: tuple[str, ...], late: str
) -> None:
    machine = Machine(bucket, tmp_path)
    files = {name: zipped(name.encode()) for name in there}
    machine.save(10, COMPLETE=b"x")
    write(tmp_path / "tree" / "checkpoints" / "step_10", files)
    os.utime(tmp_path / "tree" / "checkpoints" / "step_10" / "COMPLETE")
    assert machine.seen() == []
    write(tmp_path / "tree" / "checkpoints" / "step_10", {late: zipped(b"late")})
    os.utime(tmp_path / "tree" / "checkpoints" / "step_10" / "COMPLETE")
    assert machine.seen() == [10]


def test_a_checkpoint_that_the_trainer_deletes_is_not_sent_again(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    machine = Machine(Counted(bucket), tmp_path)
    folder = machine.save(10, weights__bin=WEIGHTS, optimizer__bin=WEIGHTS, COMPLETE=b"x")
    ship(machine.uploader)
    (folder / "optimizer.bin").unlink()
    machine.step = 11
    assert machine.seen() == []


def test_a_manifest_is_not_replaced_while_the_control_plane_may_have_chosen_it(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    machine = Machine(bucket, tmp_path)
    machine.save(10, COMPLETE=b"x")
    early = ship(machine.uploader)
    machine.save(10, weights__bin=WEIGHTS)
    machine.step, machine.is_heard = 11, False
    assert machine.seen() == []
    machine.is_heard = True
    (local,) = machine.uploader.scan(NOW_S)
    machine.is_heard = False
    with pytest.raises(TemporaryError, match="not replaced now"):
        machine.uploader.upload(local, cancelled=lambda: False)
    assert manifests(bucket) == [early]


def test_the_end_waits_until_a_checkpoint_that_may_have_changed_can_be_compared(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    machine = Machine(bucket, tmp_path)
    machine.save(10, COMPLETE=b"x")
    ship(machine.uploader)
    machine.save(10, weights__bin=WEIGHTS)
    machine.has_ended, machine.is_heard = True, False
    assert (machine.seen(), machine.uploader.waits_to_look) == ([], True)
    machine.is_heard = True
    assert "weights.bin" in download(bucket, ship(machine.uploader))
    assert not machine.uploader.waits_to_look
