"""Follow a trainer's log wherever the run is, across lost connections and on to its next machine."""

import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from prime_train.core.errors import UsageError
from prime_train.operations.machine import is_elsewhere, reached, why_unknown
from prime_train.operations.run_logs.log_tail import Tail, kept_logs, log_on_disk
from prime_train.operations.run_logs.logs import LogChoice
from prime_train.operations.run_logs.remote_log import RemoteTail, remote_lines_since
from prime_train.operations.run_lookup import find
from prime_train.ports import TemporaryError

if TYPE_CHECKING:
    from prime_train.control_plane.wiring.home import Home
    from prime_train.core.run import Run
    from prime_train.operations.machine import Machine

LOOK_S = 0.5
AGAIN_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""The seconds between attempts to connect to a machine; the last value repeats."""
MATCH_CHARS = 200
LINE_CHARS_MAX = 2**18
SEARCHED_LINES = 10_000
"""How many past lines of a remote log are searched for a text."""


class _Lines:
    """Filters the lines of a log that arrives in pieces. Without a text to search for, pieces pass unchanged."""

    def __init__(self, choice: LogChoice) -> None:
        self._keeps = choice.line_filter() if choice.text else None
        self._rest = ""

    def of(self, piece: str) -> str:
        if self._keeps is None:
            return piece
        *whole, self._rest = (self._rest + piece).split("\n")
        # A line that never ends must not grow without limit.
        if len(self._rest) > LINE_CHARS_MAX:
            whole, self._rest = [*whole, self._rest], ""
        return "".join(f"{line}\n" for line in whole if self._keeps(line))

    def end(self) -> str:
        """Return the last line if it has no line break."""
        return self.of("\n") if self._rest else ""


class LogStream:
    """A stream of a run's log. `tail`: the reader of the log if the pod is on this machine; `choice`: which lines to show, including past
    lines if the pod is not on this machine."""

    def __init__(self, home: "Home", run_id: str, tail: Tail, choice: LogChoice) -> None:
        self._home, self._run_id, self._tail = home, run_id, tail
        self._lines: int | None = SEARCHED_LINES if choice.text else choice.lines_max
        self._since_s, self._chosen = choice.since_s, _Lines(choice)
        self._store, self._pause = home.store(), threading.Event()
        self._shown = ""
        """The end of the text already returned from the remote log named by the next two fields."""
        self._name, self._attempt = "", 0
        self._pending = False

    def pieces(self) -> Iterator[str]:
        """Yield the log's text without end; "" about every half a second if there is none, so that the caller can check whether the run is
        over. Raises UsageError if the machine's provider is not set up here, and PermanentError if its host key has changed."""
        while True:
            run = find(self._store, self._run_id).run
            here = log_on_disk(self._home, run)
            if here is not None or not is_elsewhere(run):
                # A later machine has no past lines to skip.
                self._lines = None
                self._tail.move_to(here)
                yield self._chosen.of(self._tail.more())
                self._pause.wait(LOOK_S)
            else:
                yield from self._from_elsewhere(run)

    def rest(self) -> str:
        """Return the text after the last piece, once the run is over: from the machine's disk, or from the log kept in the bucket."""
        return self._chosen.of(self._unshown()) + self._chosen.end()

    def _unshown(self) -> str:
        if not self._name:
            return self._tail.more()
        run = find(self._store, self._run_id).run
        kept = next((log for log in kept_logs(self._home, run) if (log.attempt, log.name) == (self._attempt, self._name)), None)
        if kept is None:
            return ""
        _, found, after = kept.text.rpartition(self._shown)
        if found:
            return after
        typer.echo(f"--- the rest of it may be in {kept.key}", err=True)
        return ""

    def _from_elsewhere(self, run: "Run") -> Iterator[str]:
        """Yield the log from the run's remote machine until the run is on another machine or on none."""
        unknown = why_unknown(self._home, run)
        if unknown:
            raise UsageError(unknown)
        tail, tries = RemoteTail(), 0
        while not self._has_moved(run):
            why = "the machine is not up yet"
            try:
                yield from self._connected(run, tail)
            except TemporaryError as error:
                why = f"{error}; trying again"
            # A machine that was connected just before is retried soon.
            tries = tries + 1 if self._pending else 0
            yield from self._wait(run, AGAIN_S[min(tries, len(AGAIN_S) - 1)])
            if not self._has_moved(run):
                self._say(why)
        self._lines = None

    def _connected(self, run: "Run", tail: RemoteTail) -> Iterator[str]:
        with reached(self._home, run) as machine:
            if machine is None:
                return
            tail.begin_with(self._past(machine))
            looked_s = time.monotonic()
            for piece in tail.follow(machine):
                if piece.text:
                    self._heard()
                    head = self._headed(piece.name, run.attempt)
                    self._shown = (self._shown + piece.text)[-MATCH_CHARS:]
                    yield head + self._chosen.of(piece.text)
                else:
                    yield ""
                if time.monotonic() >= looked_s + LOOK_S:
                    looked_s = time.monotonic()
                    if self._has_moved(run):
                        return

    def _headed(self, name: str, attempt: int) -> str:
        """Return a header line if this is the first piece of a log, else "" (an empty string)."""
        if (name, attempt) == (self._name, self._attempt):
            return ""
        self._name, self._attempt, self._shown = name, attempt, ""
        return f"{self._chosen.end()}--- {name} of attempt {attempt}\n"

    def _past(self, machine: "Machine") -> int | None:
        """Return the number of past lines to show first; None: all."""
        if self._lines is None or self._since_s is None:
            return self._lines
        since = remote_lines_since(machine, self._since_s)
        return self._lines if since is None else min(since, self._lines)

    def _has_moved(self, run: "Run") -> bool:
        now = find(self._store, self._run_id).run
        return now.attempt != run.attempt or now.is_over or (now.current_attempt is not None and now.current_attempt.fenced_s is not None)

    def _say(self, why: str) -> None:
        """Print the reason once, until the machine is reached again."""
        if not self._pending:
            typer.echo(f"--- {why}", err=True)
        self._pending = True

    def _heard(self) -> None:
        if self._pending:
            typer.echo("--- reached", err=True)
        self._pending = False

    def _wait(self, run: "Run", wait_s: float) -> Iterator[str]:
        end_s = time.monotonic() + wait_s
        while time.monotonic() < end_s and not self._has_moved(run):
            self._pause.wait(LOOK_S)
            yield ""
