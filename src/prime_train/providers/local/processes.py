"""Starts the first process of a pod, and finds all its processes."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from prime_train import bubblewrap
from prime_train.errors import NoCapacity, TemporaryError
from prime_train.providers.local.files import await_true
from prime_train.providers.local.walls import allowed_environment

POD_VARIABLE = "PRIME_TRAIN_POD"
"""Environment variable that holds the pod's id in every process of the pod."""

START_S_MAX = 30.0
LOG_CHARS_MAX = 300
WRAPPERS_MAX = 2
"""bubblewrap is two processes: one outside of the walls, and the first one inside."""
_FIRST_PROCESS = Path(__file__).with_name("supervisor.py")


def own_environment(home: Path) -> dict[str, str]:
    """Return the environment of a pod whose home folder is `home`: what is harmless of this process's own.

    `python` on the pod is that of the environment which is active here (venv or conda), where the user's
    libraries are; without one, the Python that the control plane runs on.
    """
    active = [os.environ[name] for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if os.environ.get(name)]
    first = [str(Path(place) / "bin") for place in active if (Path(place) / "bin" / "python").exists()]
    path = os.pathsep.join([*first, str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return allowed_environment(os.environ) | {"PATH": path, "HOME": str(home)}


def start_machine(folder: Path, lock: int, environment: Mapping[str, str]) -> None:
    """Start the pod's first process, detached through a parent that ends at once; it inherits `lock`.

    Raises NoCapacity if this machine cannot start a process, TemporaryError if the process did not report
    that it is up.
    """
    try:
        with (folder / "init.log").open("ab") as log:
            launcher = subprocess.Popen(
                # Isolated and without site: faster, and no module of ours can shadow one of the standard
                # library.
                [sys.executable, "-I", "-S", str(_FIRST_PROCESS), str(folder), str(lock)],
                cwd=folder,
                env={**environment, POD_VARIABLE: folder.name},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(lock,),
                start_new_session=True,
            )
    except OSError as error:
        raise NoCapacity(f"no process can be started for pod {folder.name}: {error.strerror}") from error
    # Not `wait` with a timeout, whose polling interval grows.
    await_true(lambda: launcher.poll() is not None, START_S_MAX, f"pod {folder.name} did not start in time")
    if launcher.returncode != 0:
        raise TemporaryError(f"pod {folder.name} did not start: {_last_words(folder / 'init.log')}")


def victims(pod_id: str, first_pid: object) -> Sequence[psutil.Process]:
    """Return the living processes of the pod, without this process. The first process, which adopts orphans,
    is included only if it is the last.
    """
    found = {pid: process for pid in psutil.pids() if (process := marked(pid, pod_id)) is not None}
    first = found.pop(first_pid, None) if isinstance(first_pid, int) else None
    if first is not None:
        with suppress(psutil.Error):
            found.update({child.pid: child for child in first.children(recursive=True) if _is_alive(child)})
    found.pop(os.getpid(), None)
    return list(found.values()) or ([first] if first is not None else [])


def marked(pid: int, pod_id: str) -> psutil.Process | None:
    """Return the process if it is alive and has the pod's variable. A process whose environment may not be
    read does not count.
    """
    with suppress(psutil.Error, OSError):
        process = psutil.Process(pid)
        if process.environ().get(POD_VARIABLE) == pod_id and _is_alive(process):
            return process
    return None


def inside(process: psutil.Process) -> psutil.Process:
    """Return the process inside of bubblewrap's walls, or this one if there are none: bubblewrap passes on no
    signal.
    """
    for _ in range(WRAPPERS_MAX):
        children = process.children() if process.name() == bubblewrap.NAME else []
        if len(children) != 1:
            break
        process = children[0]
    return process


def _is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def _last_words(log: Path) -> str:
    with suppress(OSError):
        return log.read_text(errors="replace")[-LOG_CHARS_MAX:].strip()
    return "it wrote no log"
