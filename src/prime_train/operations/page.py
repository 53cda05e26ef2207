"""Collect what a run's page shows: from the store, and from outside of it: bucket, machine, provider and tracker."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from prime_train.control_plane.reconcile import read_manifests
from prime_train.control_plane.wiring.home import Home
from prime_train.core.errors import UsageError
from prime_train.operations.diagnose import diagnose_with
from prime_train.operations.machine import is_elsewhere
from prime_train.operations.metrics import READ_BYTES_MAX, Source, of_run, progress_in
from prime_train.operations.run_logs.log_tail import last_lines
from prime_train.operations.run_logs.logs import LogChoice, log_end
from prime_train.operations.run_lookup import find
from prime_train.ports import OutsideError, RunRecord, Store
from prime_train.reports.charts import Curve
from prime_train.reports.pages import CheckpointSeen, LogEnd, Outside, RunPage
from prime_train.trainers import Progress

CHECKPOINTS_MAX = 50
EVIDENCE_MAX = 100
LOG_LINES = 200
PROGRESS_LINES = 20_000
"""Lines to read of a log that holds the trainer's figures."""
CURVE_VALUE_MAX = 1e30
"""A larger value cannot be a loss, and would leave a picture without a scale."""
UNASKED = "the log and the figures of a rented machine, which are not fetched from here; `prime-train page RUN` elsewhere does"

_T = TypeVar("_T")


def run_page(home: Home, name: str) -> RunPage:
    """Return everything that is known now of the run that `name` stands for. Raises UsageError if there is no such run, and OutsideError if
    the store does not answer; any other source that cannot be read is named in the notes."""
    store = home.store()
    held = find(store, name)
    return page_of(store, held, look_outside(home, held))


def page_of(store: Store, held: RunRecord, outside: Outside | None) -> RunPage:
    """Return the page of the run as the store has it now. Raises OutsideError if the store does not answer."""
    return RunPage(held, store.now_s(), tuple(store.history(held.run.run_id)), outside)


def look_outside(home: Home, held: RunRecord, *, asks_machine: bool = True, metrics_bytes_max: int = READ_BYTES_MAX) -> Outside:
    """Return what is known of the run from outside of the store, read source by source. Raises nothing but bugs: a source that could not be
    read is named in the notes. With `asks_machine` False, no rented machine is logged in to. Of a long file of metrics, the last
    `metrics_bytes_max` bytes are read."""
    notes: list[str] = [] if asks_machine or not is_elsewhere(held.run) else [UNASKED]
    look = _Looking(notes)
    log = look("the log", lambda: log_end(home, held, LogChoice(_lines(held)), notes.append, asks_machine=asks_machine))
    name, text = (log.name, log.text) if log is not None else ("", "")
    metrics = look(
        "the trainer's metrics",
        lambda: of_run(home, held, notes.append, asks_machine=asks_machine, bytes_max=metrics_bytes_max),
    )
    metrics = metrics or Source(name, text.splitlines())
    progress = progress_in(held.run, metrics.lines)
    found = look("the diagnosis", lambda: diagnose_with(home, held, progress))
    return Outside(
        checkpoints=look("the checkpoints", lambda: _checkpoints(home, held)) or (),
        curves=tuple(_curves(progress)),
        curves_from=metrics.name,
        log=LogEnd(name, last_lines(text, LOG_LINES)),
        diagnoses=found.conclusions if found is not None else (),
        evidence=found.evidence[:EVIDENCE_MAX] if found is not None else (),
        tracker_url=found.wandb_url if found is not None else "",
        notes=tuple(dict.fromkeys(notes)),
    )


class _Looking:
    """Reads one source after the other; a failure becomes a note."""

    def __init__(self, notes: list[str]) -> None:
        self._notes = notes

    def __call__(self, what: str, looks: Callable[[], _T]) -> _T | None:
        try:
            return looks()
        except (OutsideError, UsageError) as error:
            self._notes.append(f"{what}: {error}")
            return None


def _lines(held: RunRecord) -> int:
    """Without a file of metrics, the trainer's figures are read from its log."""
    return LOG_LINES if held.run.spec.trainer.progress.file is not None else PROGRESS_LINES


def _curves(progress: Iterable[Progress]) -> Iterable[Curve]:
    """Return a curve of each figure that was reported. For a step that was trained twice, the last value counts."""
    loss, reward = {}, {}
    for made in progress:
        if made.loss is not None and abs(made.loss) <= CURVE_VALUE_MAX:
            loss[made.step] = made.loss
        if made.reward is not None and abs(made.reward) <= CURVE_VALUE_MAX:
            reward[made.step] = made.reward
    return [Curve(name, tuple(sorted(values.items()))) for name, values in (("loss", loss), ("reward", reward)) if values]


def _checkpoints(home: Home, held: RunRecord) -> tuple[CheckpointSeen, ...]:
    """Return the newest checkpoints. The clock of the machine that wrote them may be wrong: their times are kept within the run's life."""
    run, now_s = held.run, home.store().now_s()
    return tuple(
        CheckpointSeen(one.step, one.attempt, len(one.files), one.size, min(max(one.created_s, run.created_s), now_s))
        for one in read_manifests(home.bucket(), run.run_id, manifests_max=CHECKPOINTS_MAX)
    )
