"""The examples below each command's help are calls that the command accepts."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer.main

from prime_train.cli.help import json_reference, reference
from prime_train.cli.help.examples import EXAMPLES
from prime_train.cli.help.json_fields import JSON_FIELDS
from prime_train.cli.verbs import app
from tests.cli.inside import Inside

ROOT: Any = typer.main.get_command(app)


def commands(group: Any, before: str = "") -> dict[str, Any]:
    """Yield every command by its words, including those of groups, except those that only jobs on GitHub
    call.
    """
    found: dict[str, Any] = {}
    for name, listed in group.commands.items():
        command = listed.loaded
        inner = (
            commands(command, f"{before}{name} ")
            if hasattr(command, "commands")
            else {f"{before}{name}": command}
        )
        found |= inner if name != "gha" else {}
    return found


def parse(words: list[str]) -> Any:
    """Return the innermost context of a call that is parsed but not carried out. Raises the error of an
    invalid call.
    """
    command: Any = ROOT
    context, rest = None, words
    while True:
        context = command.make_context(words[0] if context is None else command.name, rest, parent=context)
        if not hasattr(command, "commands"):
            return context
        _, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        command = command.loaded


def test_every_command_has_examples_that_its_help_shows(shell: Inside) -> None:
    assert sorted(EXAMPLES) == sorted(commands(ROOT))
    output = shell.ok("status", "-h")
    assert "Examples:\n    prime-train status\n        all runs\n" in output
    assert "prime-train status --state failed --since 2d\n" in output


@pytest.mark.parametrize(
    ("command", "call"), [(command, call) for command, calls in EXAMPLES.items() for _, call in calls]
)
def test_an_example_is_a_call_of_its_command(command: str, call: str) -> None:
    program, *words = shlex.split(call)
    assert program == "prime-train"
    context = parse(words)
    assert context.command is commands(ROOT)[command]
    assert not context.args


def test_a_call_with_an_error_would_be_found() -> None:
    for call in ("status --stat failed", "checkpoints demo verify --step x", "nothing"):
        with pytest.raises(
            Exception, match=r"No such option|not a valid integer|No such command|should be a valid integer"
        ):
            parse(call.split())


@pytest.mark.parametrize(
    ("name", "text"), [("cli.md", reference.markdown), ("json.md", json_reference.markdown)]
)
def test_the_pages_of_commands_are_fresh(name: str, text: Callable[[], str]) -> None:
    page = Path(__file__).parents[2] / "docs" / name
    assert page.read_text(encoding="utf-8") == text(), (
        f"make it anew: python -m {text.__module__} > docs/{name}"
    )


def test_the_json_of_every_call_is_on_its_page_below_its_command() -> None:
    tables = re.findall(r"^`prime-train (.*) --json`:$", json_reference.markdown(), re.MULTILINE)
    assert sorted(tables) == sorted(JSON_FIELDS)
    assert "and `prime-train diagnose --log --json`: [json.md](json.md#diagnose)." in reference.markdown()
