"""Recognises a set-up that fails in the same way on one machine after another: a third machine would be paid for the same words."""

import re
from collections.abc import Sequence

from prime_train.core.causes import Cause
from prime_train.core.run import Attempt, Run

ALIKE = 2
"""Number of attempts in a row after which a set-up that fails in one and the same way is taken for the config's fault. A second machine is
worth its price, because the first may have been at fault; what is a network's fault has another cause."""

_VARYING = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-fA-F]*[0-9][0-9a-fA-F]*\b|[0-9]+")
"""What differs between machines in words that are the same: numbers of attempts and processes, times, sizes, hashes."""


def repeated_setup_failure(run: Run) -> str:
    """Return the words in which the set-up has failed on the last machines, empty unless they were the same on each of them."""
    if run.strikes[-ALIKE:] != (Cause.SETUP_FAILED,) * ALIKE:
        return ""
    failed = [attempt for attempt in run.attempts if attempt.cause is Cause.SETUP_FAILED][-ALIKE:]
    return failed[-1].detail if len(failed) == ALIKE and _are_alike(failed) else ""


def _are_alike(failed: Sequence[Attempt]) -> bool:
    words = {_VARYING.sub("#", attempt.detail) for attempt in failed}
    return len(words) == 1 and words != {""}
