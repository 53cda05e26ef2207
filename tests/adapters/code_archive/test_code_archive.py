"""Which files of a folder become the working tree of a run."""

import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from prime_train.errors import PermanentError, TemporaryError
from prime_train.launch.code.archive import checkout_of, commit_of, pack, survey
from prime_train.launch.code.git import same_repository
from prime_train.spec.finding import Severity


def git(folder: Path, *arguments: str) -> str:
    message = [
        "git",
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.com",
        "-c",
        "init.defaultBranch=main",
        "-c",
        "commit.gpgsign=false",
    ]
    return subprocess.run(
        [*message, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def write(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    write(folder, "train.py", "src/model.py", ".gitignore", "out/checkpoints/step_1/weights")
    (folder / ".gitignore").write_text("*.log\n")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    return folder


def packed(folder: Path, into: Path, without: tuple[str, ...] = ()) -> dict[str, tarfile.TarInfo]:
    assert pack(survey(folder, without=without), into) is None
    with tarfile.open(into) as tar:
        return {member.name: member for member in tar}


def test_in_a_checkout_git_says_what_belongs_to_it(repository: Path, tmp_path: Path) -> None:
    write(repository, "new.py", "huge.log", "name with ü.txt")
    (repository / "train.py").write_text("changed")
    (repository / "src/model.py").unlink()
    names = packed(repository, tmp_path / "t.tar.gz", ("out/checkpoints",))
    assert set(names) == {"train.py", ".gitignore", "new.py", "name with ü.txt"}
    with tarfile.open(tmp_path / "t.tar.gz") as tar:
        content = tar.extractfile("train.py")
        assert content is not None
        assert content.read() == b"changed"


def test_a_folder_of_a_checkout_is_packed_alone(repository: Path) -> None:
    assert [name for name, _ in survey(repository / "src").files] == ["model.py"]


def test_a_repository_inside_is_packed_too(repository: Path) -> None:
    write(repository, "vendor/lib/a.py")
    git(repository / "vendor/lib", "init", "-q")
    assert "vendor/lib/a.py" in dict(survey(repository).files)
    assert not [name for name, _ in survey(repository).files if ".git/" in name]


def test_without_git_caches_and_environments_stay_behind(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    write(
        folder,
        "a.py",
        "b/c.py",
        ".env/pyvenv.cfg",
        ".env/lib/x.py",
        "__pycache__/a.pyc",
        "node_modules/x.js",
        "checkpoints/step_1/w",
    )
    assert [name for name, _ in survey(folder, without=("checkpoints",)).files] == ["a.py", "b/c.py"]


def test_a_checkpoint_folder_that_is_the_tree_itself_leaves_the_tree(tmp_path: Path) -> None:
    write(tmp_path, "a.py")
    assert [name for name, _ in survey(tmp_path, without=(".",)).files] == ["a.py"]


def test_links_inside_are_kept_and_links_to_the_outside_stay_behind_with_a_warning(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    write(folder, "a.py")
    (folder / "in").symlink_to("a.py")
    (folder / "out").symlink_to("../elsewhere")
    (folder / "root").symlink_to("/etc/passwd")
    tree = survey(folder)
    assert {name for name, _ in tree.files} == {"a.py", "in"}
    (finding,) = tree.findings
    assert finding.severity is Severity.WARNING
    assert "out, root" in finding.message
    assert packed(folder, tmp_path / "t.tar.gz")["in"].linkname == "a.py"


def test_a_tree_that_is_too_large_names_its_largest_files(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(b"x" * 5000)
    write(tmp_path, "a.py")
    (finding,) = survey(tmp_path, bytes_max=1000).findings
    assert finding.code == "PT030"
    assert "the largest files: data.bin" in finding.message
    assert ".gitignore" in finding.fix


def test_too_many_files_are_a_finding(tmp_path: Path) -> None:
    write(tmp_path, *(f"{n}.txt" for n in range(12)))
    assert "more than 10 files" in survey(tmp_path, files_max=10).findings[0].message


@pytest.mark.parametrize("name", ["none", "file"])
def test_a_folder_that_is_none_is_a_finding(tmp_path: Path, name: str) -> None:
    write(tmp_path, "file")
    assert survey(tmp_path / name).findings[0].code == "PT030"


def test_the_same_files_give_the_same_bytes_and_no_owner(repository: Path, tmp_path: Path) -> None:
    (repository / "train.py").chmod(0o777)
    member = packed(repository, tmp_path / "a")["train.py"]
    packed(repository, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (member.uid, member.uname, member.mode) == (0, "", 0o755)


def test_a_file_that_goes_while_it_is_packed_is_a_finding(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    write(folder, "a.py")
    tree = survey(folder)
    (folder / "a.py").unlink()
    finding = pack(tree, tmp_path / "t")
    assert finding is not None
    assert finding.message.startswith("a.py: No such file")


def test_a_checkout_knows_its_commit_and_whether_it_is_exactly_that(repository: Path) -> None:
    clean = checkout_of(repository)
    assert clean is not None
    assert clean.name == git(repository, "rev-parse", "HEAD")
    assert not clean.is_pushed
    write(repository, "new.py")
    dirty = checkout_of(repository)
    assert dirty is not None
    assert dirty.name == f"{clean.commit}-dirty"


def test_a_pushed_commit_is_known_as_pushed(repository: Path, tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    git(tmp_path, "init", "-q", "--bare", str(remote))
    git(repository, "remote", "add", "origin", str(remote))
    git(repository, "push", "-q", "origin", "HEAD:main")
    seen = checkout_of(repository)
    assert seen is not None
    assert seen.is_pushed
    assert seen.remotes == (str(remote),)


def test_outside_of_git_there_is_no_checkout(tmp_path: Path) -> None:
    assert checkout_of(tmp_path) is None


def test_a_ref_of_a_repository_is_its_commit(repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD")
    git(repository, "tag", "-am", "first", "v1")
    for ref in (None, "main", "v1"):
        assert commit_of(str(repository), ref) == head
    with pytest.raises(PermanentError, match="no branch or tag 'nope'"):
        commit_of(str(repository), "nope")


def test_a_repository_that_cannot_be_queried_may_work_later_and_its_password_is_not_reported(
    tmp_path: Path,
) -> None:
    with pytest.raises(TemporaryError) as caught:
        commit_of(f"file://me:hidden@{tmp_path}/none", "main")
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://github.com/a/b", "git@github.com:a/b.git", True),
        ("https://github.com/a/b/", "https://token@GitHub.com/a/b.git", True),
        ("ssh://git@github.com/a/b", "https://github.com/a/b", True),
        ("https://github.com/a/b", "https://github.com/a/c", False),
    ],
)
def test_addresses_of_one_repository_are_found_to_be_the_same(one: str, other: str, same: bool) -> None:
    assert same_repository(one, other) is same


# ------------------------------------------------------------------------------------------------- a
# repository that a stranger has made


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """Create a program, and in the fixture's folder a file that shows whether it was run."""
    program = tmp_path / "trap.sh"
    program.write_text(f"#!/bin/sh\necho $0 $* >> {tmp_path / 'was-run'}\ncat\n")
    program.chmod(0o755)
    return program


def booby_trapped(repository: Path, trap: Path) -> None:
    """Set up every known way for a repository to make git run a program when the repository is only
    inspected.
    """
    hooks = repository / "hooks"
    hooks.mkdir()
    for name in (
        "post-index-change",
        "post-checkout",
        "pre-commit",
        "reference-transaction",
        "fsmonitor-watchman",
    ):
        (hooks / name).symlink_to(trap)
    (repository / ".gitattributes").write_text("*.py filter=theirs diff=theirs\n*.md filter=more.of.it\n")
    write(repository, "read.md")
    git(repository, "add", ".gitattributes", "read.md")
    git(repository, "commit", "-qm", "two")
    for key in (
        "filter.theirs.clean",
        "filter.theirs.smudge",
        "filter.more.of.it.process",
        "diff.theirs.textconv",
        "diff.external",
    ):
        git(repository, "config", key, str(trap))
    for key in (
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "core.askPass",
        "core.gitProxy",
        "credential.helper",
        "core.editor",
    ):
        git(repository, "config", key, str(trap))
    git(repository, "config", "filter.theirs.required", "true")
    git(repository, "config", "core.hooksPath", str(hooks))
    (repository / "train.py").write_text("changed")
    (repository / "read.md").write_text("changed")


def test_nothing_of_a_strangers_repository_is_run_while_it_is_looked_at(
    repository: Path, trap: Path, tmp_path: Path
) -> None:
    booby_trapped(repository, trap)
    (tmp_path / "was-run").unlink(missing_ok=True)
    found = checkout_of(repository)
    assert found is not None
    assert found.is_dirty
    assert "train.py" in dict(survey(repository).files)
    assert not (tmp_path / "was-run").exists(), (tmp_path / "was-run").read_text()


def test_looking_up_a_branch_runs_nothing_of_the_repository_that_we_stand_in(
    repository: Path, trap: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "there"
    git(tmp_path, "clone", "-q", str(repository), str(there))
    booby_trapped(repository, trap)
    git(repository, "config", f"url.ext::{trap} .insteadOf", "file://")
    (tmp_path / "was-run").unlink(missing_ok=True)
    monkeypatch.chdir(repository)
    assert commit_of(f"file://{there}", "main") == git(there, "rev-parse", "HEAD")
    with pytest.raises(TemporaryError, match="transport 'ext' not allowed"):
        commit_of(f"ext::{trap} %S", "main")
    assert not (tmp_path / "was-run").exists(), (tmp_path / "was-run").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_a_repository_that_belongs_to_another_user_is_refused_in_a_clear_sentence(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SUDO_UID", raising=False)
    for path in (repository, repository / ".git"):
        os.chown(path, 65534, 65534)
    for looked in (survey, checkout_of):
        with pytest.raises(PermanentError, match=r"belongs to another user.*safe\.directory"):
            looked(repository)
    git(repository, "config", "--global", "--add", "safe.directory", str(repository))
    assert checkout_of(repository) is not None


def test_a_hook_of_git_that_launches_looks_at_the_folder_and_not_at_the_hooks_repository(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    write(other, "a.py")
    git(other, "init", "-q")
    git(other, "add", "-A")
    git(other, "commit", "-qm", "other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    found = checkout_of(repository)
    assert found is not None
    assert found.commit != git(other, "rev-parse", "HEAD")
