"""prime-rl's own validators, from a repository like prime-rl's: real git, a real environment, a real
process.
"""

import fcntl
import json
import os
import shutil
import socket
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from prime_train.errors import PermanentError, TemporaryError
from prime_train.text.invocations import in_one_line
from prime_train.trainers.prime_rl.validators.cache import Cache
from prime_train.trainers.prime_rl.validators.dependencies import install
from prime_train.trainers.prime_rl.validators.process import run
from prime_train.trainers.prime_rl.validators.validators import (
    FILE_BYTES_MAX,
    MEMORY_BYTES_MAX,
    SHARED_BYTES_MAX,
    NoSuchCommit,
    Validators,
    walled,
)
from tests.fakes.prime_rl_configs import Repository, has_walls
from tests.server.calling import await_true

UV = shutil.which(
    "uv", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
)
CONFIG: dict[str, Any] = {"trainer": {}, "orchestrator": {}, "run": {"name": "good"}}


@pytest.fixture
def message() -> list[str]:
    return []


@pytest.fixture
def validators(prime_rl_repository: Repository, prime_rl_cache: Path, message: list[str]) -> Validators:
    return Validators(
        prime_rl_repository.folder.as_uri(), prime_rl_cache, message.append, trusted=not has_walls()
    )


def tools(folder: Path, installer: str) -> str:
    """Return a PATH with git and that installer; pip is taken from the environment of prime-train."""
    folder.mkdir()
    (folder / "git").symlink_to(str(shutil.which("git")))
    if installer == "uv":
        (folder / "uv").symlink_to(str(UV))
    return str(folder)


def surround(monkeypatch: pytest.MonkeyPatch, repository: Repository, folder: Path, **env: str) -> None:
    for name, value in {**repository.env(folder / "home", folder / "caches"), **env}.items():
        monkeypatch.setenv(name, value)


def named(name: str, where: str = "") -> dict[str, Any]:
    return {**CONFIG, "run": {"name": name, "dir": where}}


def test_what_is_kept_is_not_fetched_again(
    validators: Validators, prime_rl_repository: Repository, message: list[str]
) -> None:
    gone = replace(validators, repository="file:///nowhere")
    for ref in (prime_rl_repository.commit, prime_rl_repository.commit[:8]):
        assert gone.judge(gone.at(ref), {**CONFIG}) == ()
    assert message == []


def test_each_refusal_has_its_place_kind_and_words(
    validators: Validators, prime_rl_repository: Repository
) -> None:
    config = {**CONFIG, "max_steps": "many", "deployment": {"type": "single_node", "num_train_gpus": 0}}
    found = validators.judge(validators.at(prime_rl_repository.commit), config)
    assert [(row.where, row.kind) for row in found] == [
        (("max_steps",), "int_parsing"),
        (("deployment", "single_node", "num_train_gpus"), "greater_than_equal"),
    ]
    assert "greater than or equal to 1" in found[1].text


def test_environments_are_not_imported_and_what_stands_beside_them_is_queried(
    validators: Validators, prime_rl_repository: Repository
) -> None:
    source = {"env": {"taskset": {"id": "gone"}}, "ratio": 0}
    config = {
        **CONFIG,
        "orchestrator": {
            "train": {"source": [{**source, "ratio": 1}, source]},
            "eval": {"source": [source], "interval": 0},
        },
    }
    found = validators.judge(validators.at(prime_rl_repository.commit), config)
    assert [row.where for row in found] == [
        ("orchestrator", "train", "source", 1, "ratio"),
        ("orchestrator", "eval", "source", 0, "ratio"),
        ("orchestrator", "eval", "interval"),
    ]


def test_one_that_hangs_is_ended_with_all_that_it_has_started(
    validators: Validators, prime_rl_repository: Repository, tmp_path: Path
) -> None:
    kept, lock = validators.at(prime_rl_repository.commit), tmp_path / "lock"
    # Without walls: behind them it could not reach the lock by which this test knows that it has gone.
    hasty = Validators(
        validators.repository, validators.folder, validators.progress, check_s_max=2, trusted=True
    )
    with pytest.raises(TemporaryError, match="longer than 2 s"):
        hasty.judge(kept, named("hangs", str(lock)))
    with lock.open("ab") as file:
        # Returns once the last of them has gone.
        fcntl.flock(file, fcntl.LOCK_EX)


