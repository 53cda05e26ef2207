"""Freeing of disk space: what is deleted, and what stays however full the disk is."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_agent.checkpoints.local_disk_cleanup import free_disk_space
from prime_agent.checkpoints.units import Units
from prime_train.spec.checkpoint_names import CheckpointNames
from prime_train.trainers.of_spec import trainer_for
from tests.builders import spec

KIB_IN_GIB = 2**-20


def step_of(name: str) -> int | None:
    made = spec()
    return trainer_for(made).step_of(made, name)


def lay(folder: Path, *steps: int, kib: int = 10) -> None:
    for step in steps:
        path = folder / f"step_{step}" / "sub" / "weights"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x" * kib * 1024)


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def clean(
    folder: Path, *, committed: int, keep: int = 1, kib_max: float | None = None, share_max: float = 1.0
) -> list[int]:
    gib_max = None if kib_max is None else kib_max * KIB_IN_GIB
    return free_disk_space(
        units=Units(CheckpointNames("step_{step}", folder=folder.name), folder.parent),
        committed_step=committed,
        keep_newest=keep,
        max_disk_gib=gib_max,
        disk_path=folder.parent,
        share_max=share_max,
    )


def test_the_bytes_of_each_deleted_checkpoint_are_told(folder: Path) -> None:
    lay(folder, 1, 2, 3, kib=10)
    told: list[int] = []
    removed = free_disk_space(
        units=Units(CheckpointNames("step_{step}", folder=folder.name), folder.parent),
        committed_step=3,
        keep_newest=1,
        max_disk_gib=10 * KIB_IN_GIB,
        disk_path=folder.parent,
        share_max=1.0,
        told=told.append,
    )
    assert (removed, told) == ([1, 2], [10 * 1024, 10 * 1024])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "tree" / "checkpoints"


def test_with_room_enough_nothing_goes(folder: Path) -> None:
    lay(folder, 1, 2, 3)
    assert clean(folder, committed=3, kib_max=30) == []


def test_the_oldest_committed_go_first_and_no_more_than_needed(folder: Path) -> None:
    lay(folder, 10, 9, 100, 20)
    assert clean(folder, committed=100, kib_max=25) == [9, 10]
    assert left(folder) == ["step_100", "step_20"]
    assert left(folder.parent) == ["checkpoints"]


def test_what_is_not_in_the_bucket_stays(folder: Path) -> None:
    lay(folder, 1, 2, 3, 4)
    assert clean(folder, committed=2, keep=0, kib_max=1) == [1]
    assert left(folder) == ["step_2", "step_3", "step_4"]


def test_nothing_goes_before_the_first_commit(folder: Path) -> None:
    lay(folder, 1, 2)
    assert clean(folder, committed=0, keep=0, kib_max=1) == []


def test_the_newest_stay_as_many_as_requested(folder: Path) -> None:
    lay(folder, 1, 2, 3, 4)
    assert clean(folder, committed=4, keep=3, kib_max=1) == [1]


def test_a_full_disk_makes_room_without_a_limit_of_its_own(folder: Path) -> None:
    lay(folder, 1, 2, 3)
    assert clean(folder, committed=3, share_max=0.0) == [1, 2]


def test_what_is_no_checkpoint_is_left_alone(folder: Path) -> None:
    lay(folder, 1, 2)
    (folder / "best").mkdir()
    (folder / "step_0").symlink_to("best")
    (folder / "notes_5").write_text("a file")
    assert clean(folder, committed=9, kib_max=1) == [1]
    assert left(folder) == ["best", "notes_5", "step_0", "step_2"]


def test_no_folder_is_no_work(folder: Path) -> None:
    assert clean(folder, committed=9, kib_max=1) == []


def test_what_a_clean_up_that_was_cut_off_left_goes_with_the_next(folder: Path) -> None:
    lay(folder, 1)
    lay(folder.parent / ".prime-train-trash-step_0", 0)
    assert clean(folder, committed=9) == []
    assert left(folder.parent) == ["checkpoints"]


@given(
    steps=st.sets(st.integers(0, 12), max_size=6),
    committed=st.integers(-1, 13),
    keep=st.integers(0, 3),
    kib_max=st.integers(0, 80),
)
@settings(deadline=None, max_examples=60)
def test_the_newest_committed_one_and_all_later_ones_always_stay(
    tmp_path_factory: pytest.TempPathFactory, steps: set[int], committed: int, keep: int, kib_max: int
) -> None:
    folder = tmp_path_factory.mktemp("disk") / "checkpoints"
    folder.mkdir()
    lay(folder, *steps)
    gone = clean(folder, committed=committed, keep=keep, kib_max=max(kib_max, 0.5))
    stay = {step for step in steps if step > committed} | {
        max((step for step in steps if step <= committed), default=-1)
    }
    assert not stay & set(gone)
    assert gone == sorted(gone)
    assert {step_of(name) for name in left(folder)} == steps - set(gone)
    assert len(steps) * 10 <= kib_max or not gone or len(steps) - len(gone) >= 1
