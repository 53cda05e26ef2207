"""Look up a run and its checkpoints, in the store and the bucket or, if the store does not have the run, in the bucket alone."""

import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict
from urllib.parse import unquote, urlsplit

from prime_train.checkpoints.catalog import Catalog, Reader
from prime_train.control_plane.wiring.home import BUCKET, Home, wall_s
from prime_train.control_plane.wiring.providers import STORE
from prime_train.core.errors import UsageError
from prime_train.core.keys import is_run_id, latest_key, manifest_prefix, spec_key
from prime_train.core.manifest import Manifest
from prime_train.core.retention import Policy, why_kept
from prime_train.core.spec import CheckpointSpec, RunSpec
from prime_train.operations.run_lookup import find
from prime_train.ports import Bucket, RunRecord, Store

if TYPE_CHECKING:
    from collections.abc import Mapping

NEAR_MAX = 4
WHOLE = "write the whole id, and the bucket's prefix if it has one"


@dataclass(frozen=True)
class Found:
    """A run in a bucket. `held`: its record in the store, None if the store does not have it. `now_s`: the store's time in seconds, or this
    machine's if there is no store."""

    run_id: str
    url: str
    bucket: Bucket
    held: RunRecord | None
    now_s: int

    @cached_property
    def catalog(self) -> Catalog:
        """The catalogue of the run's checkpoints, read once and then cached."""
        return Reader(self.bucket, self.run_id).catalog()

    @property
    def committed_step(self) -> int:
        """The newest committed step; checkpoints from this step on are always kept. If the run is not in the store, the step of the newest
        complete checkpoint, or 0 if there is none."""
        if self.held is not None:
            return max(self.held.run.durable_step, self.held.lease.committed_step)
        complete = self.catalog.complete()
        return complete[0].step if complete else 0

    @property
    def held_back(self) -> "Mapping[str, str]":
        """The reason, by manifest key, for each checkpoint that is kept regardless of the retention policy.

        That is the checkpoint an active run resumed from, which is restored again if the attempt is lost. If the run is not in the store,
        it is the newest two complete checkpoints.
        """
        if self.held is None:
            return {manifest.key: "newest two" for manifest in self.catalog.complete()[:2]}
        run = self.held.run
        return {run.resume.key: "resumed from"} if run.resume is not None and not run.is_over else {}

    @cached_property
    def rules(self) -> CheckpointSpec | None:
        """The checkpoint settings of the run's spec, or None if the spec cannot be read."""
        if self.held is not None:
            return self.held.run.spec.checkpoints
        content = self.bucket.get(spec_key(self.run_id))
        return _rules(content.data) if content is not None else None

    @property
    def policy(self) -> Policy | None:
        return Policy.of(self.rules) if self.rules is not None else None

    @property
    def pattern(self) -> str | None:
        """The pattern by which the run names checkpoint folders, or None if the spec cannot be read."""
        return self.rules.pattern if self.rules is not None else None

    def why_kept(self, policy: Policy) -> "Mapping[str, str]":
        """Return the reason for each checkpoint that is kept under `policy`, by manifest key."""
        pinned = self.catalog.pinned
        said = dict(why_kept(self.catalog.kept(policy), policy, committed_step=self.committed_step, pinned=pinned))
        here = self.held_back.keys() & {manifest.key for manifest in self.catalog.manifests}
        return said | {key: self.held_back[key] for key in here if key not in said}


def look(run: str, url: str | None, home: Home | None = None) -> Found:
    """Return the run with the id `run`, in the bucket at `url` or by default in that of `home`. The start of an id is enough if the run is
    in the store. `home`: by default the one that the environment names. Raises UsageError if there is no such run or bucket."""
    home = home or Home.of(os.environ)
    bucket = _open(home, url)
    store = home.store() if home.root.is_dir() or home.environment.get(STORE) else None
    run_id, held = _resolve(store, bucket, run, url or home.bucket_url)
    return Found(run_id, url or home.bucket_url, bucket, held, store.now_s() if store is not None else wall_s())


