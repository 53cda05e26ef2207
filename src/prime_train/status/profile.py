"""Measure how long the steps of a run take, and for trainers that report it, where their time goes and what
to change.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from prime_train.advice import Advice, Option, SettingAdvice
from prime_train.app.run_access import RunFiles
from prime_train.errors import UsageError
from prime_train.outputs.metrics import MetricsSource, of_file, of_run
from prime_train.runs.lookup import find
from prime_train.runs.run import Attempt
from prime_train.runs.store import RunRecord, Store
from prime_train.status.run_status import probe_result
from prime_train.trainers.of_spec import trainer_for, trainer_of
from prime_train.trainers.prime_rl.profile.profile import Profile
from prime_train.trainers.registry import TRAINERS
from prime_train.trainers.step_times import StepTimes, step_times


@dataclass(frozen=True)
class StepProfile:
    """Where the time of a run's steps goes. `name`: the run's id, or the file's name; `source`: where the
    metrics were read.
    """

    name: str
    source: str
    profile: Profile

    @property
    def is_known(self) -> bool:
        return self.profile.diagnosis.is_known


@dataclass(frozen=True)
class StepSummary:
    """Step times of a run in seconds; None: not known. `mean_s`: the mean of the newest attempt, including
    saves; `slow_s`: its slow end (95th percentile).
    """

    run: str
    kind: str
    steps: int
    median_s: float | None
    p90_s: float | None
    mean_s: float | None
    slow_s: float | None
    save_s: float | None
    """How long one save holds up training, in seconds."""
    save_every_s: float | None
    save_share: float | None
    probe: str = ""
    """What a probe measured, its GPU memory included, in words; empty if the run is none."""

    @property
    def is_known(self) -> bool:
        return self.median_s is not None or self.mean_s is not None


def profile_file(file: Path, *, steps: int) -> StepProfile:
    """Return the profile of the last `steps` steps in a file of metrics. Raises UsageError if the file cannot
    be read.
    """
    source = of_file(file)
    profiles = (trainer_of(kind).profile(source.lines, steps=steps) for kind in TRAINERS)
    return StepProfile(source.name, source.name, next(found for found in profiles if found is not None))


def profile_run(
    store: Store, files: RunFiles, name: str, file: Path | None, *, steps: int, warn: Callable[[str], None]
) -> StepProfile | StepSummary:
    """Return the profile of the last `steps` steps of a run, or their times if its trainer reports no more.
    `file`: the metrics to read instead of the run's own; `warn` is called with the reason if the run's
    machine cannot be read.

    Raises UsageError if there is no such run, or if its trainer reports a profile and there are no metrics.
    """
    record = find(store, name)
    spec = record.run.spec
    source = of_file(file) if file is not None else of_run(files, record, warn)
    found = trainer_for(spec).profile(source.lines if source is not None else (), steps=steps)
    if found is None:
        return summarized(
            record, step_times(source.lines, source.reader(spec), steps=steps) if source is not None else None
        )
    return StepProfile(record.run.run_id, _there(record, source).name, found)


def summarized(record: RunRecord, measured: StepTimes | None) -> StepSummary:
    """Return the step times measured in the run's metrics, together with those of the agent's heartbeats."""
    run, lease = record.run, record.lease
    heartbeat = lease.heartbeat if lease.attempt == run.attempt else None
    saves = heartbeat.saves if heartbeat is not None else None
    probe = probe_result(run)
    save_s, every_s = (saves.stall_s, saves.interval_s) if saves is not None else (None, None)
    return StepSummary(
        run=run.run_id,
        kind=run.spec.trainer.kind,
        steps=measured.steps
        if measured is not None and measured.steps
        else probe.steps
        if probe is not None
        else 0,
        median_s=measured.median_s if measured is not None else None,
        p90_s=measured.p90_s if measured is not None else None,
        mean_s=probe.step_s
        if probe is not None
        else _mean_s(
            run.current_attempt, lease.heartbeat_s, heartbeat.step if heartbeat is not None else None
        ),
        slow_s=heartbeat.step_slow_s if heartbeat is not None else run.step_slow_s,
        save_s=save_s,
        save_every_s=every_s,
        save_share=min(1.0, save_s / every_s) if save_s is not None and every_s else None,
        probe=probe.text if probe is not None else "",
    )


def _there(record: RunRecord, source: MetricsSource | None) -> MetricsSource:
    if source is None:
        written = (
            "they are written from the first step on, and saved to the bucket when an attempt ends; or give "
            "a file with "
        )
        message = f"there are no metrics of {record.run.run_id}, on a machine or in the bucket"
        raise UsageError(message, fix=Advice(written, Option(SettingAdvice.FILE)))
    return source


def _mean_s(attempt: Attempt | None, heartbeat_s: int | None, step: int | None) -> float | None:
    if attempt is None or attempt.first_step_s is None:
        return None
    last_s = heartbeat_s if heartbeat_s is not None else attempt.last_sign_s
    # The time is measured from the first step, which is therefore not counted.
    made = max(step or 0, attempt.last_step) - attempt.resumed_step - 1
    return (
        (last_s - attempt.first_step_s) / made
        if last_s is not None and made > 0 and last_s > attempt.first_step_s
        else None
    )
