"""The tables in the documentation equal those generated from the code."""

from pathlib import Path

from prime_train.core.markdown_tables import policy_markdown, transitions_markdown
from tests.test_dependency_table import imports_markdown

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
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
