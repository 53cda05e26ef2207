"""Diagnoses from earlier attempts and from the trainer's own figures."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from prime_train.advice import Advice, Call, Operation
from prime_train.runs.run import Attempt, Run
from prime_train.runs.verdict import Gone, Silent
from prime_train.spec.causes import POLICY, Cause
from prime_train.status.diagnosis.diagnosis_model import Diagnosis, DiagnosisKind, Facts
from prime_train.text.formatting import span

ZERO_STEPS_MIN = 5
"""Number of consecutive steps without any reward that is no coincidence."""
SAME_MIN = 2
MACHINES = frozenset({Cause.PREEMPTED, Cause.MACHINE_LOST, Cause.SILENT})
"""Causes that are not the code's fault; what they cost depends on how often the run saves."""
AS_MEANT = frozenset({Cause.FINISHED, Cause.PROBED})
"""Causes of an end that was reached; what was not saved then is no loss."""

_SAVE = "Save more often if that is too much: after a machine is lost, only checkpoints in the bucket remain."


def ended_before(facts: Facts) -> Iterator[Diagnosis]:
    """Yield a diagnosis of the steps that were lost, and why. If the machine of the current attempt is gone
    or silent, the diagnosis is about that attempt, otherwise about the newest attempt that ended badly.
    """
    run = facts.figures.run
    if isinstance(facts.verdict, Gone | Silent) and run.current_attempt is not None:
        kept = max(run.current_attempt.durable_step, run.current_attempt.resumed_step)
        if facts.step > kept:
            because = (
                f"attempt {run.attempt} has reached step {facts.step:,}, and {_kept(kept)} is in the bucket"
            )
            yield Diagnosis(
                DiagnosisKind.INTERRUPTED,
                f"between two checkpoints: {_steps(facts.step - kept)} would be repeated",
                because,
                _SAVE,
            )
        return
    ended = [
        attempt for attempt in run.attempts if attempt.fenced_s is not None and attempt.cause not in AS_MEANT
    ]
    if ended:
        yield from _ended(facts, ended[-1])


def _ended(facts: Facts, last: Attempt) -> Iterator[Diagnosis]:
    when = span(facts.now_s - (last.fenced_s or facts.now_s))
    kept, since = max(last.durable_step, last.resumed_step), last.not_finite_since
    if since is not None and kept >= since:
        because = (
            f"attempt {last.number} had reached step {last.last_step:,} when it ended {when} ago; "
            f"its checkpoints from step {since:,} on, up to step {kept:,}, hold figures that are not finite"
        )
        title = (
            f"interrupted by a divergence: the run goes on from the newest checkpoint before step {since:,}"
        )
        yield Diagnosis(DiagnosisKind.INTERRUPTED, title, f"{because}: {_cause(last)}")
    elif last.last_step > kept:
        because = (
            f"attempt {last.number} had reached step {last.last_step:,}, and {_kept(kept)} was in "
            "the "
            f"bucket, when it ended {when} ago"
        )
        advice = _SAVE if last.cause in MACHINES else ""
        lost = last.last_step - kept
        title = f"interrupted between two checkpoints: {_steps(lost)} {_tense(facts, last, lost)} repeated"
        yield Diagnosis(DiagnosisKind.INTERRUPTED, title, f"{because}: {_cause(last)}", advice)
    elif facts.verdict is not None:
        none = "no step was lost" if last.first_step_s is not None else "it had completed no step"
        yield Diagnosis(
            DiagnosisKind.REPLACED,
            f"attempt {last.number} ended {when} ago: {_cause(last)}",
            f"{last.detail or 'on request'}; {none}",
        )


def _tense(facts: Facts, lost: Attempt, count: int) -> str:
    if facts.record.run.is_over:
        return "would be"
    is_past = facts.verdict is not None and facts.step >= lost.last_step
    return ("was" if is_past else "is") if count == 1 else ("were" if is_past else "are")


def repeated(run: Run) -> Iterator[Diagnosis]:
    """Yield a diagnosis if the newest attempts ended by the same cause, with what else they share."""
    ended = [
        attempt for attempt in run.attempts if attempt.cause is not None and attempt.cause not in AS_MEANT
    ]
    if not ended or ended[-1].cause is None:
        return
    cause = ended[-1].cause
    same = list(takewhile(lambda attempt: attempt.cause is cause, reversed(ended)))
    if len(same) >= SAME_MIN:
        yield Diagnosis(
            DiagnosisKind.REPEATED, f"{len(same)} attempts in a row: {POLICY[cause].title}", _shared(same)
        )


def _shared(same: Sequence[Attempt]) -> str:
    places, steps = (
        sorted({attempt.offer.offer_id for attempt in same}),
        sorted({attempt.last_step for attempt in same}),
    )
    where = (
        f"all on {places[0]}, so it may be that machine"
        if len(places) == 1
        else f"on {', '.join(places)}, so it is not one machine"
    )
    at = (
        f"each at step {steps[0]:,}, so check what happens at that step"
        if len(steps) == 1
        else f"at steps {', '.join(map(str, steps))}"
    )
    return f"{where}; {at if steps != [0] else 'none completed a step'}{_words(same)}"


def _words(same: Sequence[Attempt]) -> str:
    """Return the detail of the newest attempt, which comes first, if it says more than the cause; otherwise
    an empty string.
    """
    newest, others = same[0], {attempt.detail for attempt in same[1:]}
    if newest.detail in ("", newest.cause.value if newest.cause is not None else "", _cause(newest)):
        return ""
    return f"; {'each' if others == {newest.detail} else 'the last'} said: {newest.detail}"


def zero_reward(facts: Facts) -> Iterator[Diagnosis]:
    """Yield a diagnosis if all rewards up to the newest step are 0."""
    rewards = facts.rewards
    zero = list(takewhile(lambda step: rewards[step] == 0, sorted(rewards, reverse=True)))
    if len(zero) < ZERO_STEPS_MIN:
        return
    first, before = zero[-1], [step for step in rewards if step < zero[-1]]
    last = (
        f"the last reward other than 0 was {rewards[max(before)]:g}, at step {max(before):,}"
        if before
        else "no step had another reward"
    )
    resumed = [a.number for a in facts.record.run.attempts if before and a.resumed_step == first - 1]
    began = f"; attempt {resumed[-1]} resumed there" if resumed else ""
    advice = "Look at the rollouts and at what the environment and its verifier report about them."
    because = f"{len(zero)} steps in a row, up to step {zero[0]:,}; {last}{began}"
    yield Diagnosis(DiagnosisKind.ZERO_REWARD, f"reward 0 since step {first:,}", because, advice)


def failed_steps(facts: Facts) -> Iterator[Diagnosis]:
    """Yield a diagnosis of steps after training that failed, although the run goes on or has succeeded."""
    run = facts.figures.run
    if run.after_failed:
        because = (
            f"{run.after_failed}. Training has succeeded all the same, and its checkpoint is in the bucket"
        )
        advice = Advice("Read what the step printed: ", Call(Operation.LOGS, run.run_id))
        yield Diagnosis(DiagnosisKind.STEP_FAILED, "a step after training failed", because, advice)


def _cause(attempt: Attempt) -> str:
    return POLICY[attempt.cause].title if attempt.cause is not None else "the reason for its end is unknown"


def _kept(step: int) -> str:
    return f"step {step:,}" if step else "nothing"


def _steps(count: int) -> str:
    return f"{count:,} step{'' if count == 1 else 's'}"
