"""A control plane in the background: a process of its own, which a command starts where none serves the home,
and `down` ends.

The process is a `serve` with a session of its own, so that it outlives the terminal. It works in the home,
because the folder of the command may be deleted meanwhile. Until it serves, its output is a pipe to the
command, which so gets its warnings, or the error with which it ended; from then on, its output is its log.
"""

import fcntl
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from prime_train.advice import Advice, Call, Operation
from prime_train.app.home import Home
from prime_train.app.serve_lock import Holder, holder_of
from prime_train.configs import policy_place
from prime_train.environment import BUCKET, HOME, PUBLIC_URL
from prime_train.errors import TemporaryError, UsageError
from prime_train.exit_codes import Exit
from prime_train.text.invocations import DETACHED, SERVE_DETACHED
from prime_train.text.os_errors import EXHAUSTED, in_words
from prime_train.text.safe import neutralized

LOG = "serve.log"
START_S_MAX = 120.0
OTHER_S_MAX = 15.0
"""Seconds that a process which holds the lock has to answer; a `serve` that has only just started needs
some.
"""
LEAVE_S_MAX = 5.0
STOP_S_MAX = 40.0
LOOK_S = 0.05
OUTPUT_BYTES_MAX = 64 * 1024
ERROR_LINES_MAX = 20
_ERROR = "prime-train: "


@dataclass(frozen=True)
class Started:
    """A control plane that was started. `warnings`: what it warned of until it served, as lines."""

    pid: int
    log: Path
    warnings: tuple[str, ...]


def ensure_served(home: Home, options: Sequence[str] = ()) -> Started | None:
    """Start a control plane for the home in the background, and return it once it serves; None if one serves
    the home already, here or elsewhere. `options`: further options of its `serve`. Of several calls at a
    time, in any processes, one starts it and the others wait.

    Raises UsageError if it cannot serve or another process holds the home and does not answer, and
    TemporaryError if it does not serve in time.
    """
    if home.is_remote or (_holder(home) is not None and home.served.is_served):
        return None
    home.make()
    with _starting_alone(home):
        if _is_served_by_now(home):
            return None
        return _start(home, options)


@contextmanager
def _starting_alone(home: Home) -> Iterator[None]:
    file = home.root / "start.lock"
    with _opened(file) as lock:
        until_s, pause = time.monotonic() + START_S_MAX + OTHER_S_MAX, threading.Event()
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if time.monotonic() > until_s:
                raise TemporaryError(f"another command holds {file} and starts no control plane")
            pause.wait(LOOK_S)
        yield


def _is_served_by_now(home: Home) -> bool:
    """Return whether a control plane serves the home, which may have only just started. Raises UsageError if
    a process holds the home and does not answer.
    """
    until_s, pause = time.monotonic() + OTHER_S_MAX, threading.Event()
    while True:
        holder = _holder(home)
        if holder is None:
            return False
        if home.served.is_served:
            return True
        if time.monotonic() > until_s:
            what = f"{home.root} is served by {holder.named}, which does not answer"
            first = Call(Operation.DOWN) if holder.in_background else "end that process"
            raise UsageError(what, fix=Advice("first: ", first), code=Exit.EXTERNAL_REFUSED)
        pause.wait(LOOK_S)


