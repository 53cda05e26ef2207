"""prime-rl's own validators: its config package at one commit, kept with its dependencies in a cache folder,
and run on configs.

Code of that commit and of its dependencies is run here: isolated and with a time limit. First,
the commit must be on a branch or tag of that very repository, because a host of forks serves any commit of
any fork by its hash; and nothing is built or run while it is fetched and installed. A run's environments are
deferred: they are neither installed nor imported.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from prime_train import bubblewrap
from prime_train.advice import Advice, Option, SettingAdvice
from prime_train.errors import PermanentError
from prime_train.spec.tree import Plain
from prime_train.spec.upstream import ValidatorError
from prime_train.text.redaction import redacted
from prime_train.trainers.prime_rl.validators.cache import Cache, CachedPackage
from prime_train.trainers.prime_rl.validators.dependencies import install
from prime_train.trainers.prime_rl.validators.package_source import NoSuchCommit, fetch, full_commit
from prime_train.trainers.prime_rl.validators.process import run

__all__ = ["CHECK_S_MAX", "CachedPackage", "NoSuchCommit", "Validators"]

CHECK_S_MAX = 60.0


@dataclass(frozen=True)
class Validators:
    """The validators. `repository`: prime-rl's address; `folder`: the cache; `progress` is called with a line
    of text before anything slow.
    """

    repository: str
    folder: Path
    progress: Callable[[str], None]
    check_s_max: float = CHECK_S_MAX
    trusted: bool = False
    """Whether the validators run without isolation, with all of this user's rights."""

    def at(self, ref: str) -> CachedPackage:
        """Return the package of the commit that begins with `ref`; if it is cached, nothing is fetched or
        looked up.

        Raises NoSuchCommit; PermanentError if git is missing or the commit cannot be installed here;
        TemporaryError if the repository or a package index could not be reached.
        """
        cache = Cache(self.folder)
        cached = cache.find(ref)
        if cached is not None:
            return cached
        with _on_disk(), cache.building() as draft:
            self.progress(f"prime-rl {ref[:12]}: fetching its config package")
            commit = full_commit(self.repository, ref, draft.scratch)
            there = cache.find(commit) if commit != ref else None
            if there is not None:
                return there
            date = fetch(self.repository, commit, draft.package, draft.scratch)
            self.progress(f"prime-rl {commit[:12]}: installing the dependencies of its config package (once)")
            install(draft.package, draft.environment, draft.packages, date)
            return cache.keep(draft, commit)

    def judge(self, cached: CachedPackage, config: Plain) -> tuple[ValidatorError, ...]:
        """Return what the validators refuse in a config whose includes and arguments are already merged;
        empty if they accept it.

        Raises TemporaryError if they took too long, PermanentError if they cannot be loaded or gave no
        answer.
        """
        with suppress(OSError):
            # The most recently used are kept; a read-only cache can be used as well.
            cached.folder.touch()
        with _on_disk():
            return ask(cached, config, self.check_s_max, trusted=self.trusted)


@contextmanager
def _on_disk() -> Iterator[None]:
    """Convert an OSError, such as a full disk or a folder of another user, to PermanentError."""
    try:
        yield
    except OSError as error:
        raise PermanentError(
            f"{error.filename or 'the disk'} cannot be written to: {error.strerror}"
        ) from error


_SCRIPT = Path(__file__).with_name("validator_script.py")
FILE_BYTES_MAX = 16 * 2**20
"""Size limit in bytes of every file that the process writes, including its outputs, which are on this
machine's disk.
"""
_START = (
    f"import resource, runpy, site, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({FILE_BYTES_MAX}, "
    f"{FILE_BYTES_MAX})); "
    # code of the packages runs from here on
    "site.addsitedir(sys.argv[3]); sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
)
_OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "WANDB_MODE": "disabled",
    "DO_NOT_TRACK": "1",
}


