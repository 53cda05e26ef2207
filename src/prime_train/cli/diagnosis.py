"""What happened to a run, concluded from everything that is known of it: each conclusion with what it stands on and what to do."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import takewhile

from prime_train.adapters.tracker_wandb.seen import RUNNING, RunSeen
from prime_train.core.amounts import span
from prime_train.core.causes import POLICY, Cause
from prime_train.core.decide.tracking import TRACKER_LAG_S_MAX
from prime_train.core.run import Attempt, Run, RunState
from prime_train.core.verdict import Finished, Gone, Healthy, Sick, Silent, Stalled, Unknown, Verdict
from prime_train.ports import Held

ZERO_STEPS_MIN = 5
"""So many steps in a row without any reward are no chance."""
LATE_S = 180
"""From here on W&B is behind: its client speaks every 30 s."""
SAME_MIN = 2


class Kind(StrEnum):
    WELL = "well"
    WAITING = "waiting"
    FINISHED = "finished"
    ENDED = "ended"
    LOST = "lost"
    SILENT = "silent"
    CUT_OFF = "cut_off"
    STALLED = "stalled"
    SICK = "sick"
    UNKNOWN = "unknown"
    INTERRUPTED = "interrupted"
    REPEATED = "repeated"
    ZERO_REWARD = "zero_reward"
    TRACKER_LATE = "tracker_late"
    TRACKER_LOST = "tracker_lost"
    TRACKER_STALE = "tracker_stale"
    TRACKER_UNKNOWN = "tracker_unknown"


@dataclass(frozen=True)
class Conclusion:
    kind: Kind
    title: str
    because: str
    advice: str = ""


@dataclass(frozen=True)
class Facts:
    """`verdict`: on an attempt that holds the lease, None where none does; `tracker`: a text is why it could not be asked; `rewards`: by
    step, as far as the trainer's own figures could be read."""

    held: Held
    now_s: int
    verdict: Verdict | None = None
    tracker: RunSeen | str | None = None
    rewards: Mapping[int, float] = field(default_factory=dict)


def conclude(facts: Facts) -> list[Conclusion]:
    """The state of the run first, then what else was found."""
    return [_state(facts), *_interrupted(facts.held.run), *_repeated(facts.held.run), *_zero_reward(facts.rewards), *_tracker(facts)]


def _state(facts: Facts) -> Conclusion:
    run = facts.held.run
    if facts.verdict is not None:
        return _of_verdict(facts, facts.verdict)
    if run.state is RunState.SUCCEEDED:
        return Conclusion(Kind.FINISHED, "it has finished", run.why or f"step {run.best_step}")
    if run.is_over:
        advice = POLICY[run.cause].advice if run.cause is not None else ""
        return Conclusion(Kind.ENDED, f"it {_ENDED.get(run.state, 'ended')}", run.why or "no reason was kept", advice)
    return _waiting(run)


_ENDED = {RunState.FAILED: "failed", RunState.STOPPED: "was stopped", RunState.CANCELLED: "was cancelled"}


def _waiting(run: Run) -> Conclusion:
    """No machine holds the run now: between two, or before the first."""
    lost = run.attempt
    if lost is None or lost.cause is None:
        why = ", ".join(notice.kind.replace("_", " ") for notice in run.notices) or "none was asked for yet"
        return Conclusion(Kind.WAITING, "it waits for its first machine", why)
    policy = POLICY[lost.cause]
    return Conclusion(Kind.LOST, f"attempt {lost.epoch}: {policy.title}; the next one is due", lost.detail or policy.title, policy.advice)


def _of_verdict(facts: Facts, verdict: Verdict) -> Conclusion:
    run = facts.held.run
    match verdict:
        case Healthy(cut_off=True):
            advice = "Nothing to do: it is left alone as long as W&B hears of it."
            return Conclusion(Kind.CUT_OFF, "it is cut off from us, and trains", f"{_beat(facts)}, but {_heard(facts)}", advice)
        case Healthy(phase=None):
            return Conclusion(Kind.WAITING, f"attempt {run.epoch} waits for its machine", "its agent has not beaten yet")
        case Healthy():
            return Conclusion(Kind.WELL, f"it is {run.state.value}, and well", _beat(facts))
        case Gone(why):
            return Conclusion(Kind.LOST, "its machine is gone", f"{why}; {_beat(facts)}", "Nothing to do: it resumes on another machine.")
        case Silent(silent_s, past_limit):
            limit = f"it is replaced after {span(run.spec.health.silence_s)}" if not past_limit else "it is being replaced"
            return Conclusion(Kind.SILENT, "its machine is silent", f"no beat for {span(silent_s)}, {_heard(facts)}; {limit}")
        case Stalled(cause, waited_s, limit_s):
            because = f"waited {span(waited_s)}, limit {span(limit_s)}; {_beat(facts)}"
            return Conclusion(Kind.STALLED, POLICY[cause].title, because, POLICY[cause].advice)
        case Sick(cause, detail):
            return Conclusion(Kind.SICK, POLICY[cause].title, detail or cause.value, POLICY[cause].advice)
        case Finished(step):
            return Conclusion(Kind.FINISHED, "it has finished", f"step {step}")
        case Unknown(why):
            return Conclusion(Kind.UNKNOWN, "how it stands can not be said", why, "Nothing is destroyed as long as that is so.")


