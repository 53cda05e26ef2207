"""Shared parts of the phases before training: failure, cancellation, and running a command."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from prime_agent.processes import Process, Processes
from prime_agent.trainer.environment import without_secrets
from prime_agent.trainer.logs import BoundedLog, Drain, tail_text
from prime_train.runs.wire import LOG_TAIL_CHARS_MAX
from prime_train.spec.causes import Cause

OUTPUT_S_MAX = 2.0
"""Seconds to wait for the end of the output after a command has ended, because a daemon it started may hold
the output open.
"""


class PhaseError(Exception):
    """The phase failed for good on this machine; `detail` names the problem and the value found."""

    def __init__(self, cause: Cause, detail: str, *, log_tail: str = "") -> None:
        super().__init__(detail)
        self.cause = cause
        self.detail = detail
        self.log_tail = log_tail


class Called(Exception):
    """The phase was cancelled."""


class CallOff:
    """Cancels the running phase from another thread."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._process: Process | None = None

    def __call__(self) -> bool:
        return self._event.is_set()

    def wait(self, seconds: float) -> None:
        """Pause for `seconds`. Raises Called if the phase is cancelled."""
        if self._event.wait(seconds):
            raise Called

    def now(self) -> None:
        """Cancel the phase and kill its current process."""
        with self._lock:
            self._event.set()
            process = self._process
        if process is not None:
            process.kill()

    def holds(self, process: Process | None) -> None:
        """Register the process to kill on cancellation; it is killed at once if the phase is cancelled
        already.
        """
        with self._lock:
            self._process = process
            late = self._event.is_set()
        if late and process is not None:
            process.kill()


@dataclass(frozen=True)
class Ended:
    """How a command ended. `code` is negative for a signal."""

    code: int
    tail: str
    timed_out: bool


@dataclass(frozen=True)
class Shell:
    """Runs the commands of one phase in the working tree, with their output in one log. `secrets` are
    redacted in the returned output.
    """

    processes: Processes
    cwd: Path
    env: Mapping[str, str] = field(repr=False)
    log: Path
    called_off: CallOff
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    def run(
        self,
        command: str,
        *,
        name: str,
        timeout_s: float,
        daemons: bool = False,
        on_lines: Callable[[list[str]], None] | None = None,
    ) -> Ended:
        """Run a command and return how it ended; it is killed after `timeout_s` seconds. Raises Called if
        cancelled, and OSError if the process cannot be started.
        """
        process = self.processes.start(command, cwd=self.cwd, env=self.env, name=name, daemons=daemons)
        drain = Drain(process.output, BoundedLog(self.log), on_lines or (lambda lines: None), name=name)
        self.called_off.holds(process)
        late = threading.Event()

        def expire() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(timeout_s, expire)
        timer.daemon = True
        timer.start()
        try:
            code = process.wait()
        finally:
            timer.cancel()
            self.called_off.holds(None)
        drain.join(OUTPUT_S_MAX)
        if self.called_off():
            raise Called
        lines = without_secrets("\n".join(drain.tail()), self.secrets).split("\n")
        return Ended(code, tail_text(lines, chars_max=LOG_TAIL_CHARS_MAX), late.is_set())
