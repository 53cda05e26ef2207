"""README and the pages under docs/: short enough to read, their links lead somewhere, and their commands and configs are accepted."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from prime_train.adapters.config_yaml import read_config
from prime_train.cli.verbs import app

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "examples" / "consumer-repo" / "README.md")
README_LINES_MAX = 150


def blocks(page: Path, *languages: str) -> Iterator[str]:
    """The page's fenced blocks of these languages."""
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
        if language in languages:
            yield text


def commands() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for block in blocks(page, "console", "sh"):
            for line in block.replace("\\\n", " ").splitlines():
                command = line.removeprefix("$ ").strip()
                if command.startswith("prime-train "):
                    yield page.name, command


def anchors(page: Path) -> set[str]:
    """What GitHub makes of the page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_readme_can_be_read_in_one_sitting() -> None:
    assert len(PAGES[0].read_text(encoding="utf-8").splitlines()) <= README_LINES_MAX


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_to_a_page_and_a_heading_that_are_there(page: Path) -> None:
    lost = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            lost.append(target)
    assert lost == []


@pytest.mark.parametrize(("page", "command"), sorted(set(commands())))
def test_every_command_is_one_that_prime_train_takes(page: str, command: str) -> None:
    words = shlex.split(command, comments=True)[1:]
    at, parent = typer.main.get_command(app), None
    name: str | None = "prime-train"
    while isinstance(at, TyperGroup):
        parent = at.make_context(name, words, parent=parent)
        words = [*parent._protected_args, *parent.args]  # what the group leaves to its commands
        if not words and at.invoke_without_command:
            return
        name, found, words = at.resolve_command(parent, words)
        assert found is not None, f"{page}: there is no {name}"
        at = found
    at.make_context(name, words, parent=parent)


@pytest.mark.parametrize(
    ("page", "text"),
    [(page.name, text) for page in PAGES for text in blocks(page, "yaml") if re.match(r"name: [\w-]+\ntrainer:", text)],
)
def test_every_config_shown_is_a_valid_one(page: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / f"{text.split()[1]}.yaml"
    file.write_text(text)
    assert read_config(file).findings == (), page