def _beat(facts: Facts) -> str:
    lease = facts.held.lease
    if lease.beat is None or lease.beat_s is None:
        return "it never beat"
    return f"its last beat came {span(facts.now_s - lease.beat_s)} ago at step {lease.beat.step}"


def _heard(facts: Facts) -> str:
    if not isinstance(facts.tracker, RunSeen):
        return "W&B tells nothing of it"
    step = f" at step {facts.tracker.step}" if facts.tracker.step else ""
    return f"W&B heard of it {span(facts.now_s - facts.tracker.heard_s)} ago{step}"


def _interrupted(run: Run) -> Iterator[Conclusion]:
    """The newest attempt that ended badly, if steps went with it."""
    ended = [attempt for attempt in run.attempts if attempt.fenced_s is not None and attempt.cause is not Cause.FINISHED]
    if not ended:
        return
    newest = ended[-1]
    kept = max(newest.durable_step, newest.resumed_step)
    if newest.last_step > kept:
        because = f"attempt {newest.epoch} had reached step {newest.last_step}, and step {kept} was in the bucket: {_cause(newest)}"
        lost = newest.last_step - kept
        advice = "Save more often if that is much: checkpoints in the bucket are what a lost machine leaves."
        yield Conclusion(Kind.INTERRUPTED, f"interrupted between two checkpoints: {lost} steps are done again", because, advice)


def _cause(attempt: Attempt) -> str:
    return POLICY[attempt.cause].title if attempt.cause is not None else "its end is not explained"


def _repeated(run: Run) -> Iterator[Conclusion]:
    ended = [attempt for attempt in run.attempts if attempt.cause not in (None, Cause.FINISHED)]
    if not ended or ended[-1].cause is None:
        return
    cause = ended[-1].cause
    same = list(takewhile(lambda attempt: attempt.cause is cause, reversed(ended)))
    if len(same) >= SAME_MIN:
        places = sorted({attempt.offer.offer_id for attempt in same})
        yield Conclusion(Kind.REPEATED, f"{len(same)} attempts in a row: {POLICY[cause].title}", f"on {', '.join(places)}")


def _zero_reward(rewards: Mapping[int, float]) -> Iterator[Conclusion]:
    """Rewards that are all 0 up to the newest step."""
    zero = list(takewhile(lambda step: rewards[step] == 0, sorted(rewards, reverse=True)))
    if len(zero) < ZERO_STEPS_MIN:
        return
    before = [step for step in rewards if step < zero[-1]]
    last = f"the last other one was {rewards[max(before)]:g} at step {max(before)}" if before else "there was never another one"
    advice = "Look at the rollouts: what the environment and its verifier say of them."
    yield Conclusion(Kind.ZERO_REWARD, f"reward 0 since step {zero[-1]}", f"{len(zero)} steps up to {zero[0]}; {last}", advice)


def _tracker(facts: Facts) -> Iterator[Conclusion]:
    run, seen = facts.held.run, facts.tracker
    if isinstance(seen, str):
        yield Conclusion(Kind.TRACKER_UNKNOWN, "W&B told nothing", seen)
    elif seen is not None and not isinstance(facts.verdict, Healthy) and seen.state == RUNNING:
        because = f"{_heard(facts)}; a process that was killed can not tell it"
        yield Conclusion(Kind.TRACKER_STALE, "W&B still calls it running", because, "The next attempt goes on with the same run there.")
    elif seen is not None and isinstance(facts.verdict, Healthy) and not facts.verdict.cut_off and run.state is RunState.TRAINING:
        yield from _late(facts, seen)


def _late(facts: Facts, seen: RunSeen) -> Iterator[Conclusion]:
    late_s = facts.now_s - seen.heard_s
    because = f"{_beat(facts)}, and {_heard(facts)}"
    if late_s > TRACKER_LAG_S_MAX:
        advice = "Look for wandb in the trainer's log; what it logs now may never arrive there."
        yield Conclusion(Kind.TRACKER_LOST, "it has lost its tracker", because, advice)
    elif late_s > LATE_S:
        yield Conclusion(Kind.TRACKER_LATE, "only W&B is late, the run is not", because, "Nothing to do: up to 30 minutes have been seen.")
