"""Look up a run and its checkpoints, in the store and the bucket or, if the store does not have the run, in
the bucket alone.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypedDict

from prime_train.advice import Advice, Call, Operation
from prime_train.app.run_access import StoredRuns
from prime_train.buckets.keys import Mark, is_run_id, latest_key, manifest_prefix, spec_key
from prime_train.buckets.port import Bucket, small_object
from prime_train.checkpoints.catalog import Catalog, Reader
from prime_train.checkpoints.manifest import Manifest
from prime_train.checkpoints.retention import RetentionPolicy, why_kept
from prime_train.clock import wall_s
from prime_train.errors import UsageError
from prime_train.runs.figures import figures
from prime_train.runs.lookup import find
from prime_train.runs.run import Lineage, Run
from prime_train.runs.store import RunRecord, Store
from prime_train.runs.stored_forms import in_todays_form
from prime_train.runs.stored_json import load
from prime_train.spec.checkpoint_names import CheckpointNames
from prime_train.spec.spec import CheckpointSpec, RunSpec

NEAREST_MAX = 4
FULL_ID = "write the complete id, and the bucket's prefix if it has one"


@dataclass(frozen=True)
class Found:
    """A run in a bucket. `record`: its record in the store, None if the store does not have it. `now_s`: the
    store's time in seconds, or this machine's if there is no store. `is_stored`: whether the store has the
    run with an id; without a store, any run may exist.
    """

    run_id: str
    url: str
    bucket: Bucket
    record: RunRecord | None
    now_s: int
    is_stored: Callable[[str], bool] = field(default=lambda run_id: True, repr=False)
    store: Store | None = field(default=None, repr=False)
    """The store; None if there is none."""

    @cached_property
    def catalog(self) -> Catalog:
        """The catalogue of the run's checkpoints, read once and then cached."""
        return Reader(self.bucket, self.run_id).catalog()

    @property
    def committed_step(self) -> int:
        """The newest committed step; checkpoints from this step on are always kept. If the run is not in the
        store, the step of the newest complete checkpoint, or 0 if there is none.
        """
        if self.record is not None:
            return figures(self.record.run, self.record.lease, self.now_s).durable_step
        complete = self.catalog.complete()
        return complete[0].step if complete else 0

    @property
    def protected(self) -> Mapping[str, str]:
        """The reason, by manifest key, for each checkpoint that is kept regardless of the retention policy.

        That is the checkpoint an active run resumed from, which is restored again if the attempt is lost. If
        the run is not in the store, it is the newest two complete checkpoints.
        """
        if self.record is None:
            return {manifest.key: "newest two" for manifest in self.catalog.complete()[:2]}
        run = self.record.run
        return {run.resume.key: "resumed from"} if run.resume is not None and not run.is_over else {}

    @cached_property
    def launched(self) -> tuple[RunSpec | None, Lineage | None]:
        """The run's spec, None if it cannot be read, and where the run was started from, None if that was
        step 0 or is not known.
        """
        if self.record is not None:
            return self.record.run.spec, self.record.run.lineage
        content = self.bucket.get(spec_key(self.run_id))
        return _launched(content.data) if content is not None else (None, None)

    @property
    def rules(self) -> CheckpointSpec | None:
        """The checkpoint settings of the run's spec, or None if the spec cannot be read."""
        spec = self.launched[0]
        return spec.checkpoints if spec is not None else None

    @property
    def policy(self) -> RetentionPolicy | None:
        return RetentionPolicy.of(self.rules) if self.rules is not None else None

    @property
    def names(self) -> CheckpointNames | None:
        """How the run names its checkpoints, or None if the spec cannot be read."""
        spec = self.launched[0]
        return CheckpointNames.of(spec) if spec is not None else None

    def why_kept(self, policy: RetentionPolicy) -> Mapping[str, str]:
        """Return the reason for each checkpoint that is kept under `policy`, by manifest key."""
        pinned = self.catalog.pinned
        reasons = dict(
            why_kept(self.catalog.kept(policy), policy, committed_step=self.committed_step, pinned=pinned)
        )
        here = self.protected.keys() & {manifest.key for manifest in self.catalog.manifests}
        return reasons | {key: self.protected[key] for key in here if key not in reasons}


def look(among: StoredRuns, run: str, *, below: Callable[[str], str] = manifest_prefix) -> Found:
    """Return the run with the id `run`. The start of an id is enough if the run is in the store; another run
    must have an object below the prefix that `below` returns for its id, by default a checkpoint. Raises
    UsageError if there is no such run.
    """
    url, bucket, store = among.url, among.bucket, among.store
    run_id, record = _resolve(store, bucket, run, url, below)
    if store is None:
        return Found(run_id, url, bucket, record, wall_s())
    return Found(
        run_id, url, bucket, record, store.now_s(), lambda other: store.load(other) is not None, store
    )


def of_step(found: Found, step: int) -> Manifest:
    """Return the checkpoint of `step`. If there are several, complete ones are preferred, then the newest
    attempt's. Raises UsageError if there is none.
    """
    complete = {manifest.key for manifest in found.catalog.complete()}
    of_it = [manifest for manifest in found.catalog.manifests if manifest.step == step]
    if not of_it:
        raise UsageError(
            f"{found.run_id} has no checkpoint of step {step} in {found.url}",
            fix=_nearest(found.catalog, step),
        )
    return max(of_it, key=lambda manifest: (manifest.key in complete, manifest.attempt))