def test_it_sees_nothing_of_ours(
    validators: Validators, prime_rl_repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HF_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "PYTHONPATH", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "x")
    (row,) = validators.judge(validators.at(prime_rl_repository.commit), named("tells"))
    seen = set(row.text.removeprefix("Value error, it sees ").partition(" and ")[0].split())
    assert {"HF_HUB_OFFLINE", "HOME"} <= seen
    assert seen <= {
        *(
            "PATH",
            "HOME",
            "TMPDIR",
            "LANG",
            "LC_ALL",
            "LC_CTYPE",
            "HF_HOME",
            "HF_HUB_OFFLINE",
            "HF_DATASETS_OFFLINE",
        ),
        *("TRANSFORMERS_OFFLINE", "WANDB_MODE", "DO_NOT_TRACK", "PWD"),
    }
    home = Path(row.text.rpartition(" and ")[2])
    assert home != Path.home()
    assert not home.exists()


# ------------------------------------------------------------------------------------------------------------
# a commit that pries


walls = pytest.mark.skipif(
    not has_walls(), reason="this system lets nobody have namespaces; what is then refused is tested below"
)


def pried(where: str, validators: Validators, repository: Repository) -> dict[str, str]:
    (row,) = validators.judge(validators.at(repository.commit), named("pries", where))
    return dict(part.split("=", 1) for part in row.text.removeprefix("Value error, ").split(" "))


