"""Tries: the script is started with a checkpoint in an otherwise empty working tree, as on a new machine, and
what it reports first shows whether it has resumed.
"""

import itertools
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from prime_train.rehearsal.chosen_progress import BY_NAMES, ProgressSeen, slack_s
from prime_train.rehearsal.failure_line import failure_line
from prime_train.rehearsal.process import Place, Rehearsed
from prime_train.rehearsal.progress_lines import file_of
from prime_train.rehearsal.recording import OutputLine, Recording
from prime_train.rehearsal.restored import restore
from prime_train.rehearsal.saves import Save, SavesSeen
from prime_train.rehearsal.seen_saves import saves_like
from prime_train.spec.checkpoint_names import EPOCH, fixed_part
from prime_train.spec.spec import ProgressSpec, RunSpec
from prime_train.text.safe import neutralized
from prime_train.trainers.log_lines import clean, unglued
from prime_train.trainers.of_spec import trainer_for
from prime_train.trainers.progress import Progress, reader_for

LEARNED = 4.0
"""How many times nearer a loss must be to that of the checkpoint than to that of a first start."""
LOSS_SAME = 1e-6
"""Relative difference of two losses that count as the same, as far as lines show digits."""


class Outcome(Enum):
    RESUMED = "resumed"
    STARTED_OVER = "started over"
    COUNTED_ANEW = "loaded it, as its loss says, but counts from the beginning again"
    UNCLEAR = "reported a number with which a new start begins, too"
    ELSEWHERE = "went on with another step"
    FAILED = "failed"
    SILENT = "reported no step"


@dataclass(frozen=True)
class Tried:
    """How a start with a restored checkpoint went. `arguments`: those of the resume. `restored`: the number
    of completed steps of the checkpoint. `first`: the first step that was completed after it, None if none
    was reported. `line`: the line that says why.
    """

    arguments: str
    outcome: Outcome
    restored: int
    first: int | None = None
    line: str = ""
    recording: Recording = field(default_factory=Recording)
    reports: tuple[tuple[float, Progress], ...] = ()


def progress_of(seen: ProgressSeen, *, file: str | None = None) -> ProgressSpec:
    """Return how the step is read, as a config says it. `file`: the file, with wildcards if its name
    changes.
    """
    series = seen.series
    path = file_of(series) if file is None else file
    values: dict[str, object] = {"kind": series.kind, "first": seen.first}
    values |= {"file": path} if path else {}
    if series.kind == "regex":
        values["pattern"] = series.pattern
    else:
        values |= {"step": series.key} | ({"loss": series.loss} if series.loss else {})
    return ProgressSpec.model_validate(values)


def line_of(spec: RunSpec, tree: Path, *, number: int | None = None, path: Path | None = None) -> str:
    """Return the command line of the run in this tree, as the agent makes it. `number`, `path`: of the
    checkpoint from which it is to resume.
    """
    folder = tree / fixed_part(spec.checkpoints.folder)
    return trainer_for(spec).command(
        spec,
        checkpoints=str(folder),
        resume_step=number,
        resume_folder=str(path) if path is not None else None,
    )


def reports_in(
    lines: Iterable[OutputLine], progress: ProgressSpec, *, stream: str, header: str, epochs: bool
) -> list[tuple[float, Progress]]:
    """Return each step that these lines report, with its time, as the agent reads it. `stream`: the file, or
    the stream of the output; a file in a folder with another number counts as the same. `header`: that of the
    table of the first run, which a script that goes on with its table does not write again.
    """
    reader, found = reader_for(progress, epochs=epochs), []
    reader.read(header)
    wanted = _without_numbers(stream)
    for line in lines:
        if progress.file is None:
            if line.stream not in ("stdout", "stderr"):
                continue
        elif _without_numbers(line.stream) != wanted:
            continue
        for piece in unglued(line.text):
            row = reader.read(piece)
            if row is not None:
                found.append((line.at_s, row))
    return found


def _without_numbers(path: str) -> str:
    return re.sub(r"\d+", "", path)


def counts_epochs(saves: SavesSeen, progress: ProgressSeen) -> bool:
    """Return whether the steps of the run are epochs."""
    return EPOCH in (saves.counts, progress.series.counts)


def reports_of(
    progress: ProgressSeen, saves: SavesSeen, recording: Recording
) -> list[tuple[float, Progress]]:
    """Return what the agent would read of this recording; of a script that reports nothing, the numbers of
    its saves.
    """
    if progress.series.kind == BY_NAMES:
        found = saves_like(saves, recording)
        return [(save.closed_s, Progress(save.number)) for save in found if save.number is not None]
    return reports_in(
        list(recording.lines),
        progress_of(progress),
        stream=progress.series.stream,
        header=progress.series.header,
        epochs=counts_epochs(saves, progress),
    )


