"""Advice is a value: only user interfaces contain commands and flags, and the commands exist."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from prime_train.advice import Advice, Call, Operation, Option, SettingAdvice
from prime_train.cli.verbs import VERBS, app
from prime_train.errors import PermanentError, TemporaryError, UsageError
from prime_train.text.explained_errors import explained
from prime_train.text.invocations import command, flag, worded
from prime_train.webhook.commands.key import DEFAULT, ShowFirst

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("src/prime_train", "agent/prime_agent", "lambdas/prime_lambdas")
FACES = ("src/prime_train/cli/", "src/prime_train/terminal/", "src/prime_train/text/invocations.py")
FACE = re.compile(r"/(commands|report)(/|\.py$)")
LANGUAGES = (".py", ".sh", ".yaml")
OTHER_PROGRAMS = {
    "agent/prime_agent/main.py": {"--disk", "--ticket"},  # the agent's own
    "agent/prime_agent/after_training/kaggle.py": {"--version"},  # pip
    "agent/prime_agent/before_training/image_environment.py": {"--python", "--quiet"},  # uv, pip
    "agent/prime_agent/before_training/own_python.py": {"--python", "--quiet", "--version"},  # uv, pip
    "src/prime_train/aws/package.py": {"--quiet"},  # pip
    "src/prime_train/github/gh.py": {"--env"},  # gh
    "src/prime_train/spec/suggestions.py": {"--steps"},  # an example of a trainer
    "src/prime_train/planning/new_configs/own_script.py": {"--config", "--out", "--output"},  # trainers
    "src/prime_train/launch/provider_drill/stage.py": {"--out"},  # the drill's trainer
    "src/prime_train/launch/provider_drill/train.py": {"--out"},  # its own
    "src/prime_train/providers/local/pods.py": {"--disk", "--ticket"},  # the agent's own
    "src/prime_train/providers/kubernetes/manifests.py": {"--disk", "--ticket"},  # the agent's own
    "src/prime_train/providers/install/bring_up.sh": {
        "--disk",
        "--python",
        "--quiet",
        "--ticket",
        "--version",
    },  # the agent's own, uv, pip
    "src/prime_train/trainers/prime_rl/validators/package_source.py": {"--format", "--verify"},  # git
    "src/prime_train/trainers/prime_rl/validators/dependencies.py": {"--python"},  # uv
    "src/prime_train/trainers/prime_rl/conventions.py": {"--dry-run", "--run"},  # prime-rl
    "src/prime_train/trainers/prime_rl/one_gpu.py": {"--dry-run"},  # prime-rl
    "src/prime_train/demo/train.py": {"--keep", "--out", "--steps"},  # the demo's trainer
    "src/prime_train/checkpoints/deletable.py": {"--bucket"},  # aws
    "src/prime_train/interop/export/skypilot.py": {"--secret"},  # sky
    "src/prime_train/interop/imports/dstack.py": {"--python"},  # uv
    "src/prime_train/interop/imports/needs.py": {"--host"},  # mpirun
    "src/prime_train/watch/agent_by_hand.py": {"--disk", "--ticket"},  # the agent's own
    "src/prime_train/images/build.py": {"--format", "--tag"},  # docker
    "src/prime_train/images/context.py": {"--from", "--yes"},  # Dockerfile, apt-get
    "src/prime_train/images/steps/install.sh": {"--quiet"},  # pip
    "src/prime_train/app/key_places.py": {"--env"},  # gh
    "src/prime_train/pages/charts/svg.py": {"--again"},  # a variable of a style sheet
    "src/prime_train/trainers/prime_rl/install.py": {"--force", "--python", "--version"},  # git, uv
}
"""Flags of other programs that are spelled like one of prime-train's."""

_FLAG = re.compile(r"(?<![\w-])--[a-z][\w.-]*")
_COMMAND = re.compile(r"prime-train ([a-z][a-z-]*)")


VERB_ROWS = [one for verbs in VERBS.values() for verb in verbs for one in (verb, *verb.verbs)]
COMMANDS = {tuple(verb.name.split()): verb.command for verb in VERB_ROWS} | {(): typer.main.get_command(app)}
FLAGS = {
    path: {name for param in one.params for name in (*param.opts, *param.secondary_opts)}
    for path, one in COMMANDS.items()
}


