"""Code of a commit is run behind walls: namespaces of its own for users, processes, mounts and the network, made by bubblewrap.

It sees the system's programs and libraries, one Python, and its own package, all read-only; of the home, of other processes and of the
network it sees nothing, and it can write to nothing but small folders in memory that go with it. A variable that is taken out of a
process's environment does not do: a process of the same user can read its parent's.
"""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from prime_train.adapters.prime_rl_deep.process import run
from prime_train.ports import PermanentError

HOME = "/tmp/home"
MEMORY_BYTES_MAX = 256 * 2**20
"""Of all that is written to /tmp."""
SHARED_BYTES_MAX = 16 * 2**20
"""Of shared memory, where Python keeps the locks of processes."""
PROBE_S_MAX = 20.0
_SYSTEM = ("/bin", "/lib", "/lib32", "/lib64", "/sbin")
_WALLS = (
    *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--uid", "65534", "--gid", "65534", "--hostname", "isolated"),
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
)
CANNOT = "code of prime-rl cannot be run apart from what is yours"
FIX = "install bubblewrap (bwrap), where the system lets users have namespaces; or, if you trust that commit with everything, --deep=trust"


def walled(command: Sequence[str], visible: Sequence[Path]) -> list[str]:
    """The command behind walls, where it sees these files and folders, at their own places.

    PermanentError: that cannot be had on this machine.
    """
    program = shutil.which("bwrap")
    if program is None:
        raise PermanentError(f"{CANNOT}: there is no bubblewrap here; {FIX}")
    _refuse_home(visible)
    walls = [program, *_WALLS, *_mounts(visible), "--"]
    _probe(walls)
    return [*walls, *command]


def _mounts(visible: Sequence[Path]) -> list[str]:
    words = ["--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev"]
    for name in _SYSTEM:
        # Where they are links into /usr, as on most systems, they have to be the same links in there.
        target = Path(name)
        words += ["--symlink", str(target.readlink()), name] if target.is_symlink() else ["--ro-bind-try", name, name]
    words += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache", "--size", str(MEMORY_BYTES_MAX), "--tmpfs", "/tmp"]
    words += [word for path in visible for word in ("--ro-bind", str(path), str(path))]
    # The root that all of this hangs in and the devices' folder are in memory as well, and no limit could be set for them.
    words += ["--dir", HOME, "--size", str(SHARED_BYTES_MAX), "--tmpfs", "/dev/shm", "--remount-ro", "/dev", "--remount-ro", "/"]
    return [*words, "--chdir", HOME]


def _refuse_home(visible: Sequence[Path]) -> None:
    """A Python that was installed into the home itself would bring all of it along."""
    bare = next((path for path in visible if Path.home().resolve().is_relative_to(path.resolve())), None)
    if bare is not None:
        raise PermanentError(f"{CANNOT}: its Python lies in {bare}, as your home does; {FIX}")


def _probe(walls: Sequence[str]) -> None:
    """A system may have bubblewrap and let nobody make a namespace, as many containers do."""
    with tempfile.TemporaryDirectory() as folder:
        done = run([*walls, "/usr/bin/env", "true"], {"PATH": "/usr/bin:/bin"}, PROBE_S_MAX, folder=Path(folder), called="bubblewrap")
    if done.code != 0:
        raise PermanentError(f"{CANNOT}: {done.last_words}; {FIX}")