def newest(found: Found, *, before_step: int | None = None) -> Manifest:
    """Return the newest complete checkpoint or, if `before_step` is given, the newest one of a lower step.
    Raises UsageError if there is none.
    """
    complete = found.catalog.complete()
    older = [manifest for manifest in complete if before_step is None or manifest.step < before_step]
    if older:
        return older[0]
    below = f" before step {before_step}" if complete else ""
    fix = f"the oldest complete one is step {complete[-1].step}" if complete else ""
    raise UsageError(f"{found.run_id} has no complete checkpoint{below} in {found.url}", fix=fix)


def verifying(found: Found) -> Advice:
    """Return the advice to find out which checkpoints are undamaged."""
    return Advice(Call(Operation.VERIFY, found.run_id), " shows which are intact")


class CheckpointRow(TypedDict):
    """A manifest in the bucket, as lists of checkpoints show it. `committed`: whether the control plane has
    accepted this or a later checkpoint; None if the run is not in the store.

    `kept`: the reason why retention keeps it; None if it may be deleted or the policy cannot be read.
    `stored_bytes`: the size of its chunks, each counted once. `proven`: whether a trainer has resumed from it
    and made a step; `distrusted`: whether one could not; `finite`: whether the last loss before it was a
    finite number, None if that is unknown, and `not_finite_since` the step from which on it was not.
    `attempt` is 0 for the checkpoint that the run was started from; `blobs_of` is then the run that has its
    content, and otherwise empty.
    """

    step: int
    attempt: int
    files: int
    size_bytes: int
    stored_bytes: int
    complete: bool
    missing: int
    committed: bool | None
    latest: bool
    pinned: bool
    proven: bool
    distrusted: bool
    finite: bool | None
    not_finite_since: int | None
    kept: str | None
    created_s: int
    key: str
    blobs_of: str


def rows_of(found: Found) -> list[CheckpointRow]:
    """Return a row for every manifest of the run in the bucket, newest first."""
    pointer = _latest(found)
    why = found.why_kept(found.policy) if found.policy is not None else {}
    return [
        CheckpointRow(
            step=manifest.step,
            attempt=manifest.attempt,
            files=len(manifest.files),
            size_bytes=manifest.size,
            stored_bytes=sum(manifest.blobs().values()),
            complete=not (missing := found.catalog.missing(manifest)),
            missing=len(missing),
            committed=manifest.step <= found.committed_step if found.record is not None else None,
            latest=manifest.key == pointer,
            pinned=manifest.key in found.catalog.pinned,
            proven=found.catalog.has(Mark.PROVEN, manifest),
            distrusted=found.catalog.has(Mark.DISTRUSTED, manifest),
            finite=manifest.finite,
            not_finite_since=manifest.not_finite_since,
            kept=why.get(manifest.key),
            created_s=manifest.created_s,
            key=manifest.key,
            blobs_of=manifest.blobs_of,
        )
        for manifest in found.catalog.manifests
    ]


def _latest(found: Found) -> str | None:
    content = small_object(found.bucket, latest_key(found.run_id))
    try:
        parsed = json.loads(content.data) if content is not None else None
        return str(parsed["manifest"]) if isinstance(parsed, dict) and "manifest" in parsed else None
    except (ValueError, RecursionError):
        return None


def _resolve(
    store: Store | None, bucket: Bucket, name: str, url: str, below: Callable[[str], str]
) -> tuple[str, RunRecord | None]:
    record = store.load(name) if store is not None else None
    if record is not None:
        return name, record
    if is_run_id(name) and any(True for _ in bucket.list(below(name))):
        return name, None
    if store is None:
        raise UsageError(f"there is {_missing(below)} of a run {name} in {url}", fix=FULL_ID)
    try:
        record = find(store, name)
    except UsageError as error:
        fix = error.fix if store.list_runs() else FULL_ID
        raise UsageError(
            f"{error}, and {url} has {_missing(below)} of such a run", fix=fix, code=error.code
        ) from error
    return record.run.run_id, record


def _missing(below: Callable[[str], str]) -> str:
    return "no checkpoint" if below is manifest_prefix else "nothing"


def _launched(data: bytes) -> tuple[RunSpec | None, Lineage | None]:
    try:
        values = in_todays_form(Run, json.loads(data))
        spec = RunSpec.model_validate(values["spec"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None, None
    try:
        lineage = load(Lineage, json.dumps(values.get("lineage")))
    except ValueError:
        return spec, None
    return spec, lineage if lineage.ancestors else None


def _nearest(catalog: Catalog, step: int) -> str:
    nearest_steps = sorted(
        {manifest.step for manifest in catalog.manifests}, key=lambda other: abs(other - step)
    )[:NEAREST_MAX]
    match sorted(nearest_steps):
        case []:
            return "the run has no checkpoint"
        case [only]:
            return f"its only checkpoint is of step {only}"
        case steps:
            return f"the nearest steps are {', '.join(map(str, steps))}"