@pytest.fixture
def treasure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Create everything that malicious code could be after: a secret in this process's environment, a file in
    the home folder, a server, a folder, and this process itself.
    """
    home = tmp_path / "home"
    home.mkdir()
    (home / "master.key").write_text("the-master-key")
    monkeypatch.setenv("HOME", str(home))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        yield (
            f"reads={home}/master.key,lists={home},environs={secret_of_the_parent()},connects=127.0.0.1:{port},"
            f"writes={tmp_path}/written,kills={os.getpid()}"
        )


def secret_of_the_parent() -> str:
    """Return a part of the environment with which this process was started, as /proc shows it."""
    return next(iter(Path(f"/proc/{os.getpid()}/environ").read_bytes().split(b"\0"))).decode()


@walls
def test_a_commit_reads_no_secret_of_the_operators_reaches_no_server_and_writes_nowhere(
    validators: Validators, prime_rl_repository: Repository, treasure: str, tmp_path: Path
) -> None:
    found = pried(treasure, validators, prime_rl_repository)
    assert found == dict.fromkeys(("reads", "lists", "environs", "connects", "writes", "kills"), "no")
    assert not (tmp_path / "written").exists()


_FILLS = """
import multiprocessing, sys
multiprocessing.Lock()
for place in sys.argv[1:]:
    size = 0
    try:
        for number in range(30):
            with open(f"{place}/{number}", "wb") as file:
                size += file.write(bytes(10 * 2**20))
    except OSError:
        pass
    print(place, size // 2**20)
"""


@walls
def test_a_commit_fills_neither_the_memory_nor_the_disk_of_the_machine(tmp_path: Path) -> None:
    python = Path(sys.executable).resolve()
    places = ("/", "/etc", "/dev", "/dev/shm", "/tmp")
    done = run(
        walled([str(python), "-I", "-c", _FILLS, *places], (python.parents[1],)), {}, 60, folder=tmp_path
    )
    written = {place: int(size) for place, size in (line.split() for line in done.out.splitlines())}
    assert (written["/"], written["/etc"], written["/dev"]) == (0, 0, 0), done.err
    assert written["/dev/shm"] <= SHARED_BYTES_MAX // 2**20
    assert written["/tmp"] <= MEMORY_BYTES_MAX // 2**20


def test_a_package_that_a_commit_needs_cannot_fill_the_disk_with_its_output(
    validators: Validators, prime_rl_repository: Repository
) -> None:
    """Code in a `.pth` file runs before any of the commit's own code is imported."""
    kept = validators.at(prime_rl_repository.commit)
    early = kept.packages / "early.pth"
    early.write_text(
        f"import os; os._exit(7 if os.write(2, bytes({FILE_BYTES_MAX + 1})) <= {FILE_BYTES_MAX} else 8)\n"
    )
    try:
        with pytest.raises(PermanentError, match="exit code 7"):
            validators.judge(kept, {**CONFIG})
    finally:
        early.unlink()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_commit_that_is_trusted_could_have_had_it_all(
    validators: Validators, prime_rl_repository: Repository, treasure: str, tmp_path: Path
) -> None:
    """Without isolation, the attack of the test above succeeds."""
    found = pried(treasure, replace(validators, trusted=True), prime_rl_repository)
    expected = {
        "reads": "the-master-key",
        "environs": "found",
        "connects": "connected",
        "writes": "written",
        "kills": "seen",
    }
    assert found == {**expected, "lists": "master.key"}


@walls
def test_one_that_hangs_behind_walls_is_ended(
    validators: Validators, prime_rl_repository: Repository
) -> None:
    hasty, kept = replace(validators, check_s_max=2), validators.at(prime_rl_repository.commit)
    with pytest.raises(TemporaryError, match="longer than 2 s"):
        hasty.judge(kept, named("hangs", "/tmp/lock"))
    # The first of its processes has the package's place among its words; all others end with it, as it is the
    # first of their namespace.
    await_true(
        lambda: (
            not [
                one
                for one in psutil.process_iter(["cmdline"])
                if str(kept.source) in (one.info["cmdline"] or [])
            ]
        )
    )


def test_without_walls_no_code_of_a_commit_is_run_unless_it_is_trusted(
    validators: Validators, prime_rl_repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, strict = validators.at(prime_rl_repository.commit), replace(validators, trusted=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PermanentError, match=r"bubblewrap is not installed") as refused:
        strict.judge(kept, {**CONFIG})
    assert in_one_line(refused.value).endswith("if you trust that commit with all your files, --deep=trust")
    (tmp_path / "bwrap").write_text(
        "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n"
    )
    (tmp_path / "bwrap").chmod(0o755)
    with pytest.raises(PermanentError, match=r"uid map: Permission denied") as refused:
        strict.judge(kept, {**CONFIG})
    assert in_one_line(refused.value).endswith("if you trust that commit with all your files, --deep=trust")
    assert replace(validators, trusted=True).judge(kept, {**CONFIG}) == ()


def test_a_commit_of_a_fork_is_not_run_though_the_repositorys_host_gives_it_out(
    prime_rl_repository: Repository, tmp_path: Path, message: list[str]
) -> None:
    fresh = Validators(prime_rl_repository.folder.as_uri(), tmp_path / "cache", message.append)
    for ref in (prime_rl_repository.fork, prime_rl_repository.fork[:12]):
        with pytest.raises(NoSuchCommit, match="no branch or tag of prime-rl contains"):
            fresh.at(ref)
    assert not list((tmp_path / "cache").iterdir())


ADDRESSES = (
    "evil @ https://example.org/evil.zip",
    "git+https://example.org/evil.git",
    "./evil",
    "--index-url=x",
    "a\nb",
)


@pytest.mark.parametrize("needs", ADDRESSES)
def test_what_is_needed_by_address_is_not_fetched(needs: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[project]\ndependencies = [{json.dumps(needs)}]\n")
    with pytest.raises(PermanentError, match="only packages with a name"):
        install(tmp_path, tmp_path / "environment", tmp_path / "packages", "2026-08-21")


@pytest.mark.parametrize(
    "installer", ["pip", pytest.param("uv", marks=pytest.mark.skipif(UV is None, reason="uv is not here"))]
)
def test_nothing_is_built_for_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installer: str
) -> None:
    """A package distributed only as source would run its author's code here, with network access."""
    source = tmp_path / "evil-1.0"
    source.mkdir()
    setup = (
        f"open({str(tmp_path / 'was-run')!r}, 'w')\nfrom setuptools import "
        "setup\nsetup(name='evil', "
        "version='1.0')\n"
    )
    (source / "setup.py").write_text(setup)
    (source / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    links = tmp_path / "links"
    links.mkdir()
    with tarfile.open(links / "evil-1.0.tar.gz", "w:gz") as tar:
        tar.add(source, "evil-1.0")
    monkeypatch.setenv("PATH", tools(tmp_path / "tools", installer))
    for name, value in {
        "PIP_FIND_LINKS": str(links),
        "PIP_NO_INDEX": "1",
        "UV_FIND_LINKS": str(links),
        "UV_OFFLINE": "1",
    }.items():
        monkeypatch.setenv(name, value)
    package = tmp_path / "package"
    package.mkdir()
    (package / "pyproject.toml").write_text("[project]\ndependencies = ['evil']\n")
    with pytest.raises(TemporaryError, match="cannot be installed"):
        install(package, tmp_path / "environment", tmp_path / "packages", "2026-08-21")
    assert not (tmp_path / "was-run").exists()


@pytest.mark.parametrize(
    ("name", "words"),
    [("prints", "printed"), ("breaks", "TypeError: nothing is not a number"), ("fills", "OSError")],
)
def test_one_that_behaves_badly_is_a_refusal(
    validators: Validators, prime_rl_repository: Repository, name: str, words: str
) -> None:
    (row,) = validators.judge(validators.at(prime_rl_repository.commit), named(name))
    assert words in row.text


@pytest.mark.parametrize(("name", "words"), [("leaves", "exited with 5"), ("dies", "no answer .exit code 6")])
def test_one_that_gives_no_answer_is_reported(
    validators: Validators, prime_rl_repository: Repository, name: str, words: str
) -> None:
    with pytest.raises(PermanentError, match=words):
        validators.judge(validators.at(prime_rl_repository.commit), named(name))


def test_the_beginning_of_a_commit_is_enough(
    prime_rl_repository: Repository, tmp_path: Path, message: list[str]
) -> None:
    fresh = Validators(prime_rl_repository.folder.as_uri(), tmp_path / "cache", message.append)
    with pytest.raises(PermanentError, match=r"has no packages/prime-rl-configs"):
        fresh.at(prime_rl_repository.older[:9])
    assert "fetching" in message[0]
    assert not list((tmp_path / "cache").iterdir())


@pytest.mark.parametrize("ref", ["1234567", "1" * 40])
def test_a_commit_that_is_not_there_is_distinguished(
    prime_rl_repository: Repository, tmp_path: Path, message: list[str], ref: str
) -> None:
    with pytest.raises(NoSuchCommit, match=ref):
        Validators(prime_rl_repository.folder.as_uri(), tmp_path, message.append).at(ref)


def test_a_repository_that_cannot_be_reached_may_be_later(tmp_path: Path, message: list[str]) -> None:
    with pytest.raises(TemporaryError, match="cannot be fetched"):
        Validators((tmp_path / "none").as_uri(), tmp_path / "cache", message.append).at("1" * 40)


def test_a_cache_that_cannot_be_written_to_is_reported(tmp_path: Path, message: list[str]) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PermanentError, match=r"file/cache cannot be written to"):
        Validators("file:///nowhere", tmp_path / "file" / "cache", message.append).at("1" * 40)


def test_without_git_it_says_so(tmp_path: Path, message: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PermanentError, match="git cannot be started"):
        Validators("file:///nowhere", tmp_path / "cache", message.append).at("1" * 40)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "installer", ["pip", pytest.param("uv", marks=pytest.mark.skipif(UV is None, reason="uv is not here"))]
)
def test_it_is_installed_by_whichever_installer_is_here(
    prime_rl_repository: Repository,
    tmp_path: Path,
    message: list[str],
    monkeypatch: pytest.MonkeyPatch,
    installer: str,
) -> None:
    surround(monkeypatch, prime_rl_repository, tmp_path, PATH=tools(tmp_path / "tools", installer))
    fresh = Validators(prime_rl_repository.folder.as_uri(), tmp_path / "cache", message.append, trusted=True)
    assert fresh.judge(fresh.at(prime_rl_repository.commit[:12]), {**CONFIG}) == ()
    assert [line.rpartition(": ")[2] for line in message] == [
        "fetching its config package",
        "installing the dependencies of its config package (once)",
    ]


def test_what_cannot_be_installed_leaves_nothing_behind(
    prime_rl_repository: Repository, tmp_path: Path, message: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    surround(
        monkeypatch,
        prime_rl_repository,
        tmp_path,
        PATH=tools(tmp_path / "tools", "pip"),
        PIP_FIND_LINKS=str(tmp_path),
    )
    with pytest.raises(TemporaryError, match=r"cannot be installed .its dependencies.: .*led-to-these-tests"):
        Validators(prime_rl_repository.folder.as_uri(), tmp_path / "cache", message.append).at(
            prime_rl_repository.commit
        )
    assert not list((tmp_path / "cache").iterdir())


def test_one_whose_python_has_gone_is_made_again(
    validators: Validators, prime_rl_repository: Repository, tmp_path: Path, message: list[str]
) -> None:
    broken = tmp_path / "cache" / prime_rl_repository.commit
    shutil.copytree(validators.at(prime_rl_repository.commit).folder, broken, symlinks=True)
    (broken / "environment" / "bin" / "python").unlink()
    (broken / "environment" / "bin" / "python").symlink_to("/nowhere/python")
    with pytest.raises(TemporaryError):
        Validators("file:///nowhere", tmp_path / "cache", message.append).at(prime_rl_repository.commit)
    assert "fetching" in message[0]


def test_those_used_last_are_kept(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for at, commit in enumerate("abcde"):
        with cache.building() as draft:
            (draft.environment / "bin").mkdir(parents=True)
            (draft.environment / "bin" / "python").symlink_to(sys.executable)
            draft.packages.mkdir()
            os.utime(draft.root, (at, at))
            cache.keep(draft, commit * 40)
    assert sorted(path.name[0] for path in tmp_path.iterdir()) == ["b", "c", "d", "e"]
