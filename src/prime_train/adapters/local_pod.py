"""The first process of a local pod: being alive is what makes the pod a machine.

    python local_pod.py FOLDER [LOCK]

It leads a session of its own and is nobody's child, so that it outlives whoever rented the pod. Standard library only, and nothing of
this project: it must be up in a few milliseconds and then cost nothing. The pod's folder is all it shares with the control plane:

    pod.json     what the pod is; written before this process is started          alive.lock   held while this process lives
    control      a fifo: a line `start` asks for the agent                        init.json    {"pid"}: this process, once it listens
    start.json   {"command"}: how the agent is started                            init.log     what this process says when it fails
    agent.json   {"pid"}: the agent has been started; it never is a second time   agent.error  why it could not be started
    agent.exit   {"code"}: it has ended by itself; negative is a signal           disk/        the pod's disk, the agent's folder

LOCK is the descriptor of `alive.lock`, locked by the parent: the lock passes over without a moment in which nobody holds it.
On Linux, processes of the pod whose parent dies become children of this one, however they tried to leave: none is lost snapshot of.
"""

import fcntl
import json
import os
import select
import signal
import sys
from pathlib import Path

CHECK_S = 60.0
READ_BYTES_MAX = 65_536
REAPED_A_TURN_MAX = 10_000
_PR_SET_CHILD_SUBREAPER = 36


def main(argv: list[str]) -> int:
    """Starts the pod's first process and returns 0 once it listens (1: it failed; init.log says why)."""
    folder = Path(argv[1]).resolve()
    if len(argv) > 2:
        os.set_inheritable(int(argv[2]), False)
    else:
        fcntl.flock(os.open(folder / "alive.lock", os.O_RDWR | os.O_CREAT, 0o600), fcntl.LOCK_EX)
    heard, said = os.pipe()
    if os.fork():
        os.close(said)
        return 0 if os.read(heard, 1) else 1
    os.close(heard)
    os.setsid()
    _adopt_orphans()
    _Machine(folder).run(said)
    return 0


def _adopt_orphans() -> None:
    """Linux only; elsewhere the marker in the environment alone tells which processes are the pod's."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class _Machine:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._agent: int | None = None
        os.chdir(folder / "disk")
        # Open for both, so that it never comes to an end when a writer closes it.
        self._control = os.open(folder / "control", os.O_RDWR | os.O_NONBLOCK)
        self._woken, waker = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(waker, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run(self, said: int) -> None:
        """Until it is killed; or, should somebody delete the folder, until everything on the pod has ended."""
        self._tell("init.json", {"pid": os.getpid()})
        os.write(said, b"1")
        os.close(said)
        condemned = False
        while True:
            ready, _, _ = select.select([self._control, self._woken], [], [], CHECK_S)
            for source in ready:
                asked = os.read(source, READ_BYTES_MAX)
                if source == self._control and b"start\n" in asked:
                    self._start()
            alone = self._reap()
            if not self._folder.exists():
                if alone:
                    return
                if not condemned and self._agent is not None:
                    os.kill(self._agent, signal.SIGTERM)
                condemned = True

    def _start(self) -> None:
        """Starts the agent, once in the life of the pod; asked again, only tells again."""
        if self._agent is None:
            (self._folder / "agent.error").unlink(missing_ok=True)
            try:
                command = json.loads((self._folder / "start.json").read_bytes())["command"]
                self._agent = self._spawn([str(part) for part in command])
            except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
                self._tell("agent.error", {"error": str(error)[:500]})
                return
        self._tell("agent.json", {"pid": self._agent})

    def _spawn(self, command: list[str]) -> int:
        """In a process group of its own; Python's own ignored signals are given back their meaning."""
        log = str(self._folder / "disk" / "agent.log")
        files = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        return os.posix_spawnp(
            command[0], command, os.environ, file_actions=files, setpgroup=0, setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD]
        )

    def _reap(self) -> bool:
        """Buries dead children, and notes the agent's end. True if no child is left."""
        for _ in range(REAPED_A_TURN_MAX):
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == self._agent:
                self._tell("agent.exit", {"code": os.waitstatus_to_exitcode(status)})
        return False

    def _tell(self, name: str, content: dict[str, object]) -> None:
        """Writes a file of the pod's folder, whole or not at all. A full disk must not end the machine: it is said in init.log."""
        draft = self._folder / f".{name}"
        try:
            draft.write_text(json.dumps(content))
            draft.replace(self._folder / name)
        except OSError as error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
