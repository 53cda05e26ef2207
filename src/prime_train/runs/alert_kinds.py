"""The table of alerts: every kind, and what it means for the run. The runbook says what people do about
each.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter

from prime_train.runs.wire import Heartbeat


class AlertKind(StrEnum):
    """What an alert is about. The values are stored and appear in messages."""

    LAUNCHED = "launched"
    RELAUNCHED = "relaunched"
    TRAINING = "training"
    RECOVERED = "recovered"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    CANCELLED = "cancelled"

    LOST = "lost"
    SILENT = "silent"
    BOOT_LATE = "boot_late"
    STALLED = "stalled"
    CUT_OFF = "cut_off"
    BLIND = "blind"
    UNKNOWN = "unknown"
    UNTRACKED = "untracked"

    BUDGET = "budget"
    DRAINING = "draining"
    FUNDS = "funds"
    NO_CAPACITY = "no_capacity"
    SECRETS = "secrets"
    POLICY = "policy"
    BUCKET = "bucket"
    CHECKPOINT = "checkpoint"
    OLDER = "older"
    UPLOADS = "uploads"
    UPLOADS_AGAIN = "uploads_again"
    UNSAVED = "unsaved"
    SAVED_AGAIN = "saved_again"
    KEPT = "kept"
    NOT_FINITE = "not_finite"
    BEGAN_ANEW = "began_anew"
    DAMAGED = "damaged"
    LATE_FILES = "late_files"
    CHEAPER = "cheaper"
    RESTORED = "restored"
    ORPHAN = "orphan"
    UNREADABLE = "unreadable"

    LAUNCHING = "launching"
    STARTING = "starting"
    UPLOADING = "uploading"
    FINISHING = "finishing"
    SETTLED = "settled"
    BILLED = "billed"
    RESUMED = "resumed"
    SHOWN = "shown"


class Lasts(StrEnum):
    """How long people count as notified of a condition, so that they are not notified again."""

    ATTEMPT = "until the attempt has a machine, makes its first step, or ends"
    NEXT_MACHINE = "until the run has a machine again"
    NEXT_FIRST_STEP = "until the first step of the attempt that follows"
    RUN = "until the run ends"


@dataclass(frozen=True)
class AlertPolicy:
    """The policy for one kind of alert. `lasts`: how long people count as notified and the alert is shown as
    open, unless an all-clear comes first; `is_silence`: the next heartbeat is the all-clear; `needs_person`:
    a person must look at the run; `is_display_only`: people are not notified, only displays of the run's
    state are refreshed; `all_clear`: the line of history when the condition has passed, needed by every kind
    that an `AllClear` names; `cleared_by`: the alert that also notifies people then.

    `problem`, for an alert about what heartbeats of a healthy machine show: returns from one what is wrong,
    "" if nothing is. People are notified of that under `title`, and it counts as passed when `problem`
    returns "" again, but `stays_s` seconds after the notice at the earliest, so that what comes and goes with
    each step is told once.
    """

    lasts: Lasts = Lasts.ATTEMPT
    is_silence: bool = False
    needs_person: bool = False
    is_display_only: bool = False
    all_clear: str = ""
    cleared_by: AlertKind | None = None
    title: str = ""
    problem: Callable[[Heartbeat], str] | None = None
    stays_s: int = 0


def _not_finite(heartbeat: Heartbeat) -> str:
    since = heartbeat.not_finite_since
    return (
        ""
        if since is None
        else f"the loss, or the norm of its gradients, has been NaN or infinite since step {since}"
    )


_DEFAULT = AlertPolicy()
_DISPLAY_ONLY = AlertPolicy(is_display_only=True)
_HEARD_AGAIN = "heartbeats arrive again"
_POLICIES: Mapping[AlertKind, AlertPolicy] = {
    AlertKind.FAILED: AlertPolicy(needs_person=True),
    AlertKind.STOPPED: AlertPolicy(needs_person=True),
    AlertKind.SILENT: AlertPolicy(is_silence=True, all_clear=_HEARD_AGAIN),
    AlertKind.BOOT_LATE: AlertPolicy(is_silence=True, all_clear=_HEARD_AGAIN),
    AlertKind.CUT_OFF: AlertPolicy(is_silence=True, all_clear=_HEARD_AGAIN),
    AlertKind.BLIND: AlertPolicy(Lasts.NEXT_FIRST_STEP, is_silence=True, all_clear=_HEARD_AGAIN),
    AlertKind.UNKNOWN: AlertPolicy(Lasts.NEXT_FIRST_STEP, is_silence=True, all_clear=_HEARD_AGAIN),
    AlertKind.STALLED: AlertPolicy(all_clear="steps again"),
    AlertKind.UNTRACKED: AlertPolicy(Lasts.RUN, all_clear="the tracker receives data again"),
    AlertKind.BUDGET: AlertPolicy(Lasts.RUN),
    AlertKind.FUNDS: AlertPolicy(needs_person=True, all_clear="the wallet has credit again"),
    AlertKind.NO_CAPACITY: AlertPolicy(Lasts.NEXT_MACHINE),
    AlertKind.UPLOADS: AlertPolicy(
        all_clear="checkpoints and outputs become durable again",
        cleared_by=AlertKind.UPLOADS_AGAIN,
        title="checkpoints or outputs do not become durable",
        problem=attrgetter("upload_problem"),
    ),
    AlertKind.UNSAVED: AlertPolicy(
        all_clear="checkpoints come to be as promised again",
        cleared_by=AlertKind.SAVED_AGAIN,
        title="checkpoints do not come to be",
        problem=attrgetter("unsaved"),
    ),
    AlertKind.DAMAGED: AlertPolicy(Lasts.RUN),
    AlertKind.LATE_FILES: AlertPolicy(Lasts.RUN),
    AlertKind.NOT_FINITE: AlertPolicy(
        all_clear="the loss is finite again", title="the loss is not finite", problem=_not_finite, stays_s=600
    ),
    AlertKind.CHEAPER: AlertPolicy(all_clear="a move to another machine would no longer pay"),
    AlertKind.LAUNCHING: _DISPLAY_ONLY,
    AlertKind.STARTING: _DISPLAY_ONLY,
    AlertKind.UPLOADING: _DISPLAY_ONLY,
    AlertKind.FINISHING: _DISPLAY_ONLY,
    AlertKind.SETTLED: _DISPLAY_ONLY,
    AlertKind.BILLED: _DISPLAY_ONLY,
    AlertKind.RESUMED: _DISPLAY_ONLY,
    AlertKind.SHOWN: _DISPLAY_ONLY,
}


def policy_of(kind: AlertKind) -> AlertPolicy:
    return _POLICIES.get(kind, _DEFAULT)
