"""What happened to a run, concluded from everything that is known of it: each conclusion with what it stands on and what to do."""

from collections.abc import Iterator

from prime_train.core.causes import POLICY, advice_at_the_end
from prime_train.core.run import RunState
from prime_train.core.text.formatting import span
from prime_train.core.verdict import Finished, Gone, Healthy, Sick, Silent, Stalled, Unknown, Verdict
from prime_train.reports.diagnosis.conclusion import Conclusion, Facts, Kind
from prime_train.reports.diagnosis.history import ended_before, repeated, zero_reward
from prime_train.reports.diagnosis.tracker import tracking
from prime_train.reports.pull_request import stopped_as_asked
from prime_train.reports.remedies import go_on


def conclude(facts: Facts) -> list[Conclusion]:
    """The state of the run first, then what else was found."""
    return [_state(facts), *_unserved(facts), *ended_before(facts), *repeated(facts.held.run), *zero_reward(facts), *tracking(facts)]


def _unserved(facts: Facts) -> Iterator[Conclusion]:
    if not facts.served:
        because = "nothing is replaced, and no budget is looked after"
        yield Conclusion(Kind.UNSERVED, "no control plane serves this home", because, "Start, and leave running: prime-train serve")


def _state(facts: Facts) -> Conclusion:
    run = facts.held.run
    if facts.verdict is not None:
        return _of_verdict(facts, facts.verdict)
    if run.state is RunState.SUCCEEDED:
        return Conclusion(Kind.FINISHED, "it has finished", run.why or f"step {run.best_step:,}")
    return _ended(facts) if run.is_over else _waiting(facts)


def _ended(facts: Facts) -> Conclusion:
    """What to do is told once, and not among the reasons."""
    run = facts.held.run
    general = advice_at_the_end(run.cause) if run.cause is not None else ""
    advice = general.replace(" RUN", f" {run.run_id}")
    why = run.why.removesuffix(general).strip().rstrip(".") or "no reason was kept"
    last = run.attempt
    where = f" (attempt {last.epoch}, at step {last.last_step:,})" if last is not None else ""
    if stopped_as_asked(run) or run.state is RunState.CANCELLED:
        return Conclusion(Kind.ENDED, f"it was {run.state.value}, as asked", why + where)
    title = "it failed" if run.state is RunState.FAILED else "it has stopped: a person must look"
    return Conclusion(Kind.ENDED, title, why + where, f"{advice} Then {go_on(run, facts.now_s)}".strip())


def _waiting(facts: Facts) -> Conclusion:
    """No machine holds the run now: between two, or before the first."""
    run = facts.held.run
    lost, left_s = run.attempt, run.not_before_s - facts.now_s
    due = f"the next one is due{f' in {span(left_s)}' if left_s > 0 else ''}" if facts.served else "no next one is rented"
    if lost is None or lost.cause is None:
        why = ", ".join(notice.kind.replace("_", " ") for notice in run.notices) or "none was asked for yet"
        return Conclusion(Kind.WAITING, "it waits for its first machine", why)
    policy = POLICY[lost.cause]
    return Conclusion(Kind.LOST, f"attempt {lost.epoch}: {policy.title}; {due}", lost.detail or policy.title, policy.advice)


def _of_verdict(facts: Facts, verdict: Verdict) -> Conclusion:
    run = facts.held.run
    match verdict:
        case Healthy(cut_off=True):
            advice = "Nothing to do: it is left alone as long as W&B hears of it."
            return Conclusion(Kind.CUT_OFF, "it is cut off from us, and trains", f"{facts.last_beat()}, but {facts.last_heard()}", advice)
        case Healthy(phase=None):
            return _booting(facts)
        case Healthy():
            return Conclusion(Kind.WELL, f"it is {run.state.value}, and its machine is well", facts.last_beat())
        case Gone(why):
            advice = "Nothing to do: it resumes on another machine." if facts.served else ""
            return Conclusion(Kind.LOST, "its machine is gone", f"{why}, at step {facts.step:,}", advice)
        case Silent(silent_s, past_limit):
            limit = f"; it is replaced after {span(run.spec.health.silence_s)}" if not past_limit else "; it is being replaced"
            because = f"no beat for {span(silent_s)}, {facts.last_heard()}{limit if facts.served else ''}"
            return Conclusion(Kind.SILENT, "its machine is silent", because)
        case Stalled(cause, waited_s, limit_s):
            because = f"waited {span(waited_s)}, limit {span(limit_s)}; {facts.last_beat()}"
            return Conclusion(Kind.STALLED, POLICY[cause].title, because, POLICY[cause].advice)
        case Sick(cause, detail):
            return Conclusion(Kind.SICK, POLICY[cause].title, detail or cause.value, POLICY[cause].advice)
        case Finished(step):
            return Conclusion(Kind.FINISHED, "it has finished", f"step {step:,}")
        case Unknown(why):
            return Conclusion(Kind.UNKNOWN, "how it stands cannot be said", why, "Nothing is destroyed as long as that is so.")


def _booting(facts: Facts) -> Conclusion:
    run = facts.held.run
    since_s = run.attempt.launched_s if run.attempt is not None else facts.now_s
    waited, limit = span(facts.now_s - since_s), span(run.spec.health.first_beat_s)
    given_up = f"; it is given up after {limit}" if facts.served else ""
    because = f"it was asked for {waited} ago, and its agent has not beaten yet{given_up}"
    return Conclusion(Kind.WAITING, f"attempt {run.epoch} waits for its machine", because)
