"""The processes of a pod: how the first one is started, and how all of them are found."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from prime_train.adapters.pods_local.files import await_true
from prime_train.ports import NoCapacity, TemporaryError

MARKER = "PRIME_TRAIN_POD"
"""In the environment of every process of a pod, with the pod's id."""

START_S_MAX = 30.0
LOG_CHARS_MAX = 300
_FIRST_PROCESS = Path(__file__).parent.with_name("local_pod.py")
_SECRET = re.compile(r"(^|_)(TOKENS?|SECRETS?|PASS(WORD|WD|PHRASE)?|CREDENTIALS?|(API)?KEYS?)(_|$)|^PRIME_TRAIN_(?!HOME$)", re.IGNORECASE)


def own_environment() -> dict[str, str]:
    """This process's environment, but for names that look like those of secrets and the control plane's own settings.

    The folder of this Python comes first on PATH: `python` on the machine is the one the control plane runs on.
    """
    own = {name: value for name, value in os.environ.items() if not _SECRET.search(name)}
    return own | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])}


def start_machine(folder: Path, lock: int, environment: Mapping[str, str]) -> None:
    """Starts the pod's first process through a parent that ends at once, so that it is nobody's child; it inherits `lock`.

    NoCapacity: this machine can start no process. TemporaryError: it has not said that it is up.
    """
    try:
        with (folder / "init.log").open("ab") as log:
            launcher = subprocess.Popen(
                # Isolated and without site: quick, and no module of ours can be taken for one of Python's.
                [sys.executable, "-I", "-S", str(_FIRST_PROCESS), str(folder), str(lock)],
                cwd=folder,
                env={**environment, MARKER: folder.name},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(lock,),
                start_new_session=True,
            )
    except OSError as error:
        raise NoCapacity(f"no process can be started for pod {folder.name}: {error.strerror}") from error
    # Not `wait` with a timeout: it sleeps ever longer between its looks.
    await_true(lambda: launcher.poll() is not None, START_S_MAX, f"pod {folder.name} has not come up")
    if launcher.returncode != 0:
        raise TemporaryError(f"pod {folder.name} did not start: {_last_words(folder / 'init.log')}")


def victims(pod_id: str, first_pid: object) -> Sequence[psutil.Process]:
    """The living processes of the pod but for this one. Its first process, to which orphans come, only when it is the last."""
    found = {pid: process for pid in psutil.pids() if (process := marked(pid, pod_id)) is not None}
    first = found.pop(first_pid, None) if isinstance(first_pid, int) else None
    if first is not None:
        with suppress(psutil.Error):
            found.update({child.pid: child for child in first.children(recursive=True) if _is_alive(child)})
    found.pop(os.getpid(), None)
    return list(found.values()) or ([first] if first is not None else [])


def marked(pid: int, pod_id: str) -> psutil.Process | None:
    """The process, if it lives and has the marker of this pod. One that may not be looked at is not ours."""
    with suppress(psutil.Error, OSError):
        process = psutil.Process(pid)
        if process.environ().get(MARKER) == pod_id and _is_alive(process):
            return process
    return None


def _is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def _last_words(log: Path) -> str:
    with suppress(OSError):
        return log.read_text(errors="replace")[-LOG_CHARS_MAX:].strip()
    return "it left no log"
