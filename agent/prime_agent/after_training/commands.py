"""Runs the commands of the steps under `after`, one at a time, each in a thread of its own."""

import logging
import os
import shlex
import shutil
import stat
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from prime_agent.after_training import kaggle
from prime_agent.before_training.phase import Called, CallOff, Ended, Shell
from prime_agent.checkpoints.staging import Vanished, clear, set_aside
from prime_agent.checkpoints.units import Units
from prime_agent.event_queue import Inbox
from prime_agent.events import EvaluationEnded, Event, StepEnded
from prime_agent.processes import Processes
from prime_agent.trainer.environment import without_secrets
from prime_agent.trainer.logs import BoundedLog
from prime_train.buckets.keys import AFTER_STREAM, EVALUATIONS_STREAM
from prime_train.buckets.port import Bucket
from prime_train.checkpoints.catalog import Reader, point_of
from prime_train.checkpoints.restore import RestoreFailed, restore
from prime_train.errors import ExternalError, PermanentError
from prime_train.outputs.results.after import FILE_BYTES_MAX, InvalidResults, parse_results
from prime_train.outputs.results.numbers import Number, ResultSource, number
from prime_train.spec.after_steps import CHECKPOINT_VARIABLE, RESULTS_VARIABLE, STEP_VARIABLE
from prime_train.spec.checkpoint_names import CheckpointNames
from prime_train.spec.spec import AfterSpec, RunSpec
from prime_train.text.safe import neutralized
from prime_train.trainers.of_spec import trainer_for

NICENESS = 10
"""Nice value of evaluations beside the trainer: they run when it leaves a core idle."""
PROBLEM_CHARS_MAX = 300
TAIL_CHARS_MAX = 8000

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StepContext:
    """The interfaces and values that the commands need. `work`: the working tree; `folder`: a folder of their
    own, on the same file system; `environment` returns the variables that the trainer has; `record` is called
    with the numbers of each step.
    """

    bucket: Bucket
    run_id: str
    spec: RunSpec
    processes: Processes
    work: Path
    logs: Path
    folder: Path
    environment: Callable[[], Mapping[str, str]]
    secrets: Mapping[str, str] = field(repr=False)
    record: Callable[[Iterable[Number]], None]


