"""Follow a trainer's log wherever the run is, across lost connections and on to its next machine."""

import threading
import time
from collections.abc import Callable, Iterator

from prime_train.app.machines import MachineConnection, is_elsewhere
from prime_train.app.run_access import RunFiles
from prime_train.errors import TemporaryError, UsageError
from prime_train.outputs.logs.log_tail import MATCH_CHARS, Tail, log_on_disk, stored_logs
from prime_train.outputs.logs.logs import LogEnd, LogFilter, log_end
from prime_train.outputs.logs.remote_log import RemoteTail, remote_lines_since
from prime_train.runs.lookup import find
from prime_train.runs.run import Run
from prime_train.runs.store import RunRecord, Store
from prime_train.text.overwritten import Overwritten

LOOK_S = 0.5
AGAIN_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""The seconds between attempts to connect to a machine; the last value repeats."""

LINE_CHARS_MAX = 2**18
SEARCHED_LINES = 10_000
"""How many past lines of a remote log are searched for a text."""


class _Lines:
    """Filters the lines of a log that arrives in pieces, in their last states. Without a text to search for,
    all lines pass.
    """

    def __init__(self, log_filter: LogFilter) -> None:
        self._keeps = log_filter.line_filter() if log_filter.text else None
        self._rest, self._states = "", Overwritten()

    def of(self, piece: str) -> str:
        return self._kept(self._states.of(piece))

    def _kept(self, piece: str) -> str:
        if self._keeps is None:
            return piece
        *lines, self._rest = (self._rest + piece).split("\n")
        # A line that never ends must not grow without limit.
        if len(self._rest) > LINE_CHARS_MAX:
            lines, self._rest = [*lines, self._rest], ""
        return "".join(f"{line}\n" for line in lines if self._keeps(line))

    def end(self) -> str:
        """Return the last line if it has no line break."""
        left = self._kept(self._states.end())
        return left + (self._kept("\n") if self._rest else "")


class LogStream:
    """A stream of a run's log. `tail`: the reader of the log if the pod is on this machine; `log_filter`:
    which lines to show, including past lines if the pod is not on this machine. `warn` is called with what
    people should know beside the log.
    """

    def __init__(
        self,
        store: Store,
        files: RunFiles,
        run_id: str,
        tail: Tail,
        log_filter: LogFilter,
        warn: Callable[[str], None],
    ) -> None:
        self._warn = warn
        self._store, self._files, self._run_id, self._tail = store, files, run_id, tail
        self._lines: int | None = SEARCHED_LINES if log_filter.text else log_filter.lines_max
        self._since_s, self._chosen = log_filter.since_s, _Lines(log_filter)
        self._pause = threading.Event()
        self._shown = ""
        """The end of the text already returned from the remote log `_name` of attempt `_attempt`."""
        self._name, self._attempt = "", 0
        self._pending = False

    def pieces(self) -> Iterator[str]:
        """Yield the log's text until the run is over, and then the rest of it from the machine's disk or from
        the bucket. Yields "" about every half a second if there is no new text, so that the caller can show
        what else has happened. Raises UsageError if the machine's provider is not set up here, and
        PermanentError if its host key has changed.
        """
        while True:
            run = find(self._store, self._run_id).run
            if run.is_over:
                yield self._chosen.of(self._unshown()) + self._chosen.end()
                return
            here = log_on_disk(self._files.machines, run)
            if here is not None or not is_elsewhere(run):
                # A later machine has no past lines to skip.
                self._lines = None
                self._tail.move_to(here)
                yield self._chosen.of(self._tail.more())
                self._pause.wait(LOOK_S)
            else:
                yield from self._from_elsewhere(run)

    def _unshown(self) -> str:
        """Return the text after the last piece, once the run is over: from the machine's disk, or from the
        log kept in the bucket.
        """
        if not self._name:
            return self._tail.more()
        run = find(self._store, self._run_id).run
        stored = next(
            (
                log
                for log in stored_logs(self._files.bucket(), run)
                if (log.attempt, log.name) == (self._attempt, self._name)
            ),
            None,
        )
        if stored is None:
            return ""
        _, found, after = stored.text.rpartition(self._shown)
        if found:
            return after
        self._warn(f"--- the rest of the log may be in {stored.key}")
        return ""

    def _from_elsewhere(self, run: Run) -> Iterator[str]:
        """Yield the log from the run's remote machine until the run is on another machine or on none."""
        unknown = self._files.machines.why_unknown(run)
        if unknown:
            raise UsageError(unknown)
        tail, tries = RemoteTail(), 0
        while not self._has_moved(run):
            why = "the machine has not started yet"
            try:
                yield from self._connected(run, tail)
            except TemporaryError as error:
                why = f"{error}; retrying"
            # A machine that was connected just before is retried soon.
            tries = tries + 1 if self._pending else 0
            wait_s = AGAIN_S[min(tries, len(AGAIN_S) - 1)]
            end_s = time.monotonic() + wait_s
            while time.monotonic() < end_s and not self._has_moved(run):
                self._pause.wait(LOOK_S)
                yield ""
            if not self._has_moved(run):
                # Tell the reason once, until the machine is reached again.
                if not self._pending:
                    self._warn(f"--- {why}")
                self._pending = True
        self._lines = None

    def _connected(self, run: Run, tail: RemoteTail) -> Iterator[str]:
        with self._files.machines.reached(run) as machine:
            if machine is None:
                return
            tail.begin_with(self._past(machine))
            looked_s = time.monotonic()
            for piece in tail.follow(machine):
                if piece.text:
                    if self._pending:
                        self._warn("--- reached")
                    self._pending = False
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

    def _past(self, machine: MachineConnection) -> int | None:
        """Return the number of past lines to show first; None: all."""
        if self._lines is None or self._since_s is None:
            return self._lines
        since = remote_lines_since(machine, self._since_s)
        return self._lines if since is None else min(since, self._lines)

    def _has_moved(self, run: Run) -> bool:
        now = find(self._store, self._run_id).run
        return (
            now.attempt != run.attempt
            or now.is_over
            or (now.current_attempt is not None and now.current_attempt.fenced_s is not None)
        )


def log_followed(
    store: Store, files: RunFiles, record: RunRecord, log_filter: LogFilter, warn: Callable[[str], None]
) -> tuple[LogEnd | None, LogStream]:
    """Return the end of the run's newest log, and the stream of what comes after it. The end is None if the
    log is on a rented machine: the stream then begins with it, so that nothing in between is missed. Raises
    UsageError as `log_end` does.
    """
    end = None if is_elsewhere(record.run) else log_end(store, files, record, log_filter, warn)
    return end, LogStream(
        store, files, record.run.run_id, end.tail if end is not None else Tail(None), log_filter, warn
    )