def of_step(found: Found, step: int) -> Manifest:
    """Return the checkpoint of `step`. If there are several, complete ones are preferred, then the newest attempt's. Raises UsageError if
    there is none."""
    whole = {manifest.key for manifest in found.catalog.complete()}
    of_it = [manifest for manifest in found.catalog.manifests if manifest.step == step]
    if not of_it:
        raise UsageError(f"{found.run_id} has no checkpoint of step {step} in {found.url}", fix=_nearest(found.catalog, step))
    return max(of_it, key=lambda manifest: (manifest.key in whole, manifest.attempt))


def newest(found: Found, *, before_step: int | None = None) -> Manifest:
    """Return the newest complete checkpoint, if `before_step` is given of a step below it. Raises UsageError if there is none."""
    complete = found.catalog.complete()
    older = [manifest for manifest in complete if before_step is None or manifest.step < before_step]
    if older:
        return older[0]
    below = f" before step {before_step}" if complete else ""
    fix = f"the oldest complete one is step {complete[-1].step}" if complete else ""
    raise UsageError(f"{found.run_id} has no complete checkpoint{below} in {found.url}", fix=fix)


class Row(TypedDict):
    """One manifest in the bucket. `committed`: whether the control plane has accepted this or a later checkpoint; None if the run is not in
    the store.

    `kept`: the reason why retention keeps it; None if it may be deleted or the policy cannot be read. `stored_bytes`: the size of its
    chunks, each counted once.
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
    kept: str | None
    created_s: int
    key: str


def rows_of(found: Found) -> list[Row]:
    """Return a row for every manifest of the run in the bucket, newest first."""
    pointer = _latest(found)
    why = found.why_kept(found.policy) if found.policy is not None else {}
    return [
        Row(
            step=manifest.step,
            attempt=manifest.attempt,
            files=len(manifest.files),
            size_bytes=manifest.size,
            stored_bytes=sum(manifest.blobs().values()),
            complete=not (missing := found.catalog.missing(manifest)),
            missing=len(missing),
            committed=manifest.step <= found.committed_step if found.held is not None else None,
            latest=manifest.key == pointer,
            pinned=manifest.key in found.catalog.pinned,
            kept=why.get(manifest.key),
            created_s=manifest.created_s,
            key=manifest.key,
        )
        for manifest in found.catalog.manifests
    ]


def _latest(found: Found) -> str | None:
    content = found.bucket.get(latest_key(found.run_id))
    try:
        said = json.loads(content.data) if content is not None else None
        return str(said["manifest"]) if isinstance(said, dict) and "manifest" in said else None
    except ValueError:
        return None


def _open(home: Home, url: str | None) -> Bucket:
    """Open the bucket at `url`, or by default that of `home`. Raises UsageError if a file:// folder does not exist, instead of creating an
    empty bucket."""
    from prime_train.adapters.bucket import open_bucket

    parts = urlsplit(url or home.bucket_url)
    if parts.scheme == "file" and not Path(unquote(parts.path)).is_dir():
        raise UsageError(f"there is no bucket at {url or home.bucket_url}", fix=f"name it with --bucket URL, or {BUCKET}")
    return open_bucket(url) if url else home.bucket()


def _resolve(store: Store | None, bucket: Bucket, name: str, url: str) -> tuple[str, RunRecord | None]:
    held = store.load(name) if store is not None else None
    if held is not None:
        return name, held
    if is_run_id(name) and any(True for _ in bucket.list(manifest_prefix(name))):
        return name, None
    if store is None:
        raise UsageError(f"there is no checkpoint of a run {name} in {url}", fix=WHOLE)
    try:
        held = find(store, name)
    except UsageError as error:
        fix = error.fix if store.list_runs() else WHOLE
        raise UsageError(f"{error}, and no checkpoint of one in {url}", fix=fix, code=error.code) from error
    return held.run.run_id, held


def _rules(data: bytes) -> CheckpointSpec | None:
    try:
        return RunSpec.model_validate(json.loads(data)["spec"]).checkpoints
    except (ValueError, KeyError, TypeError):
        return None


def _nearest(catalog: Catalog, step: int) -> str:
    near = sorted({manifest.step for manifest in catalog.manifests}, key=lambda other: abs(other - step))[:NEAR_MAX]
    match sorted(near):
        case []:
            return "it has none at all"
        case [only]:
            return f"its only one is of step {only}"
        case steps:
            return f"the nearest are {', '.join(map(str, steps))}"
