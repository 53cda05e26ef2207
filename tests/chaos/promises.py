"""The promises that must hold at the end of every history, whatever faults it had."""

import itertools
from dataclasses import dataclass

from prime_train.buckets.keys import blob_prefix, parse_manifest_key
from prime_train.checkpoints.manifest import Manifest, missing_blobs
from prime_train.checkpoints.read_manifests import read_manifests
from prime_train.checkpoints.restore import restore
from prime_train.checkpoints.verify import verify
from prime_train.demo.train import load_checkpoint, load_corpus
from prime_train.runs.ledger import totals
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.resuming.trust import CHECKPOINTS_TRIED_MAX
from prime_train.runs.run import Run, RunState
from prime_train.spec.causes import Cause
from tests.chaos.faults import Kind, Plan, Trainer
from tests.e2e.plane import STEPS, Plane

SLACK_S = 5
"""Tolerance in seconds: the ledger has full seconds, rounded for each attempt."""
GIVE_BACK_SLACK_S = 15
"""Seconds until a machine that is given back has gone, on a busy machine."""
AWAY = frozenset({Kind.FREEZE_SERVE, Kind.SUSPEND_SERVE, Kind.FILL_DISK, Kind.UNMOUNT_BUCKET})
"""Faults during which no machine can be given back."""
MAY_END_BY = {
    Trainer.DELETES_FOLDER: (Cause.UPLOAD_FAILED,),
    Trainer.NEVER_COMPLETE: (Cause.UPLOAD_FAILED,),
    Trainer.CRASHES_AT_STEP: (Cause.TRAINER_ERROR,),
}
"""Causes by which a run of such a trainer may end, besides with success."""


@dataclass(frozen=True)
class Ending:
    """A history whose run is over. `reference`: the hash of the weights of a run without faults. `took_s`:
    the duration of the history.
    """

    plan: Plan
    here: Plane
    run: Run
    reference: str
    took_s: float


def check(ending: Ending) -> list[str]:
    """Return a description of every broken promise, with what a person needs for the analysis in the last
    line; empty if all held.
    """
    broken = [text for promise in PROMISES for text in promise(ending)]
    return [*broken, ending.here.evidence()] if broken else []


def _ends_well(ending: Ending) -> list[str]:
    """A run that succeeded has its last checkpoint in the bucket, bit for bit that of a run without faults.
    Only a trainer that breaks the contract, a budget, or a bucket that has lost every checkpoint may end it
    otherwise, and then the run says so.
    """
    run, trainer = ending.run, ending.plan.trainer
    if run.state is RunState.SUCCEEDED:
        found = _final_hash(ending)
        return (
            []
            if found == ending.reference
            else [f"succeeded, and its last checkpoint in the bucket is {found}"]
        )
    if ending.plan.budget_usd is not None and run.cause in (Cause.BUDGET_SPENT, Cause.UPLOAD_FAILED):
        return []
    if run.cause in MAY_END_BY.get(trainer, ()):
        return []
    if run.cause is Cause.CHECKPOINTS_DAMAGED and ending.plan.has(Kind.ROT_BIT):
        # The one checkpoint that `keep` leaves may be the one that was hit, and its machine lost before it
        # could send it again.
        intact = [manifest for manifest in _complete(ending) if not verify(ending.here.bucket, manifest)]
        return [f"given up, and step {manifest.step} in the bucket is intact" for manifest in intact]
    return [f"ended as {run.state.value}: {run.why}"]


def _stays_within_its_budget(ending: Ending) -> list[str]:
    """No run costs more than its budget, but for the seconds in which no watcher could give its machine back,
    or that it took to go.
    """
    run, plan = ending.run, ending.plan
    spent_usd, limit_usd = totals(run, run.ended_s or 0).usd, run.spec.budget.usd
    away_s = sum(fault.size for fault in plan.faults if fault.kind in AWAY)
    over_usd = (
        (away_s + GIVE_BACK_SLACK_S) * max((a.offer.usd_per_hour for a in run.attempts), default=0.0) / 3600
    )
    return [f"{spent_usd:.5f} of {limit_usd} dollars are spent"] if spent_usd > limit_usd + over_usd else []


