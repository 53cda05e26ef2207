"""The examples below each command's help are calls that the command understands."""

import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from prime_train.cli.help.examples import EXAMPLES
from prime_train.cli.help.reference import markdown
from prime_train.cli.verbs import app
from tests.cli.inside import Inside

ROOT: Any = typer.main.get_command(app)


def commands(group: Any, before: str = "") -> dict[str, Any]:
    """Every command by its words, those of groups as well; but for what only jobs on GitHub call."""
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        inner = commands(command, f"{before}{name} ") if hasattr(command, "commands") else {f"{before}{name}": command}
        found |= inner if name != "gha" else {}
    return found


def parse(words: list[str]) -> Any:
    """The innermost context of a call, which is parsed and not carried out. Raises what a call with mistakes does."""
    command: Any = ROOT
    context, rest = None, words
    while True:
        context = command.make_context(words[0] if context is None else command.name, rest, parent=context)
        if not hasattr(command, "commands"):
            return context
        _, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])


def test_every_command_has_examples_that_its_help_shows(shell: Inside) -> None:
    assert sorted(EXAMPLES) == sorted(commands(ROOT))
    said = shell.ok("status", "-h")
    assert "Examples:\n    prime-train status\n        all runs\n" in said
    assert "prime-train status --state failed --since 2d\n" in said


@pytest.mark.parametrize(("command", "call"), [(command, call) for command, calls in EXAMPLES.items() for _, call in calls])
def test_an_example_is_a_call_of_its_command(command: str, call: str) -> None:
    program, *words = shlex.split(call)
    assert program == "prime-train"
    context = parse(words)
    assert context.command is commands(ROOT)[command]
    assert not context.args


def test_a_call_with_a_mistake_would_be_found() -> None:
    for call in ("status --stat failed", "checkpoints demo verify --step x", "nothing"):
        with pytest.raises(Exception, match=r"No such option|not a valid integer|No such command|should be a valid integer"):
            parse(call.split())


def test_the_page_of_commands_is_fresh() -> None:
    page = Path(__file__).parents[2] / "docs" / "cli.md"
    assert page.read_text(encoding="utf-8") == markdown(), "make it anew: python -m prime_train.cli.help.reference > docs/cli.md"
