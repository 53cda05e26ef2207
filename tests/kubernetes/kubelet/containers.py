"""Containers: processes with mounts and a view of processes of their own. They outlive the kubelet that
started them.
"""

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SHARED_MEMORY_BYTES = 64 * 2**20
"""Size of /dev/shm unless the pod mounts something there, as with every container runtime."""
NEVER_STARTED = 128
CHILD_S_MAX = 5.0
HOME = "/home/container"
_WRITABLE = ("/tmp", "/var/tmp", "/run", HOME)


@dataclass(frozen=True)
class Mount:
    """A folder or file of the host that a container sees at `inside`."""

    host: Path
    inside: Path
    read_only: bool = False


@dataclass(frozen=True)
class Exit:
    """The end of a container. `started`: whether its command was executed."""

    code: int
    started: bool = True


class Container:
    """One container of a pod. `folder` is its own: with what bubblewrap reports of it, its log, and the parts
    of its disk.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._status, self._monitor = folder / "status", folder / "monitor"

    @property
    def log(self) -> Path:
        return self._folder / "log"

    @property
    def was_started(self) -> bool:
        return self._monitor.exists()

    def start(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        mounts: Sequence[Mount],
        work: str,
        *,
        shares_processes: bool = False,
    ) -> None:
        """Start the container; on return its first process exists, or never will. `shares_processes`: process
        1 is another one, which collects the processes that die orphaned, as where the containers of a pod
        share their processes.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        first = [] if shares_processes else ["--as-pid-1"]
        words = [
            "bwrap",
            "--unshare-pid",
            *first,
            *_mounts(mounts, self._folder / "disk", work),
            "--chdir",
            work,
        ]
        if shares_processes:
            (self._folder / "shared").touch()
        ready, ready_write = os.pipe()
        with self._status.open("ab") as status, self.log.open("ab") as log, os.fdopen(ready, "rb") as reader:
            process = subprocess.Popen(
                [
                    *words,
                    "--json-status-fd",
                    str(status.fileno()),
                    "--info-fd",
                    str(ready_write),
                    "--",
                    *command,
                ],
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[status.fileno(), ready_write],
                start_new_session=True,
            )
            os.close(ready_write)
            reader.read()
        draft = self._folder / ".monitor"
        draft.write_text(str(process.pid))
        draft.replace(self._monitor)

    def wait(self) -> Exit:
        """Return when the container has ended; also if another kubelet started it."""
        monitor = int(self._monitor.read_text())
        with suppress(ProcessLookupError, ChildProcessError):
            descriptor = os.pidfd_open(monitor)
            try:
                select.select([descriptor], [], [])
            finally:
                os.close(descriptor)
            os.waitpid(monitor, 0)
        code = self._said().get("exit-code")
        return Exit(NEVER_STARTED, started=False) if code is None else Exit(code)

    def signal(self, number: int) -> None:
        """Send a signal to the container's first process, if that still runs."""
        pid = self.first_pid
        if pid is not None and number != signal.SIGKILL and (self._folder / "shared").exists():
            pid = _first_child(pid)
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    @property
    def first_pid(self) -> int | None:
        """Return the id, on the host, of the container's first process; None once it has ended."""
        said = self._said()
        return None if "exit-code" in said else said.get("child-pid")

    def _said(self) -> dict[str, int]:
        """Return what bubblewrap has reported so far: `child-pid`, and `exit-code` at the end."""
        said: dict[str, int] = {}
        with suppress(FileNotFoundError):
            for line in self._status.read_text().splitlines():
                with suppress(ValueError):  # a line that is being written
                    said |= json.loads(line)
        return said


def _first_child(pid: int) -> int | None:
    """Return the first process that this one has started; None if it has ended before it started one."""
    end_s = time.monotonic() + CHILD_S_MAX
    while time.monotonic() < end_s:
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        if children:
            return int(children[0])
        time.sleep(0.01)
    return None


def _mounts(mounts: Sequence[Mount], disk: Path, work: str) -> list[str]:
    """Return bubblewrap's words for a disk of the container's own: the programs of the host, empty folders to
    write to, and the mounts.
    """
    own = [Mount(_made(disk / name.strip("/").replace("/", "-")), Path(name)) for name in _WRITABLE]
    if not Path(work).exists() and not any(
        Path(work).is_relative_to(mount.inside) for mount in (*own, *mounts)
    ):
        own.append(Mount(_made(disk / "work"), Path(work)))
    # Through links, such as that from /var/run to /run, bubblewrap cannot make folders.
    inner = {mount.inside.resolve(): mount for mount in (*own, *mounts)}
    special = [Path("/dev"), Path("/proc"), Path("/sys")]
    words = list(_view(Path("/"), [*inner, *special]))
    words += [
        "--dev-bind",
        "/dev",
        "/dev",
        "--size",
        str(SHARED_MEMORY_BYTES),
        "--tmpfs",
        "/dev/shm",
        "--proc",
        "/proc",
    ]
    words += ["--ro-bind", "/sys", "/sys"]
    for inside, mount in sorted(inner.items(), key=lambda item: len(item[0].parts)):
        words += ["--ro-bind" if mount.read_only else "--bind", str(mount.host), str(inside)]
    return words


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _view(folder: Path, points: Sequence[Path]) -> Iterator[str]:
    """Yield the words that show a folder of the host read-only, with room for the mount points: those folders
    that contain one are made anew, of what is in them, because nothing can be created in the host's.
    """
    below = [point for point in points if point != folder and point.is_relative_to(folder)]
    if not below:
        yield from ("--ro-bind", str(folder), str(folder))
        return
    if folder != Path("/"):
        yield from ("--dir", str(folder))
    for child in sorted(folder.iterdir()):
        if child in points:
            continue
        if child.is_symlink():
            yield from ("--symlink", str(child.readlink()), str(child))
        elif child.is_dir():
            yield from _view(child, below)
        elif child.exists():
            yield from ("--ro-bind", str(child), str(child))
