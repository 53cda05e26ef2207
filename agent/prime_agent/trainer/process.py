"""The trainer's process: started once, read, signalled, and reported when it has ended."""

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from prime_agent.event_queue import Inbox
from prime_agent.events import ResumeMissed, RuleFired, TrainerExited
from prime_agent.evidence import tail
from prime_agent.processes import Process, Processes
from prime_agent.trainer.environment import without_secrets
from prime_agent.trainer.logs import BoundedLog, Drain, tail_text
from prime_agent.trainer.progress_follower import Follower, FollowThread, GlobFollower
from prime_agent.trainer.reached_steps import ReachedSteps
from prime_agent.trainer.step_metrics import StepMetrics
from prime_train.checkpoints.manifest import PROGRESS_HEADER_CHARS_MAX
from prime_train.runs.wire import LOG_TAIL_CHARS_MAX
from prime_train.spec.causes import Cause
from prime_train.spec.checkpoint_names import fixed_part, has_wildcards
from prime_train.spec.choices import RESUME_ARGUMENTS
from prime_train.spec.spec import RunSpec
from prime_train.trainers.conventions.own_scripts import SCRIPT_BYTES_MAX, is_given_step, scripts_of
from prime_train.trainers.log_lines import clean, unglued
from prime_train.trainers.of_spec import LineReader, LogRule, Named, Progress, fired, named, trainer_for
from prime_train.trainers.patterns import found_in
from prime_train.trainers.registry import TRAINERS

LINE_SHOWN_MAX = 500
OUTPUT_S_MAX = 5.0
"""Seconds to wait for the end of the output; a safeguard, because all of the trainer's processes have ended
by then.
"""

OWN_LINES_MAX = 1000
"""Number of lines read from the end of each log that the trainer writes itself; the last ones show why it
failed.
"""

