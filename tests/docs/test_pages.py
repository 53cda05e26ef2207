"""README and the pages under docs/: short enough to read, links with existing targets, valid commands and
configs.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from prime_train.cli.lazy import LazyCommand
from prime_train.cli.verbs import app
from prime_train.spec.reader import read_config

ROOT = Path(__file__).parents[2]
PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "examples").rglob("README.md")),
)
README_LINES_MAX = 150


def blocks(page: Path, *languages: str) -> Iterator[str]:
    """Yield the page's fenced blocks of these languages."""
    for language, text in re.findall(
        r"^```(\w+)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    ):
        if language in languages:
            yield text


def commands() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for block in blocks(page, "console", "sh"):
            for line in block.replace("\\\n", " ").splitlines():
                command = line.removeprefix("$ ").strip()
                if command.startswith("prime-train "):
                    yield page.name, command


def named_in_sentences() -> Iterator[tuple[str, str]]:
    """Yield commands in the text around the blocks. Options that are carried out while they are read, such as
    --help, are left out.
    """
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for command in re.findall(r"`(prime-train\s[^`]*)`", text):
            words = " ".join(command.partition(" > ")[0].split())
            if not re.search(r" (-h|--help|--version|--install-completion|--show-completion)\b", words):
                yield page.name, re.sub(r"\bN\b", "1", words)


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub makes of the page's headings."""
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
    parse(page, command)


@pytest.mark.parametrize(("page", "command"), sorted(set(named_in_sentences())))
def test_a_command_that_a_sentence_names_is_one_that_prime_train_takes(page: str, command: str) -> None:
    """A sentence may leave out arguments, and the value of an option."""
    try:
        parse(page, command)
    except Exception as error:  # one of click's, which typer may bring along in a package of its own
        if type(error).__name__ not in {"MissingParameter", "BadOptionUsage"}:
            raise


def test_a_sentence_that_names_a_command_or_an_option_that_is_not_there_would_be_found() -> None:
    for command in ("prime-train resumes RUN", "prime-train resume RUN --usd-max 5", "prime-train key make"):
        with pytest.raises(Exception, match="No such"):
            parse("a page", command)


def parse(page: str, command: str) -> None:
    """Parse a command without carrying it out. Raises click's error for one that is not taken."""
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
        assert isinstance(found, LazyCommand)
        at = found.loaded
    at.make_context(name, words, parent=parent)


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (page.name, text)
        for page in PAGES
        for text in blocks(page, "yaml")
        if re.match(r"name: [\w-]+\ntrainer:", text)
    ],
)
def test_every_config_shown_is_a_valid_one(page: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / f"{text.split()[1]}.yaml"
    file.write_text(text)
    assert read_config(file).findings == (), page


def test_everything_that_the_page_on_extending_names_exists() -> None:
    """Paths are relative to the repository or to src/prime_train; other names occur in the product."""
    named = re.findall(r"`([^-`\s][^`\s]*)`", (ROOT / "docs" / "extending.md").read_text(encoding="utf-8"))
    product = [
        path.read_text(encoding="utf-8")
        for top in ("src", "agent", "lambdas")
        for path in (ROOT / top).rglob("*")
        if path.suffix in {".py", ".yaml"}
    ]
    lost = []
    for name in named:
        if "/" in name or name.endswith((".py", ".toml")):
            pattern = name.rstrip("/") if "/" in name else f"**/{name}"
            found = any(next(base.glob(pattern), None) for base in (ROOT, ROOT / "src" / "prime_train"))
        else:
            found = any(re.search(rf"\b{re.escape(name.rpartition('.')[2])}\b", text) for text in product)
        if not found:
            lost.append(name)
    assert lost == []
    assert len(named) > 50


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_module_that_a_page_names_exists(page: Path) -> None:
    """Paths are relative to the repository, or to one of its packages."""
    bases = (ROOT, ROOT / "src" / "prime_train", ROOT / "agent")
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"`([\w*]+/[\w/*]+\.py)`", text)
    if page.name == "architecture.md":  # on other pages, a name alone may be that of a user's script
        named += [f"**/{name}" for name in re.findall(r"`(\w+\.py)`", text)]
    assert [name for name in named if not any(next(base.glob(name), None) for base in bases)] == []
