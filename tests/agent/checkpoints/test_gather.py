"""Checkpoints of trainers that write single files, or one state over and over, are gathered in a folder for
each step.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath

from prime_agent.checkpoints.gather import Gatherer
from prime_train.spec.spec import RunSpec
from prime_train.trainers.command import CommandTrainer
from prime_train.trainers.of_spec import FileInfo, Gathering, Scattered
from tests.builders import spec


class Files(CommandTrainer):
    """A trainer that writes a file for each step."""

    def gathering(self, spec: RunSpec) -> Gathering:
        return Gathering("out", _files)


def _files(files: Sequence[FileInfo], read: Callable[[str], bytes]) -> Iterable[Scattered]:
    return [Scattered(int(file.path), {"state": file.path}) for file in files if file.path.isdigit()]


class State(CommandTrainer):
    """A trainer with one state, in two files, which it overwrites; each holds the step."""

    def __init__(self, while_read: Callable[[], object] = lambda: None) -> None:
        self.while_read = while_read

    def gathering(self, spec: RunSpec) -> Gathering:
        return Gathering("out", self._states, lambda path: path == PurePosixPath("b"), in_place=True)

    def _states(self, files: Sequence[FileInfo], read: Callable[[str], bytes]) -> Iterable[Scattered]:
        if {file.path for file in files} < {"a", "b/c"}:
            return []
        steps = {int(read("a")), int(read("b/c"))}
        self.while_read()
        return [Scattered(steps.pop(), {"a": "a", "b/c": "b/c"})] if len(steps) == 1 else []


def gatherer(trainer: CommandTrainer, work: Path) -> Gatherer:
    return Gatherer(trainer, spec(checkpoints={"pattern": "step_{step}"}), work)


def write(path: Path, text: str, *, at_s: int = 1_800_000_000) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (at_s, at_s))


def content(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# ------------------------------------------------------------------------------------------------------------
# files


def test_each_file_gets_a_folder_and_stays_where_the_trainer_wrote_it(tmp_path: Path) -> None:
    write(tmp_path / "out/4", "four")
    write(tmp_path / "out/8", "eight")
    write(tmp_path / "out/notes", "none")
    gatherer(Files(), tmp_path).gather(above=-1)
    assert content(tmp_path / "checkpoints") == {"step_4/state": "four", "step_8/state": "eight"}
    assert set(content(tmp_path / "out")) == {"4", "8", "notes"}


def test_a_file_that_the_trainer_deletes_stays_in_its_folder(tmp_path: Path) -> None:
    write(tmp_path / "out/4", "four")
    one = gatherer(Files(), tmp_path)
    one.gather(above=-1)
    (tmp_path / "out/4").unlink()
    one.gather(above=-1)
    assert content(tmp_path / "checkpoints") == {"step_4/state": "four"}


def test_a_file_that_is_still_written_grows_in_its_folder_too(tmp_path: Path) -> None:
    write(tmp_path / "out/4", "fo")
    one = gatherer(Files(), tmp_path)
    one.gather(above=-1)
    with (tmp_path / "out/4").open("a") as file:
        file.write("ur")
    one.gather(above=-1)
    assert content(tmp_path / "checkpoints") == {"step_4/state": "four"}


def test_a_file_that_was_replaced_is_gathered_again(tmp_path: Path) -> None:
    write(tmp_path / "out/4", "four")
    one = gatherer(Files(), tmp_path)
    one.gather(above=-1)
    write(tmp_path / "out/new", "FOUR", at_s=1_800_000_100)
    (tmp_path / "out/new").rename(tmp_path / "out/4")
    one.gather(above=-1)
    assert content(tmp_path / "checkpoints") == {"step_4/state": "FOUR"}


def test_files_from_before_the_trainer_started_are_not_gathered_until_they_are_written_again(
    tmp_path: Path,
) -> None:
    write(tmp_path / "out/4", "old")
    one = gatherer(Files(), tmp_path)
    one.disregard_present()
    one.gather(above=-1)
    assert not (tmp_path / "checkpoints").exists()
    write(tmp_path / "out/4", "new", at_s=1_800_000_100)
    one.gather(above=-1)
    assert content(tmp_path / "checkpoints") == {"step_4/state": "new"}


def test_only_steps_above_the_newest_in_the_bucket_are_gathered_and_older_folders_go(tmp_path: Path) -> None:
    for step in (4, 8, 12):
        write(tmp_path / f"out/{step}", str(step))
    one = gatherer(Files(), tmp_path)
    one.gather(above=4)
    assert set(content(tmp_path / "checkpoints")) == {"step_8/state", "step_12/state"}
    write(tmp_path / "checkpoints/mine/notes", "kept")
    one.drop(below=12)
    assert set(content(tmp_path / "checkpoints")) == {"step_12/state", "mine/notes"}


class CountingAnew(Files):
    def counts_anew(self, spec: RunSpec) -> bool:
        return True


def test_steps_that_are_counted_anew_follow_the_step_that_was_resumed(tmp_path: Path) -> None:
    write(tmp_path / "out/4", "four")
    gatherer(CountingAnew(), tmp_path).gather(above=20, resumed_step=20)
    gatherer(Files(), tmp_path).gather(above=20, resumed_step=20)
    assert content(tmp_path / "checkpoints") == {"step_24/state": "four"}


def test_a_trainer_that_writes_folders_keeps_them(tmp_path: Path) -> None:
    write(tmp_path / "checkpoints/step_4/state", "four")
    one = gatherer(CommandTrainer(), tmp_path)
    one.disregard_present()
    one.gather(above=-1)
    one.drop(below=8)
    assert content(tmp_path / "checkpoints") == {"step_4/state": "four"}


# ------------------------------------------------------------------------------------------------------------
# state


def test_a_state_that_is_overwritten_is_copied(tmp_path: Path) -> None:
    write(tmp_path / "out/a", "4")
    write(tmp_path / "out/b/c", "4")
    one = gatherer(State(), tmp_path)
    one.gather(above=-1)
    write(tmp_path / "out/a", "8", at_s=1_800_000_100)
    one.gather(above=-1)
    assert content(tmp_path / "checkpoints") == {"step_4/a": "4", "step_4/b/c": "4"}


def test_a_state_that_changes_while_it_is_copied_is_not_kept(tmp_path: Path) -> None:
    write(tmp_path / "out/a", "4")
    write(tmp_path / "out/b/c", "4")
    trainer = State()
    one = gatherer(trainer, tmp_path)
    listed = iter(("before the copy", "after it"))

    def change() -> None:
        if next(listed) == "after it":
            write(tmp_path / "out/b/c", "4", at_s=1_800_000_100)

    trainer.while_read = change
    one.gather(above=-1)
    assert content(tmp_path / "checkpoints") == {}


def test_an_unchanged_state_is_copied_once(tmp_path: Path) -> None:
    write(tmp_path / "out/a", "4")
    write(tmp_path / "out/b/c", "4")
    one = gatherer(State(), tmp_path)
    one.gather(above=-1)
    first = (tmp_path / "checkpoints/step_4/a").stat().st_ino
    one.gather(above=-1)
    assert (tmp_path / "checkpoints/step_4/a").stat().st_ino == first
