"""What is known of a checkpoint beside its manifest: whether a trainer could resume from it.

A checkpoint is proven once an attempt resumed from it and made a step. It is distrusted if an attempt
restored it and ended before its first step, unless the reason was clearly outside the trainer: then the
machine or a service is to blame. To distrust a good checkpoint costs the steps since the one before; to trust
a bad one costs the run. So the table names what is not the checkpoint's fault, and all else is. What speaks
of the config or the code (a refused argument, a tensor of another size) counts against a checkpoint only once
an attempt has resumed with them and made a step: an attempt that began at step 0 says nothing of how the
trainer is told to resume, and how it loads.

Only the control plane says which is which, because it sees the steps and the ends of all attempts: a machine
that has been replaced cannot speak well or ill of the checkpoints of another one.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

from prime_train.buckets.keys import Place
from prime_train.runs.run import Attempt, Distrusted, Lease, Run
from prime_train.runs.wire import Heartbeat, Phase
from prime_train.spec.causes import Action, Cause

CHECKPOINTS_TRIED_MAX = 4
"""Number of checkpoints that are tried, each in an attempt of its own, until the run is stopped because none
can be resumed from.
"""
TRIED_ALONE_MAX = 2
"""Number of attempts that may fail to resume in a row before the run is stopped because no other checkpoint
is left: a trainer may also have been killed by something else, and a run is not given up for one such end.
"""
DISTRUSTED_MAX = 64
WHY_CHARS_MAX = 300

OUTSIDE = frozenset(
    {
        # The machine, its provider or a network.
        Cause.PREEMPTED,
        Cause.MACHINE_LOST,
        Cause.SILENT,
        Cause.BOOT_LOST,
        Cause.BOOT_FAILED,
        Cause.BOOT_TIMEOUT,
        Cause.LAUNCH_LOST,
        Cause.LAUNCH_REFUSED,
        Cause.NO_CAPACITY,
        Cause.LIMIT_REACHED,
        Cause.NO_FUNDS,
        Cause.AGENT_ERROR,
        Cause.PREFLIGHT_FAILED,
        Cause.SLOW_DISK,
        Cause.SLOW_DOWNLOAD,
        Cause.ALL_REDUCE_FAILED,
        Cause.GPU_HARDWARE,
        Cause.DISK_FULL,
        Cause.SHARED_MEMORY,
        Cause.PORT_IN_USE,
        Cause.NETWORK_ERROR,
        Cause.ACCESS_DENIED,
        Cause.OPEN_FILES,
        # Too little memory: an older checkpoint needs as much.
        Cause.GPU_OOM,
        Cause.HOST_OOM,
        Cause.INFERENCE_OOM,
        # Before the checkpoint was read, or after the trainer had ended.
        Cause.SETUP_FAILED,
        Cause.VERIFY_FAILED,
        Cause.SMOKE_FAILED,
        Cause.RESTORE_FAILED,
        Cause.CHECKPOINTS_DAMAGED,
        Cause.UPLOAD_FAILED,
        Cause.AFTER_FAILED,
        # A rule of the user, or the way in which the trainer is told to resume.
        Cause.LOG_RULE,
        Cause.RESUME_IGNORED,
        Cause.STOPPED_EARLY,
        Cause.ZERO_REWARD,
        Cause.EMPTY_BATCHES,
        # A package or a name that the code needs.
        Cause.IMPORT_ERROR,
        # Orders and limits, and good ends.
        Cause.HOURS_SPENT,
        Cause.DEADLINE,
        Cause.BUDGET_SPENT,
        Cause.STOPPED_GRACEFULLY,
        Cause.MOVED,
        Cause.FENCED,
        Cause.FINISHED,
        Cause.PROBED,
    }
)
"""Causes that are not the fault of the checkpoint that was restored."""

_TRAINER_RAN = (Phase.TRAIN, Phase.FLUSH, Phase.EXITED)


def failed_to_resume(run: Run, lease: Lease, cause: Cause | None) -> bool:
    """Return whether the end of the current attempt, for `cause`, counts against the checkpoint that it
    restored.

    It does not if that checkpoint is proven, or if no attempt has made a step with the present config and
    code: then these may be at fault. They are if the trainer's own words say so, until an attempt has resumed
    with them and made a step. Words about a checkpoint that does not fit the model may be about that one
    alone, because it was saved by this very run: they count once, and an older one is tried.
    """
    attempt, heartbeat = run.current_attempt, lease.heartbeat
    if (
        cause is None
        or cause in OUTSIDE
        or attempt is None
        or run.resume is None
        or run.trained_step is not None
    ):
        return False
    if lease.attempt != attempt.number or heartbeat is None or heartbeat.phase not in _TRAINER_RAN:
        return False
    if (
        attempt.first_step_s is not None
        or heartbeat.step
        or heartbeat.trained
        or heartbeat.restored_step not in (None, run.resume.step)
    ):
        return False
    asked = heartbeat.exit.action if heartbeat.exit is not None else None
    has_stepped = any(map(_has_stepped, _with_this_command(run)))
    is_first = (
        cause is Cause.BAD_CHECKPOINT
        and has_stepped
        and all(one.failed <= run.renewed_attempt for one in run.distrusted)
    )
    worked = _resumed(run) or is_first if is_of_config(cause, asked) else has_stepped
    return worked and (run.resume.step, run.resume.attempt) not in proven_places(run.attempts)


def is_of_config(cause: Cause, asked: Action | None) -> bool:
    """Return whether these words of a trainer speak of its config or code, rather than of the checkpoint that
    it restored. `asked`: the action that they ask for. An exception of a kind that is not known speaks of
    neither.
    """
    return cause is Cause.BAD_CONFIG or (asked is Action.STOP and cause is not Cause.TRAINER_ERROR)


def distrusted_after(run: Run) -> "tuple[Distrusted, ...]":
    """Return the checkpoints that stay distrusted when the run is resumed with another config or other code:
    not those from which nothing but the present ones may have kept the trainer, because no attempt could
    resume with them.
    """
    return tuple(one for one in run.distrusted if one.failed <= run.renewed_attempt or _resumed(run))


def cleared_step(run: Run, kept: "Collection[Distrusted]") -> int | None:
    """Return the step from which a run goes on that distrusts only `kept` any more; None: from what it would
    restore anyway.
    """
    newest = max((one.place for one in run.distrusted if one not in kept), default=None)
    restored = (run.resume.step, run.resume.attempt) if run.resume is not None else (0, 0)
    return newest[0] if newest is not None and newest > restored else None


def _resumed(run: Run) -> bool:
    """Return whether an attempt has resumed with the present command, and made a step."""
    return any(attempt.resumed_step and _has_stepped(attempt) for attempt in _with_this_command(run))


def _with_this_command(run: Run) -> "Iterator[Attempt]":
    """Yield the attempts with the present config, code and arguments."""
    since = max(run.renewed_attempt, run.went_back_attempt if run.spec.health.rollback_arguments else 0)
    return (attempt for attempt in run.attempts if attempt.number > since)


def proven_places(attempts: Collection[Attempt]) -> frozenset[Place]:
    """Return the checkpoints from which one of the attempts resumed and made a step."""
    return frozenset(
        (a.resumed_step, a.resumed_attempt)
        for a in attempts
        if a.resumed_attempt is not None and _has_stepped(a)
    )


def with_restored(attempt: Attempt, heartbeat: Heartbeat | None) -> Attempt:
    """Return the attempt; without the checkpoint that it was to restore, if its agent restored another one,
    because that was damaged.
    """
    restored = heartbeat.restored_step if heartbeat is not None else None
    return attempt if restored in (None, attempt.resumed_step) else replace(attempt, resumed_attempt=None)


def _has_stepped(attempt: Attempt) -> bool:
    return attempt.first_step_s is not None


def distrust(run: Run, detail: str) -> "tuple[Distrusted, ...]":
    """Return the run's distrusted checkpoints, with the one that its current attempt could not resume
    from.
    """
    if run.resume is None:
        return run.distrusted
    others = (one for one in run.distrusted if one.place != (run.resume.step, run.resume.attempt))
    return (*others, Distrusted(run.resume.step, run.resume.attempt, run.attempt, detail[:WHY_CHARS_MAX]))[
        -DISTRUSTED_MAX:
    ]
