"""`prime-agent --ticket FILE --disk DIR`: run one attempt on this machine, then exit.

Exit codes: 0 the end of the attempt was reported to the control plane; 2 wrong options or ticket; 3 the
control plane could not be reached; 70 a bug in the agent; 75 another attempt has taken over; 143 terminated
before there was a job.
"""

import argparse
import fcntl
import logging
import logging.handlers
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from prime_agent.agent import Agent, Context, owner_of
from prime_agent.clock import SystemClock
from prime_agent.control_plane import ControlPlane, Fenced
from prime_agent.effects import Leave
from prime_agent.event_queue import Inbox, ThreadDied
from prime_agent.events import SigTerm
from prime_agent.gpu.driver import NvidiaGpus
from prime_agent.gpu.reading import NoGpus
from prime_agent.keyring import KeyRing
from prime_agent.machine_environment import machine_environment
from prime_agent.processes import LocalProcesses
from prime_train.buckets.open import open_bucket
from prime_train.errors import ExternalError
from prime_train.runs.wire import Bootstrap, Ticket
from prime_train.text.safe import neutralized

BOOTSTRAP_S_MAX = 1800
BACKOFF_FIRST_S, BACKOFF_MAX_S = 1.0, 30.0
TICKET_BYTES_MAX = 64 * 1024
LOG_BYTES_MAX = 2**20
USAGE = 2

_log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the agent and end the process. Never returns, because threads that wait for a network or a driver
    must not keep the process alive.
    """
    code = run(arguments)
    logging.shutdown()
    os._exit(code)


def run(arguments: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(
        prog="prime-agent", description="Run one attempt of a training run on this machine."
    )
    parser.add_argument(
        "--ticket",
        type=Path,
        required=True,
        help="the file with the identity of this attempt and the address of the control plane",
    )
    parser.add_argument("--disk", type=Path, required=True, help="the working folder")
    options = parser.parse_args(arguments)
    try:
        ticket = _ticket(options.ticket)
        disk = options.disk.resolve()
        (disk / "logs").mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        print(f"prime-agent: {error}", file=sys.stderr)
        return USAGE
    with (disk / "agent.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"prime-agent: another agent already uses {disk}", file=sys.stderr)
            return USAGE
        _log_to(disk / "logs" / "agent.log")
        return _attempt(ticket, disk)


def _ticket(path: Path) -> Ticket:
    """Return the parsed ticket. The ValueError for an invalid one omits its content, which includes a key."""
    with path.open("rb") as file:
        data = file.read(TICKET_BYTES_MAX)
    try:
        return Ticket.model_validate_json(data)
    except ValueError:
        pass
    raise ValueError(f"{path} is not a ticket")


class _OneLine(logging.Formatter):
    """Formatter that puts a record's own text on one line, so that text such as a trainer's file names cannot
    imitate a log record.
    """

    def formatMessage(
        self, record: logging.LogRecord
    ) -> str:  # the name is that of the overridden method in logging
        record.message = neutralized(record.message)
        return super().formatMessage(record)


def _log_to(path: Path) -> None:
    handler = logging.handlers.RotatingFileHandler(path, maxBytes=LOG_BYTES_MAX, backupCount=1)
    handler.setFormatter(_OneLine("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    # A log that cannot be written must not stop training.
    logging.raiseExceptions = False
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("urllib3").setLevel(logging.WARNING)


def _attempt(ticket: Ticket, disk: Path) -> int:
    inbox = Inbox()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: inbox.put(SigTerm()))
    # The agent must survive the end of the connection that started it.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    clock = SystemClock()
    result = _bootstrap(ControlPlane(ticket, clock.wall_s), clock.monotonic_s, inbox)
    if isinstance(result, int):
        return result
    job, requested_s = result
    _log.info("attempt %d of run %s", job.attempt, job.run)
    keys = KeyRing(job.keys, requested_s, clock.monotonic_s) if job.keys is not None else None
    try:
        lent = keys.newest if keys is not None else None
        bucket = open_bucket(job.bucket_url, {**os.environ, **job.bucket_keys}, lent, mark=job.bucket_mark)
    except ExternalError as error:
        _log.error("%s", error)
        return Leave.UNHEARD
    gpus = NvidiaGpus() if job.spec.hardware.gpus else NoGpus()
    processes = LocalProcesses(owner_of(job, disk))
    # A trainer left behind by an earlier agent of this attempt must not write to the same files as ours.
    processes.kill_all()
    machine = machine_environment(os.environ)
    for line in machine.lines():
        _log.info("environment: %s", line)
    context = Context(
        lambda: ControlPlane(ticket, clock.wall_s), bucket, processes, gpus, clock, keys, machine
    )
    agent = Agent(job, context, disk, inbox)
    # Otherwise a crashed thread would only print to standard error, and a training that is no longer
    # monitored would look healthy.
    threading.excepthook = lambda died: inbox.put(_died(died))
    try:
        return agent.run()
    except Exception as error:
        _log.exception("a bug in prime-agent")
        return agent.give_up(f"{type(error).__name__}: {error}")


def _died(died: threading.ExceptHookArgs) -> ThreadDied:
    name = died.thread.name if died.thread is not None else "a thread"
    _log.error(
        "%s died", name, exc_info=(died.exc_type, died.exc_value or died.exc_type(), died.exc_traceback)
    )
    return ThreadDied(f"{name}: {died.exc_type.__name__}: {died.exc_value}")


def _bootstrap(
    control: ControlPlane, monotonic_s: Callable[[], float], inbox: Inbox
) -> tuple[Bootstrap, float] | int:
    """Return the job and when it was requested, or the exit code if there is none.

    The request is retried for up to `BOOTSTRAP_S_MAX` seconds, because the control plane may be restarting.
    """
    until_s = monotonic_s() + BOOTSTRAP_S_MAX
    pause_s = BACKOFF_FIRST_S
    while True:
        requested_s = monotonic_s()
        try:
            return control.bootstrap(), requested_s
        except Fenced as error:
            _log.info("fenced: %s", error)
            return Leave.FENCED
        except ExternalError as error:
            _log.warning("no job yet: %s", error)
        if monotonic_s() + pause_s > until_s:
            return Leave.UNHEARD
        if inbox.get(pause_s) is not None:
            return 128 + signal.SIGTERM
        pause_s = min(BACKOFF_MAX_S, pause_s * 2)


if __name__ == "__main__":
    main()