def flags_of(path: tuple[str, ...]) -> set[str]:
    """Return the flags that may follow the words; of a group that runs one of its commands if none is named,
    those of that command, too.
    """
    return FLAGS[path] | (FLAGS[(*path, DEFAULT)] if isinstance(COMMANDS[path], ShowFirst) else set())


def texts(file: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of every string constant, docstrings and the parts of f-strings included, and of
    every comment; of a file in another language, every line.
    """
    source = file.read_text(encoding="utf-8")
    if file.suffix != ".py":
        yield from enumerate(source.splitlines(), start=1)
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def named(text: str, *, besides: set[str]) -> set[str]:
    """Return prime-train's flags and commands that the text contains."""
    ours = set().union(*FLAGS.values()) - besides
    verbs = {path[0] for path in FLAGS if path}
    flags = {word.rstrip(".-") for word in _FLAG.findall(text)} & ours
    return flags | {f"prime-train {verb}" for verb in _COMMAND.findall(text) if verb in verbs}


def test_only_faces_name_our_commands_and_flags() -> None:
    found, besides_used = [], set()
    for file in sorted(
        file for package in PACKAGES for file in (ROOT / package).rglob("*") if file.suffix in LANGUAGES
    ):
        name = file.relative_to(ROOT).as_posix()
        if name.startswith(FACES) or FACE.search(name):
            continue
        for line, text in texts(file):
            besides = OTHER_PROGRAMS.get(name, set())
            found += [f"{name}:{line}: {word}" for word in sorted(named(text, besides=besides))]
            besides_used |= {(name, word) for word in named(text, besides=set()) & besides}
    assert found == []
    assert besides_used == {(name, word) for name, words in OTHER_PROGRAMS.items() for word in words}


def test_the_search_for_flags_reads_comments_docstrings_and_messages(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text('"""With --usd."""\nraise ValueError(f"{1} add --yes")  # as --force does\n')
    assert [word for _, text in texts(file) for word in named(text, besides=set())] == [
        "--usd",
        "--yes",
        "--force",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise it with --usd 5.", {"--usd"}),
        ("`prime-train status` lists them", {"prime-train status"}),
        ("--deep=trust", {"--deep"}),
        ("torchrun --nproc-per-node 8 --save_steps 4 --run.name x --", set()),
        ("prime-train needs uv", set()),
    ],
)
def test_the_search_for_flags_finds_ours_alone(text: str, words: set[str]) -> None:
    assert named(text, besides=set()) == words


@pytest.mark.parametrize("operation", Operation)
def test_every_command_that_advice_names_exists(operation: Operation) -> None:
    program, *words = command(Call(operation)).split()
    path = tuple(word for word in words if not word.startswith("-"))
    assert program == "prime-train"
    assert path in COMMANDS
    assert {word for word in words if word.startswith("-")} <= flags_of(path)


@pytest.mark.parametrize("setting", SettingAdvice)
def test_every_flag_that_advice_names_exists(setting: SettingAdvice) -> None:
    assert any(flag(Option(setting)) in flags for flags in FLAGS.values())


def test_a_value_in_a_command_is_quoted_for_a_shell() -> None:
    assert (
        flag(Option(SettingAdvice.PARAMETER, "RunSecrets=HF_TOKEN,JUDGE_*"))
        == "--set 'RunSecrets=HF_TOKEN,JUDGE_*'"
    )


def test_advice_is_worded_by_each_face() -> None:
    resume = Call(Operation.RESUME, "tiny-1", (Option(SettingAdvice.USD, "6.5"), Option(SettingAdvice.LORA)))
    advice = Advice("raise the budget: ", resume, ", or validate with ", Option(SettingAdvice.DEEP, "trust"))
    assert (
        worded(advice)
        == "raise the budget: prime-train resume tiny-1 --usd 6.5 --lora, or validate with --deep=trust"
    )
    assert str(advice) == "raise the budget: resume tiny-1 usd=6.5 lora, or validate with deep=trust"
    assert worded("wait") == "wait"
    assert not Advice()


@pytest.mark.parametrize("error", [UsageError, PermanentError, TemporaryError])
def test_an_error_is_printed_with_the_command_that_helps(error: Any) -> None:
    message = explained(error("it is over", fix=Advice("see ", Call(Operation.STATUS))))[1]
    assert message.startswith("it is over")
    assert message.endswith("\n  fix: see prime-train status")
