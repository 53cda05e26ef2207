"""The tables in the documentation equal those generated from the code."""

from pathlib import Path

import pytest

from prime_train.providers.kinds import PROVIDERS
from prime_train.providers.rental.answers import known_answers
from prime_train.runs.run import TRANSITIONS, RunState
from prime_train.spec.causes import POLICY, CausePolicy
from prime_train.trainers.conventions import kernels
from prime_train.trainers.conventions.environment_by_version import markdown
from tests.test_dependency_table import order_markdown

DOCS = Path(__file__).parents[2] / "docs"


def transitions_markdown() -> str:
    """Return one row for each state: every event that is legal in it and the state it leads to."""
    rows = ["| state | event → next state |", "|---|---|"]
    for state in RunState:
        moves = [
            f"{event.value} → {after.value}"
            for (before, event), after in TRANSITIONS.items()
            if before is state
        ]
        rows.append(f"| {state.value} | {', '.join(sorted(moves)) or 'none: the run has ended'} |")
    return "\n".join(rows)


def policy_markdown() -> str:
    """Return one row for each cause: whether another machine is rented, and the effect on offer and pace."""
    rows = ["| cause | meaning | another machine? |", "|---|---|---|"]
    rows += [
        f"| `{cause.value}` | {policy.title} | {_retry_words(policy)} |" for cause, policy in POLICY.items()
    ]
    return "\n".join(rows)


def _retry_words(policy: CausePolicy) -> str:
    words = {"free": "yes, not counted", "counted": "yes, counted", "never": "no"}[policy.retry.value]
    words += ", and a person is needed" if policy.needs_person else ""
    words += ", with this offer ranked last" if policy.exclude_offer else ""
    return words + (", after a back-off" if policy.backs_off else "")


def beliefs_markdown() -> str:
    """Return one row for each answer of a provider's API that no source has told."""
    rows = ["| provider | answer | what is believed of it |", "|---|---|---|"]
    for name, kind in PROVIDERS.items():
        found = [answer for answer in known_answers(name) if answer.is_belief]
        rows += [
            f"| {kind.title} | `{answer.call}`: {answer.status_text} | {answer.says} |" for answer in found
        ]
    return "\n".join(rows)


TABLES = {
    "architecture.md": {
        "imports": order_markdown,
        "transitions": transitions_markdown,
        "policy": policy_markdown,
    },
    "environment.md": {"variables": markdown, "kernels": kernels.markdown},
    "providers.md": {"beliefs": beliefs_markdown},
}


def filled(page: str) -> str:
    """Return the page with its tables generated from the code."""
    text = (DOCS / page).read_text()
    for name, table in TABLES[page].items():
        head, _, rest = text.partition(f"<!-- {name} -->\n")
        _, end, tail = rest.partition(f"<!-- /{name} -->")
        text = f"{head}<!-- {name} -->\n{table()}\n{end}{tail}"
    return text


@pytest.mark.parametrize("page", TABLES)
def test_the_tables_of_the_pages_are_those_of_the_code(page: str) -> None:
    assert (DOCS / page).read_text() == filled(page), "run: .venv/bin/python -m tests.docs.test_tables"


if __name__ == "__main__":
    for each in TABLES:
        (DOCS / each).write_text(filled(each))