def _ends_soon(ending: Ending) -> list[str]:
    """No run is begun again and again: each machine was lost to a fault, brought new steps, or counts towards
    a limit.
    """
    run, faults = ending.run, len(ending.plan.faults)
    limit = faults + 1 + run.spec.budget.restarts_without_progress + CHECKPOINTS_TRIED_MAX
    return [f"{len(run.attempts)} machines for {faults} faults"] if len(run.attempts) > limit else []


def _complete(ending: Ending) -> list[Manifest]:
    """Return the checkpoints in the bucket of which nothing is missing."""
    bucket, run_id = ending.here.bucket, ending.run.run_id
    sizes = {stat.key: stat.size for stat in bucket.list(blob_prefix(run_id))}
    return [manifest for manifest in read_manifests(bucket, run_id) if not missing_blobs(manifest, sizes)]


def _final_hash(ending: Ending) -> str:
    """Return the hash of the newest complete checkpoint in the bucket, or a text if there is none."""
    newest = max(_complete(ending), key=lambda manifest: (manifest.step, manifest.attempt), default=None)
    if newest is None or newest.step < STEPS:
        return f"at step {newest.step if newest else 0} of {STEPS}"
    return _weights(ending, newest)


def _weights(ending: Ending, manifest: Manifest) -> str:
    place = parse_manifest_key(ending.run.run_id, manifest.key)
    assert place is not None
    into = ending.here.folder / "restored"
    restore(
        ending.here.bucket,
        ending.run.run_id,
        ResumePoint(step=place[0], attempt=place[1], key=manifest.key),
        into,
    )
    return load_checkpoint(into, place[0], len(load_corpus()[2])).digest()


def _loses_nothing(ending: Ending) -> list[str]:
    """No attempt begins before a step that an earlier one had been told was durable, and no two attempts have
    the same identity.
    """
    attempts, may_go_back = ending.run.attempts, ending.plan.has(Kind.ROT_BIT)
    broken = [
        f"attempt {later.number} resumed from step {later.resumed_step}, and step {earlier.durable_step} was "
        "durable"
        for earlier, later in itertools.pairwise(attempts)
        if later.resumed_step < earlier.durable_step and not may_go_back
    ]
    if len({getattr(attempt, "identity", attempt.number) for attempt in attempts}) < len(attempts):
        broken.append("two attempts have the same identity")
    return broken


def _pays_what_was_used(ending: Ending) -> list[str]:
    """No machine is left, and the ledger's seconds are those that really passed, whatever clocks showed: at
    most one machine at a time is wanted, and each lost one may overlap with the next until it has ended.
    """
    run = ending.run
    spent = totals(run, run.ended_s or 0)
    limit_s = len(run.attempts) * (ending.took_s + SLACK_S)
    broken = (
        [f"{spent.paid_s} s in the ledger of {len(run.attempts)} machines in {ending.took_s:.0f} s"]
        if spent.paid_s > limit_s
        else []
    )
    if spent.paid_s <= 0 or any(attempt.ended_s is None for attempt in run.attempts):
        broken.append(f"{spent.paid_s} s in the ledger, and not every attempt is settled")
    if ending.here.processes():
        broken.append(f"processes are left: {ending.here.processes()}")
    return broken


def _is_left_alone(ending: Ending) -> list[str]:
    """Wrong clocks alone cost a run nothing: it keeps its only machine."""
    causes = [attempt.cause for attempt in ending.run.attempts]
    return [f"clocks alone cost it {causes}"] if ending.plan.is_harmless and len(causes) != 1 else []


PROMISES = (
    _ends_well,
    _loses_nothing,
    _pays_what_was_used,
    _is_left_alone,
    _stays_within_its_budget,
    _ends_soon,
)
