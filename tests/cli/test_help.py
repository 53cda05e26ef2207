"""Help by groups, with -h and --help, completion in the user's shell, and the table from which both are
made.
"""

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import chain

import pytest

from prime_train.cli.lazy import Verb
from prime_train.cli.verbs import VERBS
from prime_train.exit_codes import Exit
from tests.cli.shell import Shell
from tests.waiting import HANG_S


def rows(verbs: Iterable[Verb]) -> Iterator[Verb]:
    for verb in verbs:
        yield verb
        yield from rows(verb.verbs)


ALL = tuple(rows(chain(*VERBS.values())))


def test_every_verb_is_shown_below_its_heading(shell: Shell) -> None:
    output = shell.ok("-h")
    assert output == shell.ok("--help")
    parts = [output.index(f"\n{title}:\n") for title in VERBS]
    assert parts == sorted(parts)
    for part, end, verbs in zip(parts, [*parts[1:], len(output)], VERBS.values(), strict=True):
        assert all(f"\n  {verb.name} " in output[part:end] for verb in verbs)


@pytest.mark.parametrize("verb", ALL, ids=lambda verb: verb.name)
def test_a_row_says_what_the_verb_itself_says(verb: Verb) -> None:
    assert inspect.cleandoc(verb.command.help).split("\n\n")[0] == verb.help
    assert all(inner.name == f"{verb.name} {inner.word}" for inner in verb.verbs)
    if verb.verbs:
        assert verb.command.commands.keys() == {inner.word for inner in verb.verbs}
    else:
        module, _, name = verb.target.partition(":")
        assert name.rstrip("_") == verb.word.replace("-", "_")
        found = getattr(import_module(module), name)
        taken = [parameter.name for parameter in verb.command.params if parameter.name != "help"]
        assert taken == [name for name in inspect.signature(found).parameters if name != "ctx"]


@pytest.mark.parametrize("verb", [verb for verb in ALL if not verb.verbs], ids=lambda verb: verb.name)
def test_help_names_nothing_of_the_code(verb: Verb) -> None:
    texts = [verb.command.help, *(getattr(param, "help", None) or "" for param in verb.command.params)]
    assert [
        text
        for text in texts
        if re.search(r"\b[A-Z][A-Za-z]*Error\b|\b(Args|Raises|Returns)\b|\b[a-z]+_[a-z_]+\(|`[A-Z]\w+`", text)
    ] == []


@pytest.mark.parametrize("verb", ["gha stop", "gha watch"])
def test_help_gives_the_unit_of_minutes(verb: str) -> None:
    (row,) = (row for row in ALL if row.name == verb)
    texts = {param.name: param.help for param in row.command.params if "minutes" in param.name}
    assert texts
    assert all(" minutes " in text and "seconds" not in text for text in texts.values())


LOADED = """
import json, sys
before = set(sys.modules)  # what the interpreter loads for its own environment
from prime_train.cli.main import main
sys.argv = ["prime-train", *sys.argv[1:]]
try:
    main()
finally:
    found = {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items() if name not in before}
    print(json.dumps(found), file=sys.stderr)
"""


def loaded(shell: Shell, words: str) -> dict[str, str]:
    """Return the modules that a call of the command loads in a fresh interpreter, with their files."""
    command = [sys.executable, "-c", LOADED, *words.split()]
    done = subprocess.run(
        command, env=shell.env, cwd=shell.here, capture_output=True, text=True, timeout=HANG_S, check=True
    )
    found: dict[str, str] = json.loads(done.stderr)
    return found


def test_only_the_verb_that_is_called_is_imported(shell: Shell) -> None:
    modules = {verb.name: verb.target.partition(":")[0] for verb in ALL}
    calls = {
        "-h": set(),
        "--version": set(),
        "rules": {"rules"},
        "config list": {"config list"},
        "config save -h": {"config save"},
    }
    for words, own in calls.items():
        imported = loaded(shell, words)
        assert {name for name, module in modules.items() if module in imported} == own, words


OTHERS = {
    "typer",
    "shellingham",
    "annotated_doc",
    "annotated_types",
    "pydantic",
    "pydantic_core",
    "typing_extensions",
    "typing_inspection",
}
"""Packages of others that the help of a command loads: Typer and what it loads itself."""
OURS_MAX = 25
"""Number of modules of prime_train that it loads. Lower this when there are fewer."""


@pytest.mark.parametrize("words", ["status", "validate", "run", "export", "provider add", "gha stop"])
def test_the_help_of_a_command_loads_nothing_that_only_running_it_needs(shell: Shell, words: str) -> None:
    found = loaded(shell, f"{words} --help")
    ours = sorted(
        name
        for name, file in found.items()
        if name.startswith("prime_train.") and not file.endswith("__init__.py")
    )
    assert {name.partition(".")[0] for name, file in found.items() if "site-packages" in file} - {
        "prime_train"
    } <= OTHERS
    assert len(ours) <= OURS_MAX, f"{len(ours)}: {' '.join(ours)}"


IMPORT_ALL = f"""
{LOADED.partition("from prime_train.cli.main")[0]}
from importlib import import_module
for module in sys.argv[1:]:
    import_module(module)
print(json.dumps({{name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items() if name not in before}}))
"""


def test_no_command_imports_at_its_top_what_only_running_it_needs() -> None:
    modules = sorted(
        {target.partition(":")[0] for verb in ALL for target in (verb.target, verb.parsed_by) if target}
    )
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, *modules],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=True,
    )
    found: dict[str, str] = json.loads(done.stdout)
    assert set(modules) <= found.keys()
    assert {name.partition(".")[0] for name, file in found.items() if "site-packages" in file} - {
        "prime_train"
    } <= OTHERS


def test_a_word_for_help_in_a_value_or_a_command_is_none_to_the_command(shell: Shell) -> None:
    assert shell.ok("status", "--name", "-h") == shell.ok("status", "--name", "-x")
    done = shell.run("run", "--dry-run", "--", "python", "--help")
    assert (done.returncode, done.stdout) == (Exit.USAGE, "")
    assert "needs a budget" in done.stderr


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_verbs_are_completed_in_every_shell(shell: Shell, name: str) -> None:
    typed = {"COMP_WORDS": "prime-train sta", "COMP_CWORD": "1", "_TYPER_COMPLETE_ARGS": "prime-train sta"}
    done = shell.run(
        _PRIME_TRAIN_COMPLETE=f"complete_{name}", _TYPER_COMPLETE_FISH_ACTION="get-args", **typed
    )
    assert "status" in done.stdout
    assert "validate" not in done.stdout


def test_options_are_completed_and_only_their_verb_is_imported(shell: Shell) -> None:
    typed = {"COMP_WORDS": "prime-train status --s", "COMP_CWORD": "2"}
    done = shell.run(_PRIME_TRAIN_COMPLETE="complete_bash", **typed)
    assert done.stdout.split() == ["--state", "--since"]
