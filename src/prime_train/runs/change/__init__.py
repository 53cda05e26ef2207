"""Turns a decision into one atomic write: the next run, the next lease, a history line, and the alerts.

Pure, like the decision. Calls to the outside (create, terminate, send) happen only after the write has
succeeded.
"""

from prime_train.runs.change.decisions import change, next_check_s
from prime_train.runs.change.deletions import pruned
from prime_train.runs.change.fences import CLEANUP_AFTER_S, EXCLUDED_MAX, PREEMPTIONS_KEPT_MAX, cleaned_up
from prime_train.runs.change.launches import adopted, caught_up, launch, no_offer, refused, resume_chosen
from prime_train.runs.change.machines import billed
from prime_train.runs.change.parts import alert_for, happened
from prime_train.runs.change.requests import Renewed, archived, requested, resumed

__all__ = [
    "CLEANUP_AFTER_S",
    "EXCLUDED_MAX",
    "PREEMPTIONS_KEPT_MAX",
    "Renewed",
    "adopted",
    "alert_for",
    "archived",
    "billed",
    "caught_up",
    "change",
    "cleaned_up",
    "happened",
    "launch",
    "next_check_s",
    "no_offer",
    "pruned",
    "refused",
    "requested",
    "resume_chosen",
    "resumed",
]