FULL_BYTES = 64 * 2**20
"""Free bytes below which a disk counts as full for a save."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StartCommand:
    """How the trainer is started. `resume_folder` belongs to `resume_step`."""

    spec: RunSpec
    work: Path
    log: Path
    env: Mapping[str, str] = field(repr=False)
    secrets: Mapping[str, str] = field(repr=False)
    resume_step: int | None = None
    resume_folder: Path | None = None
    header: str = ""
    """The header of the progress file where the checkpoint was saved: a trainer that goes on with its table
    writes none.
    """


class TrainerRun:
    """The running trainer. It reports StepsReported, RuleFired and ResumeMissed at most once each, and
    TrainerExited last, after all steps were reported.
    """

    def __init__(
        self,
        plan: StartCommand,
        processes: Processes,
        inbox: Inbox,
        metrics: StepMetrics,
        reached: ReachedSteps | None = None,
    ) -> None:
        self._plan = plan
        self._metrics, self._reached = metrics, reached
        self._processes = processes
        self._inbox = inbox
        self._trainer = trainer_for(plan.spec)
        self._reader: LineReader = self._trainer.reader(plan.spec)
        self._rules: tuple[LogRule, ...] = self._trainer.log_rules(plan.spec)
        self._stop_rules = tuple(rule for rule in self._rules if rule.stop)
        self._fired = False
        self._newest = plan.resume_step or 0
        self._after = self._newest if self._trainer.counts_anew(plan.spec) else 0
        # A step shows whether the checkpoint was loaded, unless steps are counted anew. Output and a progress
        # file have no common order.
        is_counted_on = (
            plan.resume_step is None
            or not self._trainer.counts_anew(plan.spec)
            or plan.spec.trainer.progress.file is not None
        )
        self._awaited_line = "" if is_counted_on else self._trainer.resume_line(plan.spec)
        self._process: Process | None = None
        self._drain: Drain | None = None

    def start(self) -> None:
        """Start the trainer and the threads that read it. A failure to start is reported as TrainerExited
        with code 127.
        """
        plan = self._plan
        folder = plan.work / fixed_part(plan.spec.checkpoints.folder)
        command = self._trainer.command(
            resume_of(plan.spec, plan.work),
            checkpoints=str(folder),
            resume_step=plan.resume_step,
            resume_folder=str(plan.resume_folder) if plan.resume_folder else None,
        )
        follower = self._follower()
        try:
            process = self._processes.start(command, cwd=plan.work, env=plan.env, name="trainer")
        except OSError as error:
            self._inbox.put(
                TrainerExited(127, Cause.TRAINER_ERROR, f"the trainer cannot be started: {error}")
            )
            return
        self._process = process
        _log.info("the trainer runs as process %d", process.pid)
        self._drain = drain = Drain(process.output, BoundedLog(plan.log), self._output, name="trainer")
        follow = (
            FollowThread(follower, lambda lines: self._progress(lines, follower.written_s))
            if follower is not None
            else None
        )
        threading.Thread(
            target=self._await_end, args=(process, drain, follow), name="trainer", daemon=True
        ).start()

    def ask(self) -> None:
        if self._process is not None:
            self._process.ask()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def suspicion(self) -> tuple[Cause, str] | None:
        """Return the cause and the line in the output and logs of the running trainer that indicate a
        problem; None if there are none.
        """
        # Classify as if the trainer had failed, with an exit code that proves nothing, so that only the lines
        # count.
        found = self._named(self._lines(), code=1)
        return None if found.cause is Cause.TRAINER_ERROR else (found.cause, found.line)

    def _follower(self) -> Follower | GlobFollower | None:
        file = self._plan.spec.trainer.progress.file
        if file is None:
            return None
        follower = (
            GlobFollower(self._plan.work, file) if has_wildcards(file) else Follower(self._plan.work / file)
        )
        for line in (self._plan.header, *follower.skip_present()):
            self._reader.read(line)
        return follower

    def _output(self, lines: list[str]) -> None:
        lines = [piece for line in lines for piece in unglued(line)]
        at, rule = self._stop_rule_in(lines)
        # In the order of the lines, because the first reason to stop the training is the one that counts.
        self._read_steps(lines[:at])
        if rule is not None:
            self._fired = True
            self._inbox.put(
                RuleFired(rule.cause, without_secrets(lines[at], self._plan.secrets)[:LINE_SHOWN_MAX])
            )
        self._read_steps(lines[at:])

    def _stop_rule_in(self, lines: list[str]) -> tuple[int, LogRule | None]:
        """Return the number of the first line that stops the training, and its rule; the number of lines and
        None if there is none.
        """
        if self._stop_rules and not self._fired:
            for at, line in enumerate(lines):
                rule = fired(line, self._stop_rules, resumed=self._plan.resume_step is not None)
                if rule is not None:
                    return at, rule
        return len(lines), None

    def _read_steps(self, lines: list[str]) -> None:
        if lines and self._plan.spec.trainer.progress.file is None:
            self._progress(lines)

    def _progress(self, lines: list[str], written_s: float | None = None) -> None:
        rows = [row for line in lines if (row := self._read(line)) is not None]
        self._newest = max([self._newest, *(row.step for row in rows)])
        if self._reached is not None and rows:
            self._reached.add([row.step for row in rows], written_s)
        self._metrics.add(rows)  # first, because a receiver of the steps may read them
        self._inbox.put_steps(rows)

    def _read(self, line: str) -> Progress | None:
        row = self._reader.read(line)
        if self._awaited_line and found_in(self._awaited_line, clean(line)):
            self._awaited_line = ""
        if row is None:
            return None
        if self._awaited_line and row.step > 0:
            self._awaited_line = ""
            self._inbox.put(ResumeMissed(self._after + row.step))
        return replace(row, step=self._after + row.step)

    def _await_end(self, process: Process, drain: Drain, follow: FollowThread | None) -> None:
        code = process.wait()
        if not drain.join(OUTPUT_S_MAX):
            _log.warning("another process still holds the trainer's output open")
        if follow is not None:
            follow.end(OUTPUT_S_MAX)
        # The newest step is known only now that all progress has been read.
        code = self._trainer.exit_code(self._plan.spec, code=code, step=self._newest)
        lines = self._lines()
        disk = os.statvfs(self._plan.work)
        found = self._named(
            lines,
            code=code,
            disk_full=disk.f_bavail * disk.f_frsize < FULL_BYTES or (disk.f_files > 0 and disk.f_favail == 0),
        )
        log_tail = tail_text(lines, chars_max=LOG_TAIL_CHARS_MAX)
        self._inbox.put(TrainerExited(code, found.cause, found.line, log_tail, found.action))

    def _named(self, lines: Sequence[str], *, code: int, disk_full: bool = False) -> Named:
        return named(
            lines, self._rules, code=code, disk_full=disk_full, resumed=self._plan.resume_step is not None
        )

    def _lines(self) -> list[str]:
        """Return the ends of the logs that the trainer writes itself, followed by its output, with secrets
        redacted.
        """
        spec = self._plan.spec
        logs = {path: _last_lines(self._plan.work / path) for path in self._trainer.log_files(spec)}
        lines = self._trainer.last_lines(spec, logs, self._drain.tail() if self._drain is not None else [])
        return without_secrets("\n".join(lines), self._plan.secrets).split("\n") if lines else []


def header_of(spec: RunSpec, work: Path) -> str:
    """Return the first line of the trainer's table of progress; empty if it has none, or the line is none of
    a header.
    """
    progress = spec.trainer.progress
    if progress.kind != "csv" or progress.file is None:
        return ""
    path = (
        max(work.glob(progress.file), key=lambda path: path.stat().st_mtime, default=None)
        if has_wildcards(progress.file)
        else work / progress.file
    )
    try:
        with (path or work / progress.file).open("rb") as file:
            line = file.readline(PROGRESS_HEADER_CHARS_MAX).decode().strip()
    except (OSError, ValueError):
        return ""
    return line if line.isprintable() and len(line) < PROGRESS_HEADER_CHARS_MAX else ""


def _last_lines(path: Path) -> list[str]:
    try:
        return tail(path).splitlines()[-OWN_LINES_MAX:]
    except FileNotFoundError:
        return []
    except OSError as error:
        _log.warning("%s cannot be read: %s", path, error)
        return []


def resume_of(spec: RunSpec, work: Path) -> RunSpec:
    """Return the spec with the arguments of a resume, if it names none and the script that it starts in the
    tree `work` has the option of prime-train's own examples. No argument is invented: a script that finds its
    checkpoint by itself would be stopped by an option that it does not know."""
    if (
        spec.trainer.resume
        or TRAINERS[spec.trainer.kind].layout is not None
        or not _has_option(spec.trainer.command, work)
    ):
        return spec
    return spec.model_copy(update={"trainer": spec.trainer.model_copy(update={"resume": RESUME_ARGUMENTS})})


def _has_option(command: str, work: Path) -> bool:
    return any(is_given_step(command, _text(work / path)) for path in scripts_of(command))


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(SCRIPT_BYTES_MAX).decode(errors="replace")
    except OSError:
        return ""