@dataclass
class Trials:
    """Starts the run in new trees. `fresh`: makes a new place with the code in it, and nothing else.
    `running`: starts a command line in a place.
    """

    spec: RunSpec
    fresh: Callable[[], Place]
    running: Callable[[str, Place, str], Rehearsed]
    saves: SavesSeen
    progress: ProgressSeen
    first_reports: Sequence[tuple[float, Progress]] = ()
    """What the first attempt reported."""

    @property
    def first_s(self) -> float:
        """Seconds until the first attempt reported a step."""
        return next((at_s for at_s, _ in self.first_reports), 0.0)

    @property
    def started_at(self) -> int:
        """The first step that the first attempt reported."""
        return next((row.step for _, row in self.first_reports if row.step > 0), 0)

    @property
    def report_every(self) -> int:
        """The most steps that passed without a report in the first attempt."""
        steps = list(dict.fromkeys(row.step for _, row in self.first_reports))
        return max((b - a for a, b in itertools.pairwise(steps)), default=1)

    @property
    def counts_epochs(self) -> bool:
        return counts_epochs(self.saves, self.progress)

    def step_of(self, save: Save, reports: Sequence[tuple[float, Progress]], *, resumed: int = 0) -> int:
        """Return the completed steps of a save: by its name, or by what had been reported when it closed.
        `resumed`: the step from which that start had resumed.
        """
        # What is saved by a thread is of the step at which that began.
        until_s = save.begun_s + slack_s(self.progress.series)
        before = max((row.step for at_s, row in reports if at_s <= until_s), default=resumed)
        if save.number is None:
            return before
        return save.number + 1 - self.progress.first if self.counts_epochs else save.number

    def start(self, arguments: str, save: Save, source: Path, *, label: str) -> Rehearsed:
        """Start the run with these arguments of a resume in a new tree that has the checkpoint and what
        belongs beside it, of the tree `source`, and nothing else of an earlier start. Raises OSError.
        """
        place = self.fresh()
        restore(save, self.saves, source, place.tree)
        trainer = self.spec.trainer.model_copy(update={"resume": arguments})
        # The number is passed as it is in the name.
        checkpoints = self.spec.checkpoints.model_copy(update={"first": 1, "pattern": self.saves.pattern})
        spec = self.spec.model_copy(update={"trainer": trainer, "checkpoints": checkpoints})
        path = place.tree / save.path
        return self.running(line_of(spec, place.tree, number=save.number or 0, path=path), place, label)

    def reports(self, recording: Recording) -> list[tuple[float, Progress]]:
        """Return what the agent would read of this recording; of a script that reports nothing, the numbers
        of its saves.
        """
        return reports_of(self.progress, self.saves, recording)

    def judged(self, arguments: str, process: Rehearsed, restored: int, seconds: float) -> Tried:
        """Wait for the first steps of a start with a restored checkpoint, and say what they show. The process
        runs on if it has resumed.
        """
        end_s = process.now_s() + seconds
        reports: list[tuple[float, Progress]] = []
        while process.now_s() < end_s:
            began_s = process.now_s()
            reports = self.reports(process.recording)
            if any(row.step > 0 for _, row in reports) or not process.is_running:
                break
            # A flood of lines is read no more often than it can be.
            threading.Event().wait(process.now_s() - began_s)
            process.wake.wait(0.2)
            process.wake.clear()
        if not process.is_running:
            process.close()
            reports = self.reports(process.recording)
        first = next((row for _, row in reports if row.step > 0), None)
        outcome = self._outcome(first, restored, process)
        tried = Tried(
            arguments,
            outcome,
            restored,
            first.step if first is not None else None,
            _line(self.spec, process, outcome),
            process.recording,
            tuple(reports),
        )
        if outcome is not Outcome.RESUMED:
            process.close()
        return tried

    def _outcome(self, first: Progress | None, restored: int, process: Rehearsed) -> Outcome:
        if first is None:
            return Outcome.FAILED if not process.is_running and process.recording.code else Outcome.SILENT
        every = self.report_every
        if first.step <= self.started_at and restored <= self.started_at:
            return Outcome.UNCLEAR
        if restored - self._doubt(restored) <= first.step <= restored + max(2, every + 1):
            return Outcome.RESUMED
        if first.step > self.started_at + every:
            return Outcome.ELSEWHERE
        return Outcome.COUNTED_ANEW if self._has_learned(first, restored) else Outcome.STARTED_OVER

    def _doubt(self, restored: int) -> int:
        """Return by how many steps a checkpoint may be older than it seems: one without a number that a
        thread or process of its own wrote is of the step at which that began, which need not be seen.
        """
        if self.saves.counts:
            return 0
        steps = [self.step_of(save, self.first_reports) for save in self.saves.saves]
        apart = min((b - a for a, b in itertools.pairwise(steps) if b > a), default=1)
        return max(0, min(apart - 1, restored - self.started_at - 1))

    def _has_learned(self, first: Progress, restored: int) -> bool:
        """Return whether the loss of a start that counts from its beginning is like that of the checkpoint,
        and unlike that of a first start.
        """
        losses = [(row.step, row.loss) for _, row in self.first_reports if row.loss is not None]
        if first.loss is None or not losses:
            return False
        new = min(losses, key=lambda one: abs(one[0] - first.step))[1]
        trained = min(losses, key=lambda one: abs(one[0] - restored))[1]
        return abs(first.loss - trained) * LEARNED < abs(first.loss - new)


def _line(spec: RunSpec, process: Rehearsed, outcome: Outcome) -> str:
    lines = [
        neutralized(clean(line.text))
        for line in process.recording.lines
        if line.stream in ("stdout", "stderr")
    ]
    if outcome is Outcome.FAILED and not process.is_running:
        return failure_line(spec, process.recording)
    says = re.compile(r"resum|restor|load|from scratch|no checkpoint|not found", re.IGNORECASE)
    return next((text for text in lines[:200] if says.search(text)), "")


def same_losses(
    reports: Sequence[tuple[float, Progress]], others: Sequence[tuple[float, Progress]], *, above: int
) -> tuple[int, int]:
    """Return at how many steps above `above` both report a loss, and at how many of them the same one."""
    known = {row.step: row.loss for _, row in others if row.loss is not None}
    both = [
        (row.loss, known[row.step])
        for _, row in reports
        if row.loss is not None and row.step > above and row.step in known
    ]
    same = sum(
        first is not None
        and second is not None
        and abs(first - second) <= LOSS_SAME * max(abs(first), abs(second))
        for first, second in both
    )
    return len(both), same
