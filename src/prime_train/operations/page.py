"""What a run's page shows: what the store knows of it, and what is looked at outside: bucket, machine, provider and tracker."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from prime_train.control_plane.reconcile import read_manifests
from prime_train.control_plane.wiring.home import Home
from prime_train.core.errors import UsageError
from prime_train.operations.diagnose import diagnose_with
from prime_train.operations.log_tail import last_lines
from prime_train.operations.logs import LogChoice, log_end
from prime_train.operations.machine import is_elsewhere
from prime_train.operations.metrics import of_run, progress_in
from prime_train.operations.run_lookup import find
from prime_train.ports import OutsideError, RunRecord, Store
from prime_train.reports.charts import Curve
from prime_train.reports.pages import CheckpointSeen, LogEnd, Outside, RunPage
from prime_train.trainers import Progress

CHECKPOINTS_MAX = 50
EVIDENCE_MAX = 100
LOG_LINES = 200
PROGRESS_LINES = 20_000
"""Of a log that has the trainer's figures in it, where there is no file of them."""
CURVE_VALUE_MAX = 1e30
"""What is larger can be no loss, and would leave a picture without a scale."""
UNASKED = "the log and the figures of a rented machine, which are not fetched from here; `prime-train page RUN` elsewhere does"

_T = TypeVar("_T")


def run_page(home: Home, name: str) -> RunPage:
    """Everything that is known of the run that `name` stands for, as of now. Raises UsageError where there is no such run, and OutsideError
    where the store does not answer; what else cannot be looked at is among its notes."""
    store = home.store()
    held = find(store, name)
    return page_of(store, held, look_outside(home, held))


def page_of(store: Store, held: RunRecord, outside: Outside | None) -> RunPage:
    """The run as the store has it now, with what was seen outside. Raises OutsideError where the store does not answer."""
    return RunPage(held, store.now_s(), tuple(store.history(held.run.run_id)), outside)


def look_outside(home: Home, held: RunRecord, *, asks_machine: bool = True) -> Outside:
    """All that lies outside of the store. It takes as long as the slowest of those that are asked. Raises nothing but bugs: what could not
    be looked at is told in the notes. `asks_machine`: a rented one is logged in to, for its log and its figures."""
    notes: list[str] = [] if asks_machine or not is_elsewhere(held.run) else [UNASKED]
    look = _Looking(notes)
    log = look("the log", lambda: log_end(home, held, LogChoice(_lines(held)), notes.append, asks_machine=asks_machine))
    name, text = (log.name, log.text) if log is not None else ("", "")
    progress_from, progress = look("the trainer's figures", lambda: _progress(home, held, name, text, notes, asks_machine)) or ("", ())
    found = look("the diagnosis", lambda: diagnose_with(home, held, progress))
    return Outside(
        checkpoints=look("the checkpoints", lambda: _checkpoints(home, held)) or (),
        curves=tuple(_curves(progress)),
        curves_from=progress_from,
        log=LogEnd(name, last_lines(text, LOG_LINES)),
        diagnoses=found.conclusions if found is not None else (),
        evidence=found.evidence[:EVIDENCE_MAX] if found is not None else (),
        tracker_url=found.wandb_url if found is not None else "",
        notes=tuple(dict.fromkeys(notes)),
    )


class _Looking:
    """Looks at one thing after the other; what fails becomes a note."""

    def __init__(self, notes: list[str]) -> None:
        self._notes = notes

    def __call__(self, what: str, looks: Callable[[], _T]) -> _T | None:
        try:
            return looks()
        except (OutsideError, UsageError) as error:
            self._notes.append(f"{what}: {error}")
            return None


def _lines(held: RunRecord) -> int:
    return LOG_LINES if held.run.spec.trainer.progress.file is not None else PROGRESS_LINES


def _progress(
    home: Home, held: RunRecord, log_name: str, log_text: str, notes: list[str], asks_machine: bool
) -> tuple[str, Sequence[Progress]]:
    """Where the trainer's figures were read, and what they are: from its file of them, or else from its log."""
    source = of_run(home, held, notes.append, asks_machine=asks_machine)
    if source is not None:
        return source.name, progress_in(held.run, source.lines)
    return log_name, progress_in(held.run, log_text.splitlines())


def _curves(progress: Iterable[Progress]) -> Iterable[Curve]:
    """Of a step that was made twice, the last value."""
    loss, reward = {}, {}
    for made in progress:
        if made.loss is not None and abs(made.loss) <= CURVE_VALUE_MAX:
            loss[made.step] = made.loss
        if made.reward is not None and abs(made.reward) <= CURVE_VALUE_MAX:
            reward[made.step] = made.reward
    return [Curve(name, tuple(sorted(values.items()))) for name, values in (("loss", loss), ("reward", reward)) if values]


def _checkpoints(home: Home, held: RunRecord) -> tuple[CheckpointSeen, ...]:
    """A machine's clock may be off: a checkpoint is drawn within the life of its run."""
    run, now_s = held.run, home.store().now_s()
    return tuple(
        CheckpointSeen(one.step, one.attempt, len(one.files), one.size, min(max(one.created_s, run.created_s), now_s))
        for one in read_manifests(home.bucket(), run.run_id, manifests_max=CHECKPOINTS_MAX)
    )