class StepCommands:
    """The commands of the steps. `run` and `evaluate` return at once, and the result arrives as StepEnded or
    EvaluationEnded.
    """

    def __init__(self, context: StepContext, inbox: Inbox) -> None:
        self._context, self._inbox = context, inbox
        self._trainer = trainer_for(context.spec)
        self._call_off = CallOff()
        self._is_closed = False

    def run(self, index: int, step: int, reached: int, tried: int) -> None:
        """Run a step after training, for the checkpoint of `step`; 0: there is none, and the trainer has
        reached the step `reached`.
        """
        spec = self._context.spec.after[index]
        title = f"{spec.name}, try {tried} of {spec.retries + 1}, step {step or reached}"

        def work() -> Event:
            try:
                problem, tail = self._run(spec, AFTER_STREAM, title, step, reached)
            except Called:
                return StepEnded(index, "it was cancelled")
            if not problem:
                return StepEnded(index)
            return StepEnded(index, problem, tail)

        self._start(work, lambda why: StepEnded(index, why))

    def evaluate(self, index: int, step: int) -> None:
        """Run the command of a step beside the trainer, for the checkpoint of `step`."""
        spec = self._context.spec.after[index]

        def work() -> Event:
            try:
                problem, _ = self._run(spec, EVALUATIONS_STREAM, f"{spec.name}, step {step}", step, step)
            except Called:
                problem = "it was cancelled"
            if problem:
                self.note(f"{spec.name} of step {step} failed: {problem}")
            return EvaluationEnded(index, step, problem)

        self._start(work, lambda why: EvaluationEnded(index, step, why))

    def note(self, text: str) -> None:
        """Write a line about evaluations into their log."""
        _log.info("evaluations: %s", neutralized(text))
        self._write(EVALUATIONS_STREAM, text)

    def cancel(self) -> None:
        """Kill the running command."""
        self._call_off.now()

    def close(self) -> None:
        """Kill the running command, and start no other one."""
        self._is_closed = True
        self._call_off.now()

    def _start(self, work: Callable[[], Event], failed: Callable[[str], Event]) -> None:
        if self._is_closed:
            return
        self._call_off = CallOff()

        def outcome() -> None:
            try:
                event = work()
            except Exception as error:
                # A bug here must not end the training, so it is reported as the failure of the step.
                _log.exception("a step failed")
                event = failed(f"{type(error).__name__}: {error}")
            self._inbox.put(event)

        threading.Thread(target=outcome, name="after", daemon=True).start()

    def _run(self, spec: AfterSpec, log: str, title: str, step: int, reached: int) -> tuple[str, str]:
        """Run the command and return why it failed, "" if it did not, and the end of its output. Raises
        Called if it is cancelled.
        """
        beside = log == EVALUATIONS_STREAM
        self._write(log, title)
        copy = self._context.folder / "checkpoint"
        try:
            checkpoint = self._checkpoint(step, copy, beside=beside)
            ended = self._ended(spec, log, str(checkpoint or ""), step or reached, beside=beside)
            problem = _problem(ended, spec.timeout_s) or self._recorded(spec, step or reached, beside=beside)
        except (RestoreFailed, ExternalError, OSError) as error:
            return f"the checkpoint of step {step} is not available: {error}"[:PROBLEM_CHARS_MAX], ""
        finally:
            clear(copy)
        if problem:
            self._write(log, f"{spec.name} failed: {problem}")
        return problem[:PROBLEM_CHARS_MAX], ended.tail

    def _ended(self, spec: AfterSpec, log: str, checkpoint: str, step: int, *, beside: bool) -> Ended:
        results = self._results_of(spec)
        results.parent.mkdir(parents=True, exist_ok=True)
        if results.is_dir() and not results.is_symlink():
            shutil.rmtree(results)  # an earlier try has made it
        results.unlink(missing_ok=True)
        ours = {CHECKPOINT_VARIABLE: checkpoint, STEP_VARIABLE: str(step), RESULTS_VARIABLE: str(results)}
        context = self._context
        env = {**context.environment(), **spec.env, **ours}
        shell = Shell(
            context.processes, context.work, env, context.logs / log, self._call_off, context.secrets
        )
        line = spec.run if spec.kaggle is None else kaggle.command(spec.kaggle, context.spec, context.run_id)
        command = f"nice -n {NICENESS} /bin/sh -c {shlex.quote(line)}" if beside else line
        return shell.run(command, name=f"after-{spec.name}", timeout_s=spec.timeout_s)

    def _results_of(self, spec: AfterSpec) -> Path:
        return self._context.folder / f"{spec.name}-results.json"

    def _recorded(self, spec: AfterSpec, step: int, *, beside: bool) -> str:
        """Record the results that the command has written, if any, and return what is wrong with them; "" if
        nothing is.
        """
        try:
            # The content without secrets, which the name of a result may contain; the whole content, because
            # reasons quote it cut.
            data = _content(self._results_of(spec))
            text = data.decode(errors="surrogateescape")
            values = parse_results(
                without_secrets(text, self._context.secrets).encode(errors="surrogateescape")
            )
        except FileNotFoundError:
            return ""
        except (InvalidResults, OSError) as error:
            return f"its results in {RESULTS_VARIABLE} cannot be used: {error}"
        source, by = (ResultSource.EVALUATION, "") if beside else (ResultSource.AFTER, spec.name)
        self._context.record(
            [number(name, value, source, by=by, step=step) for name, value in values.items()]
        )
        return ""

    def _checkpoint(self, step: int, copy: Path, *, beside: bool) -> Path | None:
        """Return the folder, or the first file, of the checkpoint: the trainer's own, or below `copy` one
        that the trainer's clean-up cannot remove. Raises RestoreFailed, the bucket's errors and OSError.
        """
        if not step:
            return None
        context, spec = self._context, self._context.spec
        names = CheckpointNames.of(spec)
        units = Units(names, context.work, accepts_files=self._trainer.gathering(spec) is None)
        found = [] if names.is_fixed else units.found()[0]
        own = next((unit for unit in found if unit.step == step and not unit.missing), None)
        if own is not None and not beside:
            return own.path
        clear(copy)
        if own is not None and not spec.checkpoints.in_place:
            target = copy if own.members else copy / own.name
            try:
                set_aside(own.root, target, copy=False, only_links=True, listed=own.files)
            except (Vanished, PermanentError, OSError) as error:
                _log.info("the checkpoint of step %d is downloaded for its evaluation: %s", step, error)
            else:
                return copy / own.name
        clear(copy)
        manifest = next(
            (one for one in Reader(context.bucket, context.run_id).catalog().complete() if one.step == step),
            None,
        )
        if manifest is None:
            raise RestoreFailed("it is neither on this machine nor in the bucket")
        return restore(context.bucket, context.run_id, point_of(manifest), copy, names=names, is_own=True)

    def _write(self, log: str, title: str) -> None:
        """Write a line of our own into a log; not if that is impossible, because training and steps go on
        without it.
        """
        try:
            file = BoundedLog(self._context.logs / log)
        except OSError as error:
            _log.warning("%s cannot be written: %s", log, error.strerror or error)
            return
        file.write(f"=== {neutralized(title)}\n".encode(errors="replace"))
        file.close()


def _content(path: Path) -> bytes:
    """Return the beginning of a file that a command has written, one byte more than results may have. Raises
    InvalidResults for anything else than a file, such as a named pipe, which would not be read to its end,
    and OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InvalidResults("it is not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(FILE_BYTES_MAX + 1)
    finally:
        os.close(descriptor)


def _problem(ended: Ended, timeout_s: int) -> str:
    if ended.timed_out:
        return f"it did not end within {timeout_s} s"
    if ended.code == 0:
        return ""
    last = next((line.strip() for line in reversed(ended.tail.splitlines()) if line.strip()), "")
    return f"it ended with code {ended.code}" + (f": {last[:PROBLEM_CHARS_MAX]}" if last else "")