def _start(home: Home, options: Sequence[str]) -> Started:
    log = home.root / LOG
    _opened(log).close()
    command = [sys.executable, "-P", "-m", "prime_train.cli.main", *SERVE_DETACHED, *options]
    # `-P`: no module of the folder takes the place of a library.
    process = subprocess.Popen(
        command,
        cwd=home.root,
        env=_environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        with process.stdout as output:
            lines = _until_closed(output)
        if lines is None:
            raise TemporaryError(
                f"the control plane did not serve within {START_S_MAX:.0f} s and was ended; its log is {log}"
            )
        holder = _holder(home)
        if holder is None or holder.pid != process.pid:
            # It is about to end, unless a full disk has kept it from writing its number.
            with suppress(subprocess.TimeoutExpired):
                raise _not_started(process.wait(LEAVE_S_MAX), lines, log)
    except BaseException:
        process.kill()
        process.wait()
        raise
    return Started(process.pid, log, tuple(lines))


def _opened(file: Path) -> IO[str]:
    try:
        return open(file, "a", encoding="utf-8", opener=_private)
    except OSError as error:
        code = Exit.EXTERNAL_FAILED if error.errno in EXHAUSTED else Exit.EXTERNAL_REFUSED
        fix = "let it be a file that you can write, or delete it" if error.errno not in EXHAUSTED else ""
        raise UsageError(
            f"no control plane could be started: {in_words(error)}", fix=fix, code=code
        ) from error


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _environment(home: Home) -> dict[str, str]:
    """Return the environment of this process with what the home was made of; paths are absolute, because the
    control plane works in another folder.
    """
    own = {name: home.environment[name] for name in (BUCKET, PUBLIC_URL) if name in home.environment}
    policy = policy_place.policy_file(home.root, home.environment)
    if home.environment.get(policy_place.VARIABLE) and policy is not None:
        own[policy_place.VARIABLE] = str(policy.absolute())
    return {**os.environ, HOME: str(home.root), **own}


def _until_closed(output: IO[bytes]) -> list[str] | None:
    """Return what is written until all writers have closed the pipe, as clean lines; None if they do not in
    time.
    """
    until_s, content = time.monotonic() + START_S_MAX, b""
    while (left_s := until_s - time.monotonic()) > 0:
        if not select.select([output], [], [], left_s)[0]:
            break
        piece = os.read(output.fileno(), OUTPUT_BYTES_MAX)
        if not piece:
            return [neutralized(line) for line in content.decode(errors="replace").splitlines()]
        content = (content + piece)[-OUTPUT_BYTES_MAX:]
    return None


def _not_started(code: int, lines: Sequence[str], log: Path) -> UsageError:
    """Return the error with which the process ended, as it has told it."""
    begins = [number for number, line in enumerate(lines) if line.startswith(_ERROR)]
    told = lines[begins[-1] :] if begins else lines[-ERROR_LINES_MAX:]
    why = "\n".join(told).removeprefix(_ERROR) or f"its process ended with {code}, and its log is {log}"
    known = Exit(code) if code in {*Exit} - {Exit.OK} else Exit.EXTERNAL_FAILED
    return UsageError(f"no control plane could be started: {why}", code=known)


def differing(home: Home, names: Iterable[str]) -> tuple[str, ...]:
    """Return those of the variables that are set here, and otherwise or not at all in the process that serves
    the home in the background; none if no process does, or its environment cannot be read.
    """
    holder = _holder(home)
    if holder is None or not holder.in_background:
        return ()
    try:
        theirs = psutil.Process(holder.pid or 0).environ()
    except psutil.Error:
        return ()
    return tuple(
        name for name in sorted(set(names)) if name in os.environ and os.environ[name] != theirs.get(name)
    )


def in_background(home: Home) -> Holder | None:
    """Return the process that serves this home in the background; None if no process serves it. Raises
    UsageError if the control plane is elsewhere, or is none that a command has started in the background.
    """
    if home.elsewhere:
        raise UsageError(f"the control plane is elsewhere, at {home.elsewhere}; it is ended there")
    holder = _holder(home)
    if holder is None or holder.in_background:
        return holder
    fix = "press Ctrl-C in its terminal" + (f", or: kill {holder.pid}" if holder.pid is not None else "")
    raise UsageError(
        f"{home.root} is served by {holder.named}, which was not started in the background",
        fix=fix,
        code=Exit.EXTERNAL_REFUSED,
    )


def end(home: Home, holder: Holder) -> bool:
    """End the process that serves this home in the background, and return once it has ended. Return False if
    it did not end in order and was killed. Raises UsageError if the process cannot be ended from here, and
    TemporaryError if it does not end.
    """
    process = _process_of(home, holder)
    for number, is_orderly in ((signal.SIGTERM, True), (signal.SIGKILL, False)):
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)  # one that was suspended would not hear the first
        if _released(home, holder):
            return is_orderly
    raise TemporaryError(f"process {holder.pid} does not end, although it was killed")


def _process_of(home: Home, holder: Holder) -> psutil.Process:
    """Return the process of the holder. Its command line is compared, because the lock may be held from a
    container, where other processes have its number.
    """
    try:
        process = psutil.Process(holder.pid or 0)
        if holder.pid is not None and DETACHED in process.cmdline() and process.uids().real == os.getuid():
            return process
    except psutil.Error:
        pass
    what = f"{home.root} is served by {holder.named}, which is no process of yours that can be seen here"
    raise UsageError(
        what, fix="run the command as the same user, and in the same container", code=Exit.EXTERNAL_REFUSED
    )


def _released(home: Home, holder: Holder) -> bool:
    until_s, pause = time.monotonic() + STOP_S_MAX, threading.Event()
    while _holder(home) == holder:
        if time.monotonic() > until_s:
            return False
        pause.wait(LOOK_S)
    return True


def _holder(home: Home) -> Holder | None:
    try:
        return holder_of(home.lock_file)
    except OSError as error:
        raise UsageError(
            f"it cannot be told who serves {home.root}: {in_words(error)}", code=Exit.EXTERNAL_REFUSED
        ) from error
