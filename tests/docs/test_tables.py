"""The tables in the documentation equal those generated from the code."""

from pathlib import Path

from prime_train.core.causes import POLICY, Policy
from prime_train.core.run import TRANSITIONS, RunState
from tests.test_dependency_table import imports_markdown

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"


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


TABLES = {"imports": imports_markdown, "transitions": transitions_markdown, "policy": policy_markdown}


def filled(text: str) -> str:
    """Return the page with its tables generated from the code."""
    for name, table in TABLES.items():
        head, _, rest = text.partition(f"<!-- {name} -->\n")
        _, end, tail = rest.partition(f"<!-- /{name} -->")
        text = f"{head}<!-- {name} -->\n{table()}\n{end}{tail}"
    return text


def test_the_tables_of_the_architecture_page_are_those_of_the_code() -> None:
    text = PAGE.read_text()
    assert text == filled(text), "run: .venv/bin/python -m tests.docs.test_tables"


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
