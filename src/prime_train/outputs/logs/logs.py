"""Read a run's history and the end of its newest log, wherever the log is stored, with or without filters."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prime_train.app.machines import MachineConnection, Machines
from prime_train.app.run_access import RunFiles
from prime_train.buckets.port import Bucket
from prime_train.errors import TemporaryError, UsageError
from prime_train.outputs.logs.log_tail import (
    StoredLog,
    Tail,
    last_lines,
    lines_since,
    log_on_disk,
    stored_logs,
)
from prime_train.outputs.logs.remote_log import remote_lines, remote_lines_since
from prime_train.runs.run import Attempt, HistoryEvent, Run
from prime_train.runs.store import RunRecord, Store
from prime_train.text.overwritten import lines_in_the_end
from prime_train.trainers.patterns import PatternRefused, compiled

LINES = 40
LINES_MAX = 100_000
TIMELESS = (
    "this log has no record of when its lines were written, so its last lines are shown regardless of their "
    "age"
)


@dataclass(frozen=True)
class LogFilter:
    """Which lines to return. `lines`: the most lines of the log, counted from its end; None: `LINES`, or with
    `since_s` no such limit. `attempt`: only lines of this attempt. `since_s`: only lines written in the last
    `since_s` seconds. `text`: only lines that contain this text, or with `is_pattern` only lines that match
    this regular expression (RE2).
    """

    lines: int | None = None
    attempt: int | None = None
    since_s: int | None = None
    text: str = ""
    is_pattern: bool = False

    @property
    def lines_max(self) -> int:
        return self.lines if self.lines is not None else LINES if self.since_s is None else LINES_MAX

    def line_filter(self) -> Callable[[str], bool]:
        """Return a function that returns whether a line matches `text`. Raises UsageError if the regular
        expression is invalid.
        """
        if not self.is_pattern:
            return lambda line: self.text in line

        try:
            pattern = compiled(self.text)
        except PatternRefused as error:
            raise UsageError(f"{self.text[:200]!r} is not an RE2 regular expression: {error}") from error
        return lambda line: pattern.search(line) is not None


@dataclass(frozen=True)
class LogEnd:
    """The end of a log. `name`: where it is stored, empty if there is none; `text`: its last lines; `tail`:
    reads what is appended to it later, if it is on this machine.
    """

    name: str
    text: str
    tail: Tail


def history_of(history: Sequence[HistoryEvent], log_filter: LogFilter, now_s: int) -> list[HistoryEvent]:
    """Return the events that match the choice, oldest first. `now_s`: the store's time. Raises UsageError as
    `line_filter` does.
    """
    keeps = log_filter.line_filter()
    return [
        event
        for event in history
        if (log_filter.attempt is None or event.attempt == log_filter.attempt)
        and (log_filter.since_s is None or event.at_s >= now_s - log_filter.since_s)
        and keeps(f"{event.kind} {event.text}")
    ]


def log_end(
    store: Store, files: RunFiles, record: RunRecord, log_filter: LogFilter, warn: Callable[[str], None]
) -> LogEnd:
    """Return the last lines of the run's newest log that match the choice: on the disk of the run's machine,
    here or elsewhere, or else from the evidence in the bucket. If a machine cannot be reached, `warn` is
    called with the reason, and the evidence is used; it is also called if the log has no index of times.

    Raises UsageError if the run has no such attempt, and as `line_filter` does.
    """
    keeps = log_filter.line_filter()
    _check_attempt(record.run, log_filter.attempt)
    path = log_on_disk(files.machines, record.run, log_filter.attempt)
    tail = Tail(path)
    # A search covers more than the last lines.
    most = LINES_MAX if log_filter.text else log_filter.lines_max
    if path is not None:
        since = lines_since(path, log_filter.since_s, time.time()) if log_filter.since_s is not None else most
        name, text = str(path), tail.last(_number(since, most, warn))
    elif log_filter.attempt in (None, record.run.attempt):
        name, text = _elsewhere(files.machines, record, log_filter.since_s, most, warn)
    else:
        name, text = "", ""
    if not name:
        name, text = _stored(store, files.bucket(), record.run, log_filter, most, warn)
    return LogEnd(
        name, last_lines("\n".join(filter(keeps, lines_in_the_end(text))), log_filter.lines_max), tail
    )


def _check_attempt(run: Run, number: int | None) -> None:
    if number is not None and not 1 <= number <= run.attempt:
        there = (
            f"attempts 1 to {run.attempt}"
            if run.attempt > 1
            else "attempt 1 alone"
            if run.attempt
            else "no attempt yet"
        )
        raise UsageError(f"{run.run_id} has no attempt {number}", fix=f"it has {there}")


def _number(since: int | None, most: int, warn: Callable[[str], None]) -> int:
    if since is None:
        warn(TIMELESS)
    return most if since is None else min(since, most)


def _elsewhere(
    machines: Machines, record: RunRecord, since_s: int | None, most: int, warn: Callable[[str], None]
) -> tuple[str, str]:
    unknown = machines.why_unknown(record.run)
    if unknown:
        warn(unknown)
        return "", ""
    try:
        with machines.reached(record.run) as machine:
            name, text = _read_there(machine, since_s, most, warn) if machine is not None else ("", "")
    except TemporaryError as error:
        warn(str(error))
        return "", ""
    return (f"{name} of attempt {record.run.attempt}", text) if name else ("", "")


def _read_there(
    machine: MachineConnection, since_s: int | None, most: int, warn: Callable[[str], None]
) -> tuple[str, str]:
    since = remote_lines_since(machine, since_s) if since_s is not None else most
    name, text = remote_lines(machine, most if since is None else min(since, most))
    if name:
        _number(since, most, warn)
    return name, text


def _stored(
    store: Store, bucket: Bucket, run: Run, log_filter: LogFilter, most: int, warn: Callable[[str], None]
) -> tuple[str, str]:
    """Return the key and the last lines of the newest kept log of the chosen attempt, or of any; empty if
    there is none.
    """
    stored = next(stored_logs(bucket, run, log_filter.attempt), None)
    if stored is None:
        return "", ""
    if log_filter.since_s is not None and _ended_before(run, stored, store.now_s() - log_filter.since_s):
        return stored.key, ""
    if log_filter.since_s is not None:
        warn(TIMELESS)
    return stored.key, last_lines(stored.text, most)


def _ended_before(run: Run, stored: StoredLog, at_s: int) -> bool:
    attempt: Attempt | None = next((one for one in run.attempts if one.number == stored.attempt), None)
    ended_s = (attempt.fenced_s or attempt.ended_s) if attempt is not None else run.ended_s
    return ended_s is not None and ended_s < at_s
