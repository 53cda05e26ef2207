"""The tables of the core as Markdown for the documentation, generated from the code so that the two cannot diverge."""

from prime_train.core.causes import POLICY, Policy
from prime_train.core.run import TRANSITIONS, RunState


def transitions_markdown() -> str:
    """Return one row for each state: every event that is legal in it and the state it leads to."""
    rows = ["| state | event → next state |", "|---|---|"]
    for state in RunState:
        moves = [f"{event.value} → {after.value}" for (before, event), after in TRANSITIONS.items() if before is state]
        rows.append(f"| {state.value} | {', '.join(sorted(moves)) or 'none: the run has ended'} |")
    return "\n".join(rows)


def policy_markdown() -> str:
    """Return one row for each cause: whether another machine is rented, and the effect on offer and pace."""
    rows = ["| cause | meaning | another machine? |", "|---|---|---|"]
    rows += [f"| `{cause.value}` | {policy.title} | {_retry_words(policy)} |" for cause, policy in POLICY.items()]
    return "\n".join(rows)


def _retry_words(policy: Policy) -> str:
    words = {"free": "yes, not counted", "counted": "yes, counted", "never": "no"}[policy.retry.value]
    words += ", and a person is needed" if policy.needs_person else ""
    words += ", with this offer ranked last" if policy.exclude_offer else ""
    return words + (", after a back-off" if policy.backs_off else "")
