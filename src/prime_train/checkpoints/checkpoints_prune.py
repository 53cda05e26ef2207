"""Delete the checkpoints that need not be kept, by the run's retention policy or by a policy that changes
parts of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from prime_train.advice import Advice, Option, SettingAdvice
from prime_train.buckets.keys import descendant_key, parse_descendant_key
from prime_train.checkpoints.descendants import remove_record, unneeded_records
from prime_train.checkpoints.lookup import Found
from prime_train.checkpoints.parallel import in_parallel
from prime_train.checkpoints.prune import Pruning, carry_out, plan
from prime_train.checkpoints.retention import RetentionPolicy
from prime_train.errors import ExternalError, UsageError
from prime_train.runs import change as c
from prime_train.runs.requests import ask
from prime_train.runs.run import Change, Run
from prime_train.runs.wire import Deletions
from prime_train.spec.choices import By


@dataclass(frozen=True)
class PrunePlan:
    """What pruning would remove. `why_kept`: the reason for each checkpoint that stays, by manifest key;
    `released`: keys of the records of descendants that no longer use content of the run.
    """

    found: Found
    pruning: Pruning
    why_kept: Mapping[str, str]
    released: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.pruning.checkpoints or self.pruning.blobs or self.released)


def descendant_of(planned: PrunePlan, key: str) -> str:
    """Return the id of the run to whose record `key` belongs."""
    place = parse_descendant_key(planned.found.run_id, key)
    return place[0] if place is not None else ""


def plan_pruning(
    found: Found,
    *,
    keep: int | None = None,
    every_steps: int | None = None,
    best: int | None = None,
    best_by: By | None = None,
) -> PrunePlan:
    """Return what pruning would remove, without removing anything. Arguments that are given replace that part
    of the run's policy: `keep` newest checkpoints, multiples of `every_steps`, and the best checkpoints with
    the metric that ranks them. Raises UsageError if the policy cannot be read and `keep` is not given.
    """
    policy = found.policy
    if policy is None:
        if keep is None:
            fix = Advice("set what to keep: ", Option(SettingAdvice.KEEP, "N"))
            raise UsageError(
                f"the policy of {found.run_id} cannot be read: its spec.json is missing or damaged", fix=fix
            )
        policy = RetentionPolicy(keep)
    policy = replace(
        policy,
        keep=policy.keep if keep is None else keep,
        every_steps=policy.every_steps if every_steps is None else every_steps,
        best=policy.best if best is None else best,
        best_by=policy.best_by if best_by is None else best_by,
    )
    released = tuple(
        unneeded_records(found.bucket, found.run_id, is_stored=found.is_stored, now_s=found.now_s)
    )
    places = {parse_descendant_key(found.run_id, key) for key in released}
    descendants = tuple(
        manifest for manifest in found.catalog.descendants if (manifest.run, manifest.step) not in places
    )
    catalog = replace(found.catalog, descendants=descendants)
    pruning = plan(
        catalog, policy, committed_step=found.committed_step, pinned=found.protected, now_s=found.now_s
    )
    return PrunePlan(found, pruning, found.why_kept(policy), released)


def prune(planned: PrunePlan) -> str:
    """Delete the manifests one by one, because their order matters, and then the chunks in parallel. A run
    that was started from content of another one releases it with the manifest that refers to it. Return why
    the run's history does not say so; empty: it does, or the store does not have the run.
    """
    doomed: list[str] = []
    bucket, found = planned.found.bucket, planned.found
    for key in planned.released:
        remove_record(bucket, found.run_id, key)
    # That chunks are kept is in the plan, and not to be logged again.
    carry_out(bucket, replace(planned.pruning, blobs_kept=""), remove=doomed.append)
    gone = {kept.key for kept in planned.pruning.checkpoints}
    for manifest in found.catalog.manifests:
        if manifest.key in gone and manifest.blobs_of:
            bucket.delete(descendant_key(manifest.blobs_of, found.run_id, manifest.step))
    in_parallel(bucket.delete, doomed)
    return _tell(planned, sum(planned.pruning.sizes.get(key, 0) for key in doomed))


def _tell(planned: PrunePlan, chunk_bytes: int) -> str:
    """Say in the run's history what was deleted. A run that has ended is looked at once more, so that its
    tracker is told as well.
    """
    found, gone = planned.found, planned.pruning.checkpoints
    if found.record is None or found.store is None or not (gone or chunk_bytes):
        return ""
    deleted = Deletions(
        checkpoints=len(gone),
        newest_step=max((kept.step for kept in gone), default=0),
        chunk_bytes=chunk_bytes,
    )

    def pruned(run: Run, now_s: int) -> Change:
        is_told = run.spec.wandb is not None and run.is_at_rest and run.cleanup_s is None
        return c.pruned(run, deleted, now_s, cleanup_s=now_s if is_told else run.cleanup_s)

    try:
        ask(found.store, found.run_id, pruned)
    except (UsageError, ExternalError) as error:
        return str(error)
    return ""
