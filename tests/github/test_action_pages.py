"""Each action's page has the content of its action.yml, from which the tables are made."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.github.files import ACTIONS, MAJOR, action, actions, steps

OWN = "owner/prime-train/actions/"


def inputs_table(inputs: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [(f"`{name}`", _default(about), str(about["description"])) for name, about in inputs.items()]
    return _table(("input", "default", "what it is"), rows) if rows else "None."


def outputs_table(outputs: Mapping[str, Mapping[str, Any]]) -> str:
    return _table(
        ("output", "what it is"),
        [(f"`{name}`", str(about["description"])) for name, about in outputs.items()],
    )


def _default(about: Mapping[str, Any]) -> str:
    if about.get("required"):
        return "required"
    return f"`{about['default']}`" if about["default"] else "empty"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ("---",) * len(head), *rows))


def filled(page: str, described: Mapping[str, Any]) -> str:
    """Return the page with its tables made from the action."""
    for name, table in (
        ("inputs", inputs_table(described["inputs"])),
        ("outputs", outputs_table(described["outputs"])),
    ):
        head, _, rest = page.partition(f"<!-- {name} -->\n")
        _, end, tail = rest.partition(f"<!-- /{name} -->")
        page = f"{head}<!-- {name} -->\n{table}\n{end}{tail}"
    return page


def pages() -> list[Path]:
    return [path.with_name("README.md") for path in actions()]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.parent.name)
def test_the_tables_are_those_of_the_action(page: Path) -> None:
    text = page.read_text()
    assert text == filled(text, action(page.parent.name)), (
        "run: PYTHONPATH=. .venv/bin/python tests/github/test_action_pages.py"
    )


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.parent.name)
def test_the_example_gives_the_action_what_it_takes(page: Path) -> None:
    example = yaml.safe_load(page.read_text().partition("```yaml\n")[2].partition("```")[0])
    used = [
        step for step in [*steps(example), *example.get("steps", [])] if str(step.get("uses")).startswith(OWN)
    ]
    assert [step["uses"] for step in used] == [f"{OWN}{page.parent.name}@{MAJOR}"]
    (given,) = (set(step.get("with", {})) for step in used)
    inputs = action(page.parent.name)["inputs"]
    assert given <= set(inputs)
    assert {name for name, about in inputs.items() if about.get("required")} <= given


def test_every_action_has_a_page() -> None:
    assert {path.parent.name for path in actions()} == {
        path.parent.name for path in ACTIONS.glob("*/README.md")
    }


if __name__ == "__main__":
    for path in pages():
        path.write_text(filled(path.read_text(), action(path.parent.name)))
