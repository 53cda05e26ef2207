"""The first process of a fake pod: it answers SSH with a real sshd, and ends everything on the pod when it
ends.

    python machine.py FOLDER POD_ID SSHD

It prints the port on which it listens, and runs until its standard input ends, and so no longer than the
process that started it. Then every process of the pod is killed and FOLDER is deleted. On Linux orphans of
the pod become its children, so that none is missed, not even one that has cleared its environment; elsewhere
they are found by the variable.

Each connection gets an sshd of its own (`sshd -i`), so no port can be chosen twice and there is no server to
wait for.
"""

import ctypes
import os
import select
import shutil
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

POD_VARIABLE = "FAKE_PRIME_POD"
"""Environment variable of the pod's processes, with the pod's id."""

CLEAR_S_MAX = 20.0
REAPED_A_TURN_MAX = 10_000
PR_SET_CHILD_SUBREAPER = 36


def main(argv: list[str]) -> int:
    folder, pod_id, sshd = Path(argv[1]), argv[2], argv[3]
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.chdir(folder / "disk")
    with socket.create_server(("127.0.0.1", 0), backlog=64) as front:
        print(front.getsockname()[1], flush=True)
        _serve(front, folder, pod_id, sshd)
    _clear(pod_id)
    os.chdir("/")
    shutil.rmtree(folder)
    return 0


def _serve(front: socket.socket, folder: Path, pod_id: str, sshd: str) -> None:
    """Serve until standard input ends."""
    woken, waker = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([sys.stdin, front, woken], [], [])
        if woken in ready:
            os.read(woken, 65_536)
        _reap()
        if sys.stdin in ready and not os.read(sys.stdin.fileno(), 65_536):
            return
        if front in ready:
            sock, _ = front.accept()
            with sock:
                _spawn(sock, folder, pod_id, sshd)


def _spawn(sock: socket.socket, folder: Path, pod_id: str, sshd: str) -> None:
    log = str(folder / "sshd.log")
    os.posix_spawn(
        sshd,
        [sshd, "-i", "-e", "-f", str(folder / "sshd_config")],
        {"PATH": os.environ["PATH"], POD_VARIABLE: pod_id},
        file_actions=[
            (os.POSIX_SPAWN_DUP2, sock.fileno(), 0),
            (os.POSIX_SPAWN_DUP2, sock.fileno(), 1),
            (os.POSIX_SPAWN_OPEN, 2, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        ],
        setpgroup=0,
        setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD],
    )


def _clear(pod_id: str) -> None:
    """Kill processes until none is left, because a killed one may just have started another."""
    end_s = time.monotonic() + CLEAR_S_MAX
    while victims := _victims(pod_id):
        for process in victims:
            with suppress(psutil.Error):
                process.kill()
        _reap()
        if time.monotonic() > end_s:
            sys.exit(f"these cannot be killed: {victims}")
        time.sleep(0.005)


def _victims(pod_id: str) -> list[psutil.Process]:
    found = {process.pid: process for process in psutil.Process().children(recursive=True)}
    for pid in psutil.pids():
        with suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            if pid != os.getpid() and process.environ().get(POD_VARIABLE) == pod_id:
                found[pid] = process
    return [process for process in found.values() if _is_alive(process)]


def _is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def _reap() -> None:
    with suppress(ChildProcessError):
        for _ in range(REAPED_A_TURN_MAX):
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return


if __name__ == "__main__":
    sys.exit(main(sys.argv))