def ask(
    package: CachedPackage, config: Plain, limit_s: float, *, trusted: bool = False
) -> tuple[ValidatorError, ...]:
    """Return the validators' refusals of `config`. Raises TemporaryError if they did not answer in `limit_s`
    seconds, PermanentError if they failed without an answer or code cannot be isolated on this machine.

    `trusted`: run without isolation.
    """
    # The underlying interpreter: the environment's own would run files of its packages at start.
    python = package.python.resolve()
    # Isolated and without site: no variable, folder or package of the user's is read.
    command = [
        str(python),
        "-I",
        "-B",
        "-S",
        "-c",
        _START,
        str(_SCRIPT),
        str(package.source),
        str(package.packages),
    ]
    if not trusted:
        command = walled(command, (python.parents[1], package.folder.resolve(), _SCRIPT))
    with tempfile.TemporaryDirectory() as home:
        environment, given = _environment(home if trusted else HOME), json.dumps(config)
        done = run(command, environment, limit_s, folder=Path(home), given=given, called="the check")
    try:
        answer = json.loads(done.out)
        failure = str(answer.get("failure") or "")
        found = tuple(
            ValidatorError(tuple(row["where"]), str(row["kind"]), str(row["text"]))
            for row in answer.get("refusals", ())
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PermanentError(
            f"the validators gave no answer (exit code {done.code}): {done.last_words}"
        ) from error
    if failure:
        raise PermanentError(f"the validators cannot be used: {redacted(failure)}")
    return found


def _environment(home: str) -> dict[str, str]:
    plain = {
        "PATH": "/usr/bin:/bin",
        "HOME": home,
        "TMPDIR": home,
        "HF_HOME": home,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
    }
    return plain | _OFFLINE


# Isolation of a commit's code by bubblewrap, in separate namespaces for users, processes, mounts and the
# network.
#
# The code can read the system's programs and libraries, one Python, and its own package. It has no access to
# the home folder, other processes and the network, and can write only to small in-memory folders that are
# deleted with it. Removing variables from its environment would not be enough: a process can read the
# environment of its parent if both have the same user.
HOME = "/tmp/home"
MEMORY_BYTES_MAX = 256 * 2**20
"""Size limit in bytes of /tmp."""
SHARED_BYTES_MAX = 16 * 2**20
"""Size limit in bytes of shared memory, where Python keeps locks between processes."""
_SYSTEM = ("/bin", "/lib", "/lib32", "/lib64", "/sbin")
_WALLS = (
    *bubblewrap.COMMON,
    *("--unshare-net", "--unshare-uts", "--unshare-cgroup-try", "--new-session"),
    *("--uid", "65534", "--gid", "65534", "--hostname", "isolated"),
)
CANNOT = "code of prime-rl cannot be isolated from your files"
FIX = Advice(
    "install bubblewrap (bwrap) on a system that allows user namespaces; or, if you trust that commit with "
    "all your files, ",
    Option(SettingAdvice.DEEP, "trust"),
)


def walled(command: Sequence[str], visible: Sequence[Path]) -> list[str]:
    """Return the command wrapped in the isolation, in which these files and folders are visible at their own
    paths.

    Raises PermanentError if this machine does not support it.
    """
    program = bubblewrap.program()
    if program is None:
        raise PermanentError(f"{CANNOT}: {bubblewrap.MISSING}", fix=FIX)
    # Raise PermanentError if a visible path contains the home folder, as a Python installed directly into it
    # would.
    bare = next((path for path in visible if Path.home().resolve().is_relative_to(path.resolve())), None)
    if bare is not None:
        raise PermanentError(f"{CANNOT}: its Python is in {bare}, where your home folder is too", fix=FIX)
    walls = [program, *_WALLS, *_mounts(visible), "--"]
    why_not = bubblewrap.why_not(walls)
    if why_not:
        raise PermanentError(f"{CANNOT}: {why_not}", fix=FIX)
    return [*walls, *command]


def _mounts(visible: Sequence[Path]) -> list[str]:
    words = ["--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev"]
    for name in _SYSTEM:
        # If these are links into /usr, as on most systems, the same links are needed inside.
        target = Path(name)
        words += (
            ["--symlink", str(target.readlink()), name]
            if target.is_symlink()
            else ["--ro-bind-try", name, name]
        )
    words += [
        "--ro-bind-try",
        "/etc/ld.so.cache",
        "/etc/ld.so.cache",
        "--size",
        str(MEMORY_BYTES_MAX),
        "--tmpfs",
        "/tmp",
    ]
    words += [word for path in visible for word in ("--ro-bind", str(path), str(path))]
    # The root of all these mounts and the folder of devices are in memory too, but have no size limit, so
    # they are made read-only.
    words += [
        "--dir",
        HOME,
        "--size",
        str(SHARED_BYTES_MAX),
        "--tmpfs",
        "/dev/shm",
        "--remount-ro",
        "/dev",
        "--remount-ro",
        "/",
    ]
    return [*words, "--chdir", HOME]
