"""What follows from the end of a trainer: one decision, for the watcher and for a log that is diagnosed
alone.

The cause alone does not decide. Out of memory is final for a batch that never fitted, and worth another start
for a leak that shows after hours; an exception that code raises is final at the first start, may be passing
after a thousand steps, and is final again when the same words come at the same step of another machine. So
the action follows from the end, from what the attempt had achieved, from the attempts before it, and first of
all from what the user has ordered for this exit code.

As long as a trainer cannot be started again in place, "same machine" is carried out as another attempt, on
whatever machine is best.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from prime_train.runs.resuming.trust import is_of_config
from prime_train.runs.run import Attempt
from prime_train.spec.causes import POLICY, Action, Cause
from prime_train.spec.spec import TrainerSpec
from prime_train.text.outages import is_end_of_setup, names_outage

OUTAGES_MAX = 48
"""Attempts in a row that may end because a service outside does not answer: about a day of waiting."""
SAME_SETUPS_MAX = 4
"""Set-ups in a row that may end by the same words, although a network is thought to be at fault, if the words
themselves do not say so.
"""
COMPARED_CHARS_MAX = 300
SHOWN_CHARS_MAX = 200

_OUT_OF_MEMORY = frozenset({Cause.GPU_OOM, Cause.HOST_OOM, Cause.INFERENCE_OOM})
_OWN_WORDS = frozenset(
    {
        Cause.SETUP_FAILED,
        Cause.TRAINER_ERROR,
        Cause.BAD_CONFIG,
        Cause.CUDA_ERROR,
        Cause.BAD_CHECKPOINT,
        Cause.IMPORT_ERROR,
        *_OUT_OF_MEMORY,
    }
)
"""Causes whose detail is the last error of what the run itself executes, which says the same if the same
happens again.
"""
_OF_A_CHECKPOINT = frozenset({Cause.TRAINER_ERROR, Cause.BAD_CHECKPOINT})
"""Causes that speak against the restored checkpoint if they end an attempt before its first new step."""

_VARIES = (
    (re.compile(r"0x[0-9a-fA-F]+"), "#"),
    (re.compile(r"(?:[A-Za-z]:)?(?:/[^\s'\",:()\[\]]+)+"), "/"),
    (re.compile(r"\b[0-9a-fA-F]{8,}(?:-[0-9a-fA-F]{4,})*\b"), "#"),
    (re.compile(r"\d+(?:[.,]\d+)*"), "#"),
    (re.compile(r"\s+"), " "),
)


@dataclass(frozen=True)
class Ending:
    """How a trainer ended. `asked`: the action that its own words ask for, None: that of the cause; `step`:
    the step it had reached; `restored_step`: the one it resumed from, 0: it started anew; `has_gained`:
    whether new steps became durable in this attempt.
    """

    cause: Cause
    detail: str = ""
    asked: Action | None = None
    code: int | None = None
    step: int = 0
    restored_step: int = 0
    has_gained: bool = False

    @property
    def has_trained(self) -> bool:
        """Return whether the attempt made a step of its own."""
        return self.step > self.restored_step

    @property
    def has_only_restored(self) -> bool:
        """Return whether the attempt restored a checkpoint, and made no step of its own."""
        return self.restored_step > 0 and not self.has_trained

    @property
    def may_be_compared(self) -> bool:
        """Return whether its words and its step say what happened: not if it died before its first new step
        after a restore, because then the checkpoint is in question, and an older one is tried first.
        """
        began = self.has_trained or not self.restored_step or self.cause is Cause.SETUP_FAILED
        return self.cause in _OWN_WORDS and bool(self.detail) and began


@dataclass(frozen=True)
class Next:
    """What follows, and why, for people; `why` is empty if the cause alone says so."""

    action: Action
    why: str = ""


def next_action(trainer: TrainerSpec, ending: Ending, earlier: Sequence[Attempt] = ()) -> Next:
    """Return what follows from `ending`. `earlier`: the attempts before it, oldest first."""
    if stops_on(trainer, ending.code):
        return Next(Action.STOP, f"trainer.stop_on lists exit code {ending.code}")
    if ending.code is not None and _is_listed(ending.code, trainer.recover_on.exit_codes):
        return Next(Action.SAME_MACHINE, f"trainer.recover_on lists exit code {ending.code}")
    same = _same_before(ending, earlier)
    if same is not None:
        return Next(Action.STOP, _quoted(ending, same))
    if _same_setups(ending, earlier) >= SAME_SETUPS_MAX:
        return Next(
            Action.STOP,
            f"{SAME_SETUPS_MAX} set-ups in a row ended by the same words, and these do not name a network",
        )
    action = ending.asked or POLICY[ending.cause].action
    if action is Action.BACK_OFF and _outages(ending, earlier) >= OUTAGES_MAX:
        return Next(Action.STOP, f"{OUTAGES_MAX} attempts in a row ended like this")
    if action is not Action.STOP:
        return Next(action)
    if ending.cause in _OUT_OF_MEMORY and ending.has_gained:
        return Next(
            Action.SAME_MACHINE, "new steps had become durable, so that a start from there makes progress"
        )
    if (
        ending.cause in _OF_A_CHECKPOINT
        and not is_of_config(ending.cause, ending.asked)
        and ending.has_only_restored
    ):
        return Next(
            Action.SAME_MACHINE,
            f"no new step came after the restore of step {ending.restored_step:,}, which may be at fault",
        )
    # Whether an error that is final at the first start may be passing, because steps were made before it. A
    # refusal of which only the kind of the exception tells, which asks to stop, may then be about one sample
    # of the data.
    of_code = ending.cause is Cause.TRAINER_ERROR or (
        ending.cause is Cause.BAD_CONFIG and ending.asked is Action.STOP
    )
    if of_code and ending.has_trained:
        return Next(
            Action.SAME_MACHINE,
            "it had trained before; if the same comes again at the same step, that is the end",
        )
    return Next(Action.STOP)


def stops_on(trainer: TrainerSpec, code: int | None) -> bool:
    """Return whether the user has ordered that this exit code ends the run."""
    return code is not None and _is_listed(code, trainer.stop_on.exit_codes)


def alike(error: str) -> str:
    """Return the words of an error without what varies from one attempt to the next: numbers, addresses and
    paths.
    """
    text = error[:COMPARED_CHARS_MAX]
    for pattern, instead in _VARIES:
        text = pattern.sub(instead, text)
    return text.strip().casefold()


def _same_before(ending: Ending, earlier: Sequence[Attempt]) -> Attempt | None:
    """Return the newest attempt that ended by the same error at the same step; None if there is none."""
    if not ending.may_be_compared:
        return None
    words = alike(ending.detail)
    # A set-up may fail for a passing reason that comes again days later, so only two in a row are the same.
    counted = earlier[-1:] if ending.cause is Cause.SETUP_FAILED else earlier
    return next((one for one in reversed(counted) if _is_same(ending, words, one)), None)


def _is_same(ending: Ending, words: str, attempt: Attempt) -> bool:
    if attempt.cause is not ending.cause or (
        attempt.last_step != ending.step and ending.cause is not Cause.SETUP_FAILED
    ):
        return False
    assert attempt.cause is not None
    return (
        Ending(
            attempt.cause, attempt.detail, step=attempt.last_step, restored_step=attempt.resumed_step
        ).may_be_compared
        and alike(attempt.detail) == words
    )


def _quoted(ending: Ending, before: Attempt) -> str:
    at = (
        f"at step {ending.step:,}"
        if ending.step and ending.cause is not Cause.SETUP_FAILED
        else "before its first step"
    )
    now, then = ending.detail[:SHOWN_CHARS_MAX], before.detail[:SHOWN_CHARS_MAX]
    return f"it ended twice {at} by the same error: attempt {before.number} said '{then}', and now '{now}'"


def _outages(ending: Ending, earlier: Sequence[Attempt]) -> int:
    """Return the number of attempts before this one that ended by the same cause in a row, none of which made
    a step durable.
    """
    return sum(
        1
        for _ in takewhile(
            lambda one: one.cause is ending.cause and one.durable_step <= one.resumed_step, reversed(earlier)
        )
    )


def _same_setups(ending: Ending, earlier: Sequence[Attempt]) -> int:
    """Return how many set-ups in a row, this one included, were ended by a network, as far as their output
    tells, although their last words are the same and name none; 0: this one was not. Attempts whose agent
    never came up say nothing.
    """
    if (
        ending.cause is not Cause.NETWORK_ERROR
        or not is_end_of_setup(ending.detail)
        or names_outage(ending.detail)
    ):
        return 0
    words, heard = (
        alike(ending.detail),
        [one for one in reversed(earlier) if one.first_heartbeat_s is not None],
    )
    return 1 + sum(
        1 for _ in takewhile(lambda one: one.cause is ending.cause and alike(one.detail) == words, heard)
    )


def _is_listed(code: int, codes: Sequence[int]) -> bool:
    """Return whether the exit code is listed; a signal may be given as its negative or as 128 plus its
    number.
    """
    return code in codes or (code < 0 and 128 - code in codes) or (code > 128 and 128 - code in codes)
