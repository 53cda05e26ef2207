"""The promises that must hold at the end of every history, whatever faults it had."""

import itertools
from dataclasses import dataclass

from prime_train.checkpoints.restore import restore
from prime_train.control_plane.reconcile import read_manifests
from prime_train.core.causes import Cause
from prime_train.core.keys import blob_prefix, parse_manifest_key
from prime_train.core.ledger import totals
from prime_train.core.manifest import Manifest, ResumePoint, missing_blobs
from prime_train.core.run import Run, RunState
from prime_train.demo.train import load_checkpoint, load_corpus
from tests.chaos.faults import Plan
from tests.e2e.plane import STEPS, Plane

SLACK_S = 5
"""Tolerance in seconds: the ledger has full seconds, rounded for each attempt."""


@dataclass(frozen=True)
class Ending:
    """A history whose run is over. `reference`: the hash of the weights of a run without faults. `took_s`: the duration of the history."""

    plan: Plan
    here: Plane
    run: Run
    reference: str
    took_s: float


def check(ending: Ending) -> list[str]:
    """Return a description of every broken promise, with what a person needs for the analysis in the last line; empty if all held."""
    broken = [text for promise in (_ends_well, _loses_nothing, _pays_what_was_used, _is_left_alone) for text in promise(ending)]
    return [*broken, ending.here.evidence()] if broken else []


def _ends_well(ending: Ending) -> list[str]:
    """A run that succeeded has its last checkpoint in the bucket, bit for bit that of a run without faults. Only a trainer that deletes its
    own checkpoints may end otherwise, and then reports it."""
    run = ending.run
    if run.state is RunState.SUCCEEDED:
        found = _final_hash(ending)
        return [] if found == ending.reference else [f"succeeded, and its last checkpoint in the bucket is {found}"]
    if ending.plan.trainer_deletes_folder and run.cause is Cause.UPLOAD_FAILED:
        return []
    return [f"ended as {run.state.value}: {run.why}"]


def _final_hash(ending: Ending) -> str:
    """Return the hash of the newest complete checkpoint in the bucket, or a text if there is none."""
    bucket, run_id = ending.here.bucket, ending.run.run_id
    sizes = {stat.key: stat.size for stat in bucket.list(blob_prefix(run_id))}
    complete = [manifest for manifest in read_manifests(bucket, run_id) if not missing_blobs(manifest, sizes)]
    newest = max(complete, key=lambda manifest: (manifest.step, manifest.attempt), default=None)
    if newest is None or newest.step < STEPS:
        return f"at step {newest.step if newest else 0} of {STEPS}"
    return _weights(ending, newest)


def _weights(ending: Ending, manifest: Manifest) -> str:
    place = parse_manifest_key(ending.run.run_id, manifest.key)
    assert place is not None
    into = ending.here.folder / "restored"
    restore(ending.here.bucket, ending.run.run_id, ResumePoint(step=place[0], attempt=place[1], key=manifest.key), into)
    return load_checkpoint(into, place[0], len(load_corpus()[2])).digest()


def _loses_nothing(ending: Ending) -> list[str]:
    """No attempt begins before a step that an earlier one had been told was durable, and no two attempts have the same identity."""
    attempts = ending.run.attempts
    broken = [
        f"attempt {later.number} resumed from step {later.resumed_step}, and step {earlier.durable_step} was durable"
        for earlier, later in itertools.pairwise(attempts)
        if later.resumed_step < earlier.durable_step
    ]
    if len({getattr(attempt, "identity", attempt.number) for attempt in attempts}) < len(attempts):
        broken.append("two attempts have the same identity")
    return broken


def _pays_what_was_used(ending: Ending) -> list[str]:
    """No machine is left, and the ledger's seconds are those that really passed, whatever clocks showed: at most one machine at a time is
    wanted, and each lost one may overlap with the next until it has ended."""
    run = ending.run
    spent = totals(run, run.ended_s or 0)
    limit_s = len(run.attempts) * (ending.took_s + SLACK_S)
    broken = [f"{spent.paid_s} s in the ledger of {len(run.attempts)} machines in {ending.took_s:.0f} s"] if spent.paid_s > limit_s else []
    if spent.paid_s <= 0 or any(attempt.ended_s is None for attempt in run.attempts):
        broken.append(f"{spent.paid_s} s in the ledger, and not every attempt is settled")
    if ending.here.processes():
        broken.append(f"processes are left: {ending.here.processes()}")
    return broken


def _is_left_alone(ending: Ending) -> list[str]:
    """Wrong clocks alone cost a run nothing: it keeps its only machine."""
    causes = [attempt.cause for attempt in ending.run.attempts]
    return [f"clocks alone cost it {causes}"] if ending.plan.is_harmless and len(causes) != 1 else []
