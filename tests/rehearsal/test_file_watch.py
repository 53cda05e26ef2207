"""The watch over a folder's files, by the kernel's events and by looking again and again."""

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from prime_train.rehearsal import file_watch
from prime_train.rehearsal.file_watch import FileWatch
from prime_train.rehearsal.recording import Change, FileChange, Recording
from prime_train.rehearsal.written_files import FileHistory, history_of
from tests.waiting import await_true


class Watched:
    """A folder under watch, with the changes that were told."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.changes: list[FileChange] = []
        began = time.monotonic()
        self._watch = FileWatch(root, self.changes.append, lambda _: None, lambda: time.monotonic() - began)
        self._watch.start()

    @property
    def history(self) -> FileHistory:
        return history_of(Recording(list(self.changes)))

    def end(self) -> FileHistory:
        self._watch.end()
        return self.history

    def await_file(self, path: str) -> None:
        """Wait until this file is known to be complete."""
        await_true(path, lambda: path in {one.path for one in self.history.completed})


@pytest.fixture(params=["events", "looking"])
def watched(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Watched]:
    if request.param == "looking":
        forget_the_kernel(monkeypatch)
    elif not hasattr(file_watch, "INotify"):
        pytest.skip("this system has no events of this kind")
    made = Watched(tmp_path)
    yield made
    made.end()


def forget_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have files watched as where the kernel gives no events."""

    def none() -> None:
        raise OSError("no more watches")

    monkeypatch.setattr(file_watch, "INotify", none, raising=False)


def test_each_version_of_a_file_is_known_with_its_content(watched: Watched) -> None:
    file = watched.root / "out/ckpt.pt"
    file.parent.mkdir()
    for number in range(3):
        file.write_bytes(b"\0" + bytes([number]) * 100)
        await_true("the version", partial(_has_completed, watched, number + 1))

    found = watched.end()

    assert [(one.path, one.size) for one in found.completed] == [("out/ckpt.pt", 101)] * 3
    assert len({one.digest for one in found.completed}) == 3
    assert [one.is_rewrite for one in found.completed] == [False, True, True]


def test_a_file_that_is_renamed_into_place_is_known_by_its_draft(watched: Watched) -> None:
    draft = watched.root / "model.pt.tmp"
    draft.write_bytes(bytes(100))
    watched.await_file("model.pt.tmp")
    draft.rename(watched.root / "model.pt")

    found = watched.end()

    assert [(one.path, one.draft) for one in found.completed] == [("model.pt", "model.pt.tmp")]


def test_a_new_file_that_gets_the_number_of_a_deleted_one_was_not_renamed(watched: Watched) -> None:
    for number in range(3):
        (watched.root / f"n_{number}.pt").write_bytes(bytes([0, number]) * 50)
        watched.await_file(f"n_{number}.pt")
        (watched.root / f"n_{number}.pt").unlink()

    found = watched.end()

    assert [(one.path, one.draft) for one in found.completed] == [
        (f"n_{number}.pt", "") for number in range(3)
    ]
    assert set(found.deleted) == {"n_0.pt", "n_1.pt", "n_2.pt"}


def test_a_folder_that_is_made_filled_and_renamed_at_once_is_complete(watched: Watched) -> None:
    for number in range(20):
        draft = watched.root / f"tmp_{number}/deep/deeper"
        draft.mkdir(parents=True)
        (draft / "state.bin").write_bytes(bytes([0, number]) * 200)
        (watched.root / f"tmp_{number}").rename(watched.root / f"step_{number}")

    found = watched.end()

    paths = {one.path: one.size for one in found.completed}
    assert paths == {f"step_{number}/deep/deeper/state.bin": 400 for number in range(20)}


def test_links_and_texts_are_known_by_what_they_name(watched: Watched) -> None:
    folder = watched.root / "step_1"
    folder.mkdir()
    (folder / "a.pt").write_bytes(bytes(10))
    (watched.root / "newest").symlink_to("step_1")
    (watched.root / "latest").write_text("step_1")

    found = watched.end()

    assert [(one.path, one.came_from) for one in found.links] == [("newest", "step_1")]
    assert {one.path: one.text for one in found.completed}["latest"] == "step_1"


def test_pipes_and_links_to_nowhere_are_not_opened(watched: Watched) -> None:
    os.mkfifo(watched.root / "ckpt_1.pt")
    (watched.root / "ckpt_2.pt").symlink_to("/nowhere/at/all")
    (watched.root / "ckpt_3.pt").symlink_to("ckpt_1.pt")
    (watched.root / "ckpt_4.pt").write_bytes(bytes(10))
    watched.await_file("ckpt_4.pt")

    found = watched.end()

    assert [one.path for one in found.completed] == ["ckpt_4.pt"]


def test_files_that_were_there_before_are_told_only_when_they_change(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/old.bin").write_bytes(bytes(10))
    watched = Watched(tmp_path)
    (tmp_path / "data/new.bin").write_bytes(bytes(10))

    found = watched.end()

    assert [one.path for one in found.completed] == ["data/new.bin"]
    assert {one.change for one in watched.changes} == {Change.BEGUN, Change.CLOSED}


def _has_completed(watched: Watched, count: int) -> bool:
    return len(watched.history.completed) == count
