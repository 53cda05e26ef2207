"""Isolation of a commit's code by bubblewrap, in separate namespaces for users, processes, mounts and the network.

The code can read the system's programs and libraries, one Python, and its own package. It has no access to the home folder, other processes
and the network, and can write only to small in-memory folders that are deleted with it. Removing variables from its environment would not
be enough: a process can read the environment of its parent if both have the same user.
"""

from collections.abc import Sequence
from pathlib import Path

from prime_train import bubblewrap
from prime_train.advice import Advice, Option, Setting
from prime_train.errors import PermanentError

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
    "install bubblewrap (bwrap) on a system that allows user namespaces; or, if you trust that commit with all your files, ",
    Option(Setting.DEEP, "trust"),
)


def walled(command: Sequence[str], visible: Sequence[Path]) -> list[str]:
    """Return the command wrapped in the isolation, in which these files and folders are visible at their own paths.

    Raises PermanentError if this machine does not support it.
    """
    program = bubblewrap.program()
    if program is None:
        raise PermanentError(f"{CANNOT}: {bubblewrap.MISSING}", fix=FIX)
    _refuse_home(visible)
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
        words += ["--symlink", str(target.readlink()), name] if target.is_symlink() else ["--ro-bind-try", name, name]
    words += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache", "--size", str(MEMORY_BYTES_MAX), "--tmpfs", "/tmp"]
    words += [word for path in visible for word in ("--ro-bind", str(path), str(path))]
    # The root of all these mounts and the folder of devices are in memory too, but have no size limit, so they are made read-only.
    words += ["--dir", HOME, "--size", str(SHARED_BYTES_MAX), "--tmpfs", "/dev/shm", "--remount-ro", "/dev", "--remount-ro", "/"]
    return [*words, "--chdir", HOME]


def _refuse_home(visible: Sequence[Path]) -> None:
    """Raise PermanentError if a visible path contains the home folder, as a Python installed directly into it would."""
    bare = next((path for path in visible if Path.home().resolve().is_relative_to(path.resolve())), None)
    if bare is not None:
        raise PermanentError(f"{CANNOT}: its Python is in {bare}, where your home folder is too", fix=FIX)
