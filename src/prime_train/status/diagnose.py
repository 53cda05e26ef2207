"""Explain what happened to a run, from all available evidence."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from prime_train.app.run_access import Observer, RunFiles
from prime_train.buckets.keys import evidence_prefix
from prime_train.buckets.port import Bucket
from prime_train.errors import ExternalError
from prime_train.outputs.metrics import of_run, progress_in
from prime_train.runs.links import entity_of, page_url
from prime_train.runs.lookup import find
from prime_train.runs.run import ACTIVE_STATES, Run
from prime_train.runs.store import RunRecord, Store
from prime_train.runs.verdict import TrackerObserved, Verdict, judge
from prime_train.status.diagnosis.diagnosis_model import Diagnosis, Facts
from prime_train.status.diagnosis.explanations import diagnosis_of
from prime_train.tracker.tracked_run import TrackerRun
from prime_train.tracker.wandb_client import ENTITY, KEY, wandb_from
from prime_train.trainers.of_spec import Progress
from prime_train.watch.observe import gather, look

EVIDENCE_MAX = 1000


@dataclass(frozen=True)
class RunDiagnosis:
    """The diagnosis of a run. `facts`: the observations; `conclusions`: what follows from them, most
    important first; `evidence`: the bucket keys of files that the run's attempts left; `wandb_url`: the run's
    page in W&B, empty if it has none.
    """

    facts: Facts
    conclusions: tuple[Diagnosis, ...]
    evidence: tuple[str, ...]
    wandb_url: str


def diagnose(
    store: Store, files: RunFiles, observer: Observer, name: str, warn: Callable[[str], None]
) -> RunDiagnosis:
    """Diagnose a run from its attempts, heartbeats, provider, metrics, evidence and tracker. `warn` is called
    with a message for each source that could not be read. Raises UsageError if there is no such run, and
    ExternalError if the store or the bucket does not answer.
    """
    record = find(store, name)
    progress = _progress(files, record, warn)
    return diagnose_with(files.bucket, observer, record, progress, store.now_s())


def diagnose_with(
    bucket: Callable[[], Bucket],
    observer: Observer,
    record: RunRecord,
    progress: Iterable[Progress],
    now_s: int,
) -> RunDiagnosis:
    """Diagnose as `diagnose` does, with the trainer's metrics read already. `now_s`: the store's time."""
    run = record.run
    tracker, tracker_error = _tracked(observer.environment, run)
    facts = Facts(
        record,
        now_s,
        _verdict(observer, record, tracker, now_s),
        tracker,
        tracker_error,
        {made.step: made.reward for made in progress if made.reward is not None},
        served=run.is_over or observer.is_served(),
    )
    evidence = tuple(stat.key for stat in islice(bucket().list(evidence_prefix(run.run_id)), EVIDENCE_MAX))
    known = tracker.url if tracker is not None else ""
    url = known or page_url(run, entity=observer.environment.get(ENTITY, ""))
    return RunDiagnosis(facts, tuple(diagnosis_of(facts)), evidence, url)


def _verdict(observer: Observer, record: RunRecord, tracker: TrackerRun | None, now_s: int) -> Verdict | None:
    """Return the verdict that a watcher would reach now, or None if no attempt holds the lease."""
    if record.run.state not in ACTIVE_STATES or record.run.current_attempt is None:
        return None
    context = observer.context()
    evidence = gather(context, record, look(context), now_s)
    if tracker is not None:
        evidence = replace(evidence, tracker=TrackerObserved(tracker.step or 0, tracker.received_s))
    return judge(record.run, evidence, now_s)


def _tracked(environment: Mapping[str, str], run: Run) -> tuple[TrackerRun | None, str]:
    """Return W&B's data of the run, and the reason why W&B could not be queried ("" if it could). The data is
    None if the run does not use W&B, or W&B has no data from it or cannot be queried.
    """
    if run.spec.wandb is None:
        return None, ""
    wandb = wandb_from(environment)
    if wandb is None:
        return None, f"not checked, because {KEY} is not set"
    try:
        seen = wandb.run(run.spec.wandb.project, run.run_id, entity=entity_of(run))
    except ExternalError as error:
        return None, str(error)
    return (seen if seen is not None and seen.received_s else None), ""


def _progress(files: RunFiles, record: RunRecord, warn: Callable[[str], None]) -> Sequence[Progress]:
    """Return the progress in the trainer's own metrics. Empty if the metrics cannot be read."""
    try:
        source = of_run(files, record, warn)
    except ExternalError as error:
        warn(f"the trainer's metrics cannot be read: {error}")
        return ()
    return progress_in(record.run, source) if source is not None else ()
