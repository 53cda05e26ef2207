"""The working tree: unpacked, or cloned at its commit."""

import gzip
import hashlib
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from prime_agent.before_training.code_snapshot import clone, unpack
from prime_agent.before_training.phase import Called, CallOff, PhaseError, Shell
from prime_agent.processes import LocalProcesses
from prime_train.buckets.open import open_bucket
from prime_train.launch.code.archive import pack, survey
from prime_train.spec.causes import Cause
from prime_train.spec.spec import CodeSpec
from tests.agent.attempts import packed
from tests.waiting import HANG_S

GIT = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    work = tmp_path / "work"
    work.mkdir()
    return Shell(
        LocalProcesses(f"tree-{tmp_path.name}-{os.getpid()}"), work, os.environ, tmp_path / "log", CallOff()
    )


@pytest.fixture
def repo(tmp_path: Path) -> tuple[Path, list[str]]:
    """Return a repository with two commits and a branch, and the commits' ids."""
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q")
    commits = []
    for text in ("first", "second"):
        (folder / "file").write_text(text)
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", text)
        commits.append(git(folder, "rev-parse", "HEAD"))
    git(folder, "branch", "old", commits[0])
    return folder, commits


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        [*GIT, *arguments], cwd=folder, check=True, capture_output=True, text=True, timeout=HANG_S
    ).stdout.strip()


def test_a_tree_is_unpacked_and_what_was_there_before_is_gone(shell: Shell, tmp_path: Path) -> None:
    bucket = open_bucket((tmp_path / "bucket").as_uri(), make=True)
    bucket.put("tree", packed({"a/b.txt": b"hello"}))
    (shell.cwd / "half").write_text("of an earlier agent's")
    unpack(bucket, "tree", shell.cwd, shell)
    assert [path.relative_to(shell.cwd).as_posix() for path in shell.cwd.rglob("*.txt")] == ["a/b.txt"]
    assert not (shell.cwd / "half").exists()
    assert not (tmp_path / "code.tar.gz").exists()


def test_a_tree_that_reaches_out_of_its_folder_is_refused(shell: Shell, tmp_path: Path) -> None:
    bucket = open_bucket((tmp_path / "bucket").as_uri(), make=True)
    bucket.put("tree", packed({"../outside": b"x"}))
    with pytest.raises(PhaseError) as refused:
        unpack(bucket, "tree", shell.cwd, shell)
    assert refused.value.cause is Cause.SETUP_FAILED
    assert not (tmp_path / "outside").exists()


def test_a_tree_that_somebody_wrote_after_the_launch_is_not_unpacked(shell: Shell, tmp_path: Path) -> None:
    bucket = open_bucket((tmp_path / "bucket").as_uri(), make=True)
    launched = packed({"train.py": b"good"})
    bucket.put("tree", launched)
    unpack(bucket, "tree", shell.cwd, shell, sha256=hashlib.sha256(launched).hexdigest())
    assert (shell.cwd / "train.py").read_bytes() == b"good"
    bucket.put("tree", packed({"train.py": b"evil"}))
    with pytest.raises(PhaseError, match="differs from the one that the run was launched with"):
        unpack(bucket, "tree", shell.cwd, shell, sha256=hashlib.sha256(launched).hexdigest())
    assert not list(shell.cwd.iterdir())


def test_an_absolute_name_in_a_tree_is_refused(shell: Shell, tmp_path: Path) -> None:
    bucket = open_bucket((tmp_path / "bucket").as_uri(), make=True)
    bucket.put("tree", packed({f"{tmp_path}/outside": b"x"}))
    with pytest.raises(PhaseError, match="is not a relative path inside the folder"):
        unpack(bucket, "tree", shell.cwd, shell)
    assert not (tmp_path / "outside").exists()


def test_links_in_a_tree_are_kept_where_they_stay_inside_and_nothing_is_written_through_one(
    shell: Shell, tmp_path: Path
) -> None:
    bucket = open_bucket((tmp_path / "bucket").as_uri(), make=True)
    folder = tmp_path / "code"
    (folder / "data" / "-odd").mkdir(parents=True)
    (folder / "data" / "a.txt").write_text("a")
    (folder / "data" / "-odd" / "name\n").write_text("b")
    (folder / "link").symlink_to("data/a.txt")
    (folder / "data" / "up").symlink_to("../link")
    assert pack(survey(folder), tmp_path / "packed") is None
    bucket.put("tree", (tmp_path / "packed").read_bytes())
    unpack(bucket, "tree", shell.cwd, shell)
    assert (shell.cwd / "data" / "up").read_text() == "a"
    assert (shell.cwd / "data" / "-odd" / "name\n").read_text() == "b"


@pytest.mark.parametrize(
    ("name", "target"), [("a", "../x"), ("a", "/etc"), ("d/a", "../../x"), ("d/a", "b/../../.."), ("a", "")]
)
def test_a_link_in_a_tree_that_leads_outside_is_refused(
    name: str, target: str, shell: Shell, tmp_path: Path
) -> None:
    bucket = open_bucket((tmp_path / "bucket").as_uri(), make=True)
    link = tarfile.TarInfo(name)
    link.type, link.linkname = tarfile.SYMTYPE, target
    bucket.put("tree", gzip.compress(link.tobuf() + bytes(1024)))
    with pytest.raises(PhaseError, match="is a link that points outside"):
        unpack(bucket, "tree", shell.cwd, shell)
    assert not list(shell.cwd.iterdir())


def test_a_tree_that_is_cut_off_or_absent_is_reported(shell: Shell, tmp_path: Path) -> None:
    bucket = open_bucket((tmp_path / "bucket").as_uri(), make=True)
    bucket.put("cut", packed({"a": os.urandom(10_000)})[:5000])
    with pytest.raises(PhaseError, match="cannot be unpacked"):
        unpack(bucket, "cut", shell.cwd, shell)
    with pytest.raises(PhaseError, match="absent is not in the bucket"):
        unpack(bucket, "absent", shell.cwd, shell)


def test_a_repository_is_checked_out_at_the_launchs_commit_whatever_has_come_since(
    repo: tuple[Path, list[str]], shell: Shell
) -> None:
    clone(CodeSpec(repo=str(repo[0]), ref="main"), repo[1][0], shell.cwd, shell)
    assert (shell.cwd / "file").read_text() == "first"


@pytest.mark.parametrize(("ref", "text"), [("old", "first"), (None, "second"), ("short", "first")])
def test_without_a_commit_the_ref_or_the_default_branch_counts(
    ref: str | None, text: str, repo: tuple[Path, list[str]], shell: Shell
) -> None:
    wanted = repo[1][0][:10] if ref == "short" else ref
    clone(CodeSpec(repo=repo[0].as_uri(), ref=wanted), "", shell.cwd, shell)
    assert (shell.cwd / "file").read_text() == text


def test_a_clone_that_is_called_off_ends(tmp_path: Path, shell: Shell) -> None:
    shell.called_off.now()
    with pytest.raises(Called):
        clone(CodeSpec(repo=str(tmp_path / "absent")), "", shell.cwd, shell)
