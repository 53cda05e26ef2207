"""The first process of a local pod: the pod counts as a machine for as long as this process lives.

    python pod_process.py FOLDER [LOCK]

It is detached and leads a session of its own, so that it outlives the process that rented the pod. It imports
the standard library only, and nothing of this project, so that it starts in a few milliseconds and then costs
nothing. It shares only the pod's folder with the control plane:

    pod.json     what the pod is; written before this process starts              alive.lock   held while this
    process lives control      a fifo: the line `start` starts the agent                        init.json
    {"pid"} of this process, once it listens start.json   {"command"}: how the agent is started
    init.log     errors of this process agent.json   {"pid"} of the agent, which is started only once
    agent.error  why the agent could not be started agent.exit   {"code"}: the agent's exit code; negative is
    a signal            disk/        the pod's disk, the agent's folder ended.json   {"at_s"}: when the
    machine has ended by itself, in seconds since 1970, because its agent said that the money is spent home/
    the home folder of the pod's processes

LOCK is the descriptor of `alive.lock`, already locked by the parent, so that the lock is held without a gap.
On Linux, processes of the pod whose parent ends become children of this process, even if they have detached
themselves, so that it can reap all of them.
"""

import ctypes
import fcntl
import json
import os
import select
import signal
import sys
import time
from pathlib import Path

CHECK_S = 60.0
READ_BYTES_MAX = 65_536
REAPED_A_TURN_MAX = 10_000
SPENT = 4
"""The exit code with which an agent says that the money is spent and nobody hears it:
`prime_agent.effects.Leave`.
"""
_PR_SET_CHILD_SUBREAPER = 36


def main(argv: list[str]) -> int:
    """Start the pod's first process. Return 0 once it listens, or 1 if it failed; init.log then says why."""
    folder = Path(argv[1]).resolve()
    if len(argv) > 2:
        os.set_inheritable(int(argv[2]), False)
    else:
        fcntl.flock(os.open(folder / "alive.lock", os.O_RDWR | os.O_CREAT, 0o600), fcntl.LOCK_EX)
    ready, ready_write = os.pipe()
    if os.fork():
        os.close(ready_write)
        return 0 if os.read(ready, 1) else 1
    os.close(ready)
    os.setsid()
    # Make this process the parent of orphaned descendants. Linux only; elsewhere the pod's processes are
    # found by their environment alone.
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _Machine(folder).run(ready_write)
    return 0


class _Machine:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._agent: int | None = None
        self._spent = False
        os.chdir(folder / "disk")
        # Opened for reading and writing, so that the fifo does not reach end of file when a writer closes it.
        self._control = os.open(folder / "control", os.O_RDWR | os.O_NONBLOCK)
        self._woken, waker = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(waker, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run(self, ready_write: int) -> None:
        """Serve start requests until killed or, if the pod's folder has been deleted or the money is spent,
        until every process on the pod has ended.
        """
        self._write("init.json", {"pid": os.getpid()})
        os.write(ready_write, b"1")
        os.close(ready_write)
        condemned = False
        while True:
            ready, _, _ = select.select([self._control, self._woken], [], [], CHECK_S)
            for source in ready:
                data = os.read(source, READ_BYTES_MAX)
                if source == self._control and b"start\n" in data:
                    self._start()
            alone = self._reap()
            if self._spent and alone:
                self._write("ended.json", {"at_s": int(time.time())})
                return
            if not self._folder.exists():
                if alone:
                    return
                if not condemned and self._agent is not None:
                    os.kill(self._agent, signal.SIGTERM)
                condemned = True

    def _start(self) -> None:
        """Start the agent once in the life of the pod. A repeated request only rewrites agent.json."""
        if self._agent is None:
            (self._folder / "agent.error").unlink(missing_ok=True)
            try:
                command = json.loads((self._folder / "start.json").read_bytes())["command"]
                self._agent = self._spawn([str(part) for part in command])
            except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
                self._write("agent.error", {"error": str(error)[:500]})
                return
        self._write("agent.json", {"pid": self._agent})

    def _spawn(self, command: list[str]) -> int:
        """Spawn `command` in a process group of its own, with the signals that Python ignores reset to their
        defaults. Return its pid.
        """
        log = str(self._folder / "disk" / "agent.log")
        files = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        return os.posix_spawnp(
            command[0],
            command,
            os.environ,
            file_actions=files,
            setpgroup=0,
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD],
        )

    def _reap(self) -> bool:
        """Reap child processes that have ended, and record the agent's exit code. Return True if no child is
        left.
        """
        for _ in range(REAPED_A_TURN_MAX):
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == self._agent:
                code = os.waitstatus_to_exitcode(status)
                self._write("agent.exit", {"code": code})
                self._spent = code == SPENT
        return False

    def _write(self, name: str, content: dict[str, object]) -> None:
        """Write a file of the pod's folder atomically. A failure such as a full disk goes to init.log and
        must not end the machine.
        """
        draft = self._folder / f".{name}"
        try:
            draft.write_text(json.dumps(content))
            draft.replace(self._folder / name)
        except OSError as error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
