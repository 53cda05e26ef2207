"""Collects the data of a run's page: from the store, and from other sources, which are the bucket, the
machine, the provider and the tracker.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from prime_train.advice import Call, Operation
from prime_train.app.machines import is_elsewhere
from prime_train.app.run_access import Observer, RunFiles
from prime_train.buckets.keys import Mark, Place, mark_prefix, marked
from prime_train.buckets.port import Bucket
from prime_train.checkpoints.manifest import Manifest
from prime_train.checkpoints.read_manifests import read_manifests
from prime_train.errors import ExternalError, UsageError
from prime_train.outputs.logs.log_tail import last_lines
from prime_train.outputs.logs.logs import LogFilter, log_end
from prime_train.outputs.metrics import READ_BYTES_MAX, MetricsSource, of_run, progress_in
from prime_train.outputs.results.of_run import last_values_with, step_results
from prime_train.pages.charts.metric_curves import curves_of
from prime_train.pages.run_page import CheckpointSummary, LogEnd, RunPage, RunSources
from prime_train.runs.lookup import find
from prime_train.runs.store import RunRecord, Store
from prime_train.status.diagnose import diagnose_with
from prime_train.text.invocations import command

CHECKPOINTS_MAX = 50
EVIDENCE_MAX = 100
LOG_LINES = 200
PROGRESS_LINES = 20_000
"""Number of lines to read of a log that holds the trainer's figures."""
_PAGE = Call(Operation.PAGE, "RUN")
UNASKED = (
    "the log and the metrics of a rented machine, which cannot be read from here; "
    f"`{command(_PAGE)}` "
    "on another machine shows them"
)

_T = TypeVar("_T")


def run_page(store: Store, files: RunFiles, observer: Observer, name: str) -> RunPage:
    """Return everything that is known now of the run that `name` stands for. Raises UsageError if there is no
    such run, and ExternalError if the store does not answer. Any other source that cannot be read is named in
    the page's notes.
    """
    record = find(store, name)
    return page_of(store, record, read_run_sources(store, files, observer, record))


def page_of(
    store: Store, record: RunRecord, sources: RunSources | None, *, now_s: int | None = None
) -> RunPage:
    """Return the page of the run as the store has it now, or had it at `now_s`. Raises ExternalError if the
    store does not answer.
    """
    return RunPage(
        record, store.now_s() if now_s is None else now_s, tuple(store.history(record.run.run_id)), sources
    )


def read_run_sources(
    store: Store,
    files: RunFiles,
    observer: Observer,
    record: RunRecord,
    *,
    metrics_bytes_max: int = READ_BYTES_MAX,
) -> RunSources:
    """Return what sources other than the store provide on the run, read one after the other. Never raises for
    a source that cannot be read, which is named in the notes instead. Of a long metrics file, only the last
    `metrics_bytes_max` bytes are read.
    """
    notes: list[str] = [] if files.machines.logs_in or not is_elsewhere(record.run) else [UNASKED]
    look = _SourceReader(notes)
    log = look("the log", lambda: log_end(store, files, record, LogFilter(_lines(record)), notes.append))
    name, text = (log.name, log.text) if log is not None else ("", "")
    metrics = look(
        "the trainer's metrics",
        lambda: of_run(files, record, notes.append, bytes_max=metrics_bytes_max),
    )
    metrics = metrics or MetricsSource(name, text.splitlines())
    progress = progress_in(record.run, metrics)
    found = look(
        "the diagnosis", lambda: diagnose_with(files.bucket, observer, record, progress, store.now_s())
    )
    last = look("the success criteria", lambda: last_values_with(files.bucket, record.run, lambda: progress))
    return RunSources(
        checkpoints=look("the checkpoints", lambda: _checkpoints(files.bucket(), record, store.now_s()))
        or (),
        curves=curves_of(progress),
        curves_from=metrics.name,
        criteria=last.criteria if last is not None else None,
        results=look("the results", lambda: step_results(files.bucket, record.run)) or (),
        log=LogEnd(name, last_lines(text, LOG_LINES)),
        diagnoses=found.conclusions if found is not None else (),
        evidence=found.evidence[:EVIDENCE_MAX] if found is not None else (),
        tracker_url=found.wandb_url if found is not None else "",
        notes=tuple(dict.fromkeys(notes)),
    )


class _SourceReader:
    """Reads one source after the other; a failure becomes a note."""

    def __init__(self, notes: list[str]) -> None:
        self._notes = notes

    def __call__(self, what: str, looks: Callable[[], _T]) -> _T | None:
        try:
            return looks()
        except (ExternalError, UsageError) as error:
            self._notes.append(f"{what}: {error}")
            return None


def _lines(record: RunRecord) -> int:
    """Return the number of log lines to read: more if the trainer writes no metrics file, because its figures
    are then read from the log.
    """
    return LOG_LINES if record.run.spec.trainer.progress.file is not None else PROGRESS_LINES


def _checkpoints(bucket: Bucket, record: RunRecord, now_s: int) -> tuple[CheckpointSummary, ...]:
    """Return the newest checkpoints. The clock of the machine that wrote them may be wrong: their times are
    kept within the run's life.
    """
    run = record.run
    marks = marked(run.run_id, [stat.key for stat in bucket.list(mark_prefix(run.run_id))])
    return tuple(
        CheckpointSummary(
            one.step,
            one.attempt,
            len(one.files),
            one.size,
            min(max(one.created_s, run.created_s), now_s),
            _mark(one, marks),
        )
        for one in read_manifests(bucket, run.run_id, manifests_max=CHECKPOINTS_MAX)
    )


def _mark(one: Manifest, marks: Mapping[Mark, frozenset[Place]]) -> str:
    if (one.step, one.attempt) in marks[Mark.DISTRUSTED]:
        return "a trainer could not load it"
    if one.finite is False:
        return f"loss not finite since step {one.not_finite_since}"
    return "proven" if (one.step, one.attempt) in marks[Mark.PROVEN] else ""
