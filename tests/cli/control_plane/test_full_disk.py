"""`serve` on a disk of one MiB that becomes full: it says so, and goes on as far as it can."""

import json
import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from prime_train.stores.sqlite.store import SqliteStore
from prime_train.text.explained_errors import explained
from prime_train.text.os_errors import EXHAUSTED
from tests.chaos.disks import full, small_disk
from tests.cli.shell import Shell
from tests.waiting import await_true

DISK_BYTES = 2**20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    with small_disk(folder, DISK_BYTES):
        if not os.path.ismount(folder):
            pytest.skip("nothing may be mounted here")
        yield folder


@pytest.fixture
def at(disk: Path, tmp_path: Path) -> Shell:
    """A shell whose home is on the small disk; what it prints, and the bucket, are on another one."""
    (tmp_path / "bucket").mkdir(mode=0o700)
    return Shell(tmp_path)


def settings(disk: Path, tmp_path: Path) -> dict[str, str]:
    return {"PRIME_TRAIN_HOME": str(disk / "home"), "PRIME_TRAIN_BUCKET": (tmp_path / "bucket").as_uri()}


def serving(disk: Path) -> dict[str, object]:
    """Return what serve.json says."""
    content: dict[str, object] = json.loads((disk / "home" / "serve.json").read_text())
    return content


def test_serve_whose_disk_becomes_full_says_so_answers_and_sweeps_again_when_there_is_room(
    at: Shell, disk: Path, tmp_path: Path
) -> None:
    own = settings(disk, tmp_path)
    with at.started("serve", "--port", "0", "--interval", "1", until="serving ", **own) as serve:
        with full(disk):
            await_true("it says so", lambda: "the disk is full; free some space" in at.output)
            with urllib.request.urlopen(f"{serving(disk)['url']}/healthz", timeout=30) as health:
                assert health.status == 200
            assert at.run("status", **own).returncode == 0, "what can be read is shown"
        before_s = last_sweep_s(disk)
        await_true("it sweeps again", lambda: last_sweep_s(disk) > before_s)
        assert serve.poll() is None
    assert "bug in prime-train" not in at.output
    assert "Traceback" not in at.output


def test_serve_that_starts_again_on_a_full_disk_serves_and_writes_where_once_there_is_room(
    at: Shell, disk: Path, tmp_path: Path
) -> None:
    own = settings(disk, tmp_path)
    with at.started("serve", "--port", "0", until="serving ", **own) as first:
        first.kill()  # as a machine that goes down: the store's log stays
        first.wait()
    with full(disk):
        with at.started("serve", "--interval", "1", until="serving ", **own) as serve:
            assert (
                "serve.json cannot be written: No space left on device: the disk is full; free some space"
                in at.output
            )
            (disk / ".filler").write_bytes(b"")
            await_true("serve.json names it", lambda: serving(disk)["pid"] == serve.pid)
            assert serve.poll() is None
        assert "bug in prime-train" not in at.output


def test_serve_that_never_served_on_a_full_disk_ends_with_what_to_do(
    at: Shell, disk: Path, tmp_path: Path
) -> None:
    with full(disk):
        done = at.run("serve", "--port", "0", **settings(disk, tmp_path))
    assert done.returncode == 3
    assert "free some space" in done.stderr
    assert "bug in prime-train" not in done.stderr


@pytest.mark.parametrize("number", EXHAUSTED)
def test_an_error_of_the_system_without_a_file_name_is_no_bug(number: int) -> None:
    code, text = explained(OSError(number, os.strerror(number)))
    assert (code, text) == (3, f"{os.strerror(number)}: {EXHAUSTED[number]} (it may work later)")


@pytest.mark.parametrize(
    "error",
    [
        OSError("it went wrong"),
        ConnectionResetError(104, "Connection reset by peer"),
        TimeoutError("timed out"),
    ],
)
def test_no_error_of_the_system_is_a_bug(error: OSError) -> None:
    code, text = explained(error)
    assert code == 3
    assert "bug" not in text


def last_sweep_s(disk: Path) -> int:
    store = SqliteStore(disk / "home" / "control.sqlite")
    try:
        return store.watch().last_sweep_s or 0
    finally:
        store.close()
