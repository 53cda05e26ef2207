"""Diagnoses what happened to a run: each conclusion comes with its evidence and with advice."""

from collections.abc import Iterator

from prime_train.core.causes import POLICY, advice_at_the_end
from prime_train.core.run import RunState
from prime_train.core.text.formatting import span
from prime_train.core.verdict import Finished, Gone, Healthy, Sick, Silent, Stalled, Unknown, Verdict
from prime_train.reports.diagnosis.diagnosis_model import Diagnosis, Facts, Kind
from prime_train.reports.diagnosis.history import ended_before, repeated, zero_reward
from prime_train.reports.diagnosis.tracker import tracking
from prime_train.reports.pull_request import stopped_as_asked
from prime_train.reports.remedies import go_on


def conclude(facts: Facts) -> list[Diagnosis]:
    """Return the run's state first, then all other findings."""
    return [_state(facts), *_unserved(facts), *ended_before(facts), *repeated(facts.held.run), *zero_reward(facts), *tracking(facts)]


def _unserved(facts: Facts) -> Iterator[Diagnosis]:
    if not facts.served:
        because = "nothing is replaced, and no budget is looked after"
        yield Diagnosis(Kind.UNSERVED, "no control plane serves this home", because, "Start, and leave running: prime-train serve")


def _state(facts: Facts) -> Diagnosis:
    run = facts.held.run
    if facts.verdict is not None:
        return _of_verdict(facts, facts.verdict)
    if run.state is RunState.SUCCEEDED:
        return Diagnosis(Kind.FINISHED, "it has finished", run.why or f"step {run.best_step:,}")
    return _ended(facts) if run.is_over else _waiting(facts)


def _ended(facts: Facts) -> Diagnosis:
    """Return the diagnosis of an ended run. The advice is removed from the reason, so that it appears only once."""
    run = facts.held.run
    general = advice_at_the_end(run.cause) if run.cause is not None else ""
    advice = general.replace(" RUN", f" {run.run_id}")
    why = run.why.removesuffix(general).strip().rstrip(".") or "no reason was kept"
    last = run.current_attempt
    where = f" (attempt {last.number}, at step {last.last_step:,})" if last is not None else ""
    if stopped_as_asked(run) or run.state is RunState.CANCELLED:
        return Diagnosis(Kind.ENDED, f"it was {run.state.value}, as asked", why + where)
    title = "it failed" if run.state is RunState.FAILED else "it has stopped: a person must look"
    return Diagnosis(Kind.ENDED, title, why + where, f"{advice} Then {go_on(run, facts.now_s)}".strip())


def _waiting(facts: Facts) -> Diagnosis:
    """Return the diagnosis of a run without a machine: between two attempts, or before the first."""
    run = facts.held.run
    lost, left_s = run.current_attempt, run.not_before_s - facts.now_s
    due = f"the next one is due{f' in {span(left_s)}' if left_s > 0 else ''}" if facts.served else "no next one is rented"
    if lost is None or lost.cause is None:
        why = ", ".join(notice.kind.replace("_", " ") for notice in run.notices) or "none was asked for yet"
        return Diagnosis(Kind.WAITING, "it waits for its first machine", why)
    policy = POLICY[lost.cause]
    return Diagnosis(Kind.LOST, f"attempt {lost.number}: {policy.title}; {due}", lost.detail or policy.title, policy.advice)


def _of_verdict(facts: Facts, verdict: Verdict) -> Diagnosis:
    run = facts.held.run
    match verdict:
        case Healthy(cut_off=True):
            advice = "Nothing to do: it is left alone as long as W&B hears of it."
            return Diagnosis(
                Kind.CUT_OFF, "it is cut off from us, and trains", f"{facts.last_heartbeat()}, but {facts.last_heard()}", advice
            )
        case Healthy(phase=None):
            return _booting(facts)
        case Healthy():
            return Diagnosis(Kind.WELL, f"it is {run.state.value}, and its machine is well", facts.last_heartbeat())
        case Gone(why):
            advice = "Nothing to do: it resumes on another machine." if facts.served else ""
            return Diagnosis(Kind.LOST, "its machine is gone", f"{why}, at step {facts.step:,}", advice)
        case Silent(silent_s, past_limit):
            limit = f"; it is replaced after {span(run.spec.health.silence_s)}" if not past_limit else "; it is being replaced"
            because = f"no heartbeat for {span(silent_s)}, {facts.last_heard()}{limit if facts.served else ''}"
            return Diagnosis(Kind.SILENT, "its machine is silent", because)
        case Stalled(cause, waited_s, limit_s):
            because = f"waited {span(waited_s)}, limit {span(limit_s)}; {facts.last_heartbeat()}"
            return Diagnosis(Kind.STALLED, POLICY[cause].title, because, POLICY[cause].advice)
        case Sick(cause, detail):
            return Diagnosis(Kind.SICK, POLICY[cause].title, detail or cause.value, POLICY[cause].advice)
        case Finished(step):
            return Diagnosis(Kind.FINISHED, "it has finished", f"step {step:,}")
        case Unknown(why):
            return Diagnosis(Kind.UNKNOWN, "how it stands cannot be said", why, "Nothing is destroyed as long as that is so.")


def _booting(facts: Facts) -> Diagnosis:
    run = facts.held.run
    since_s = run.current_attempt.launched_s if run.current_attempt is not None else facts.now_s
    waited, limit = span(facts.now_s - since_s), span(run.spec.health.first_heartbeat_s)
    given_up = f"; it is given up after {limit}" if facts.served else ""
    because = f"it was asked for {waited} ago, and its agent has sent no heartbeat yet{given_up}"
    return Diagnosis(Kind.WAITING, f"attempt {run.attempt} waits for its machine", because)
