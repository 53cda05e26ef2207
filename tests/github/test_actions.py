"""The rules of the composite actions that no other tool checks."""

import re
from collections.abc import Mapping
from typing import Any

import pytest
from typer.main import get_command

from prime_train.cli.verbs import app
from tests.github.files import VERBS, action, actions, everything, named, parsed, steps

VERB = '"$RUNNER_TEMP/prime-train/bin/python" -I "$RUNNER_TEMP/prime-train/bin/prime-train" gha '
MADE_OF = re.compile(r"\$\{\{ inputs\.([a-z-]+) \}\}")
PRODUCED = re.compile(r"\$\{\{ steps\.([a-z-]+)\.outputs\.([a-z-]+) \}\}")
OPTION = "PRIME_TRAIN_INPUT_"
NOT_OPTIONS = {
    "url": {"PRIME_TRAIN_URL", "PRIME_TRAIN_STORE"},
    "market-key": {"PRIME_TRAIN_MARKET_KEY"},
    "launch-key": {"PRIME_TRAIN_LAUNCH_KEY"},
    "master-key": {"PRIME_TRAIN_MASTER_KEY"},
    "credentials": {"PRIME_TRAIN_CREDENTIALS"},
    "wandb-api-key": {"WANDB_API_KEY"},
    "alert-url": {"PRIME_TRAIN_ALERT_URL"},
    "discord-webhook-url": {"DISCORD_WEBHOOK_URL"},
    "slack-token": {"PRIME_TRAIN_SLACK_TOKEN"},
    "slack-channel": {"PRIME_TRAIN_SLACK_CHANNEL"},
    "slack-webhook": {"PRIME_TRAIN_SLACK_WEBHOOK"},
    "slack-mention": {"PRIME_TRAIN_SLACK_MENTION"},
    "policy": {"PRIME_TRAIN_POLICY"},
    "bucket": {"PRIME_TRAIN_BUCKET"},
    "token": {"GITHUB_TOKEN"},
}
"""Inputs that every command has, under the names that all of prime-train reads."""


def verb_step(name: str) -> Mapping[str, Any]:
    (step,) = (step for step in steps(action(name)) if step.get("id") == "verb")
    return step


def variables(name: str) -> set[str]:
    return NOT_OPTIONS.get(name, {OPTION + name.upper().replace("-", "_")})


def test_there_is_an_action_for_each_verb_and_one_that_installs() -> None:
    assert {path.parent.name for path in actions()} == {"setup", *VERBS}


def test_no_script_is_made_of_expressions() -> None:
    for path in everything():
        for step in steps(parsed(path)):
            assert "${{" not in step.get("run", ""), f"{named(path)}: {step['run']}"


def test_every_script_says_its_shell() -> None:
    for path in everything():
        for step in steps(parsed(path)):
            assert "run" not in step or step.get("shell") == "bash", f"{named(path)}: {step}"


@pytest.mark.parametrize("name", VERBS)
def test_an_action_installs_and_calls_one_verb(name: str) -> None:
    uv, install, verb = steps(action(name))
    assert uv == next(steps(action("setup")))
    pins = " watcher" if name == "watch" else ""
    assert install == {"shell": "bash", "run": f'"$GITHUB_ACTION_PATH/../setup/install.sh"{pins}'}
    assert verb["run"] == VERB + name


@pytest.mark.parametrize("name", VERBS)
def test_every_input_reaches_the_verb_by_its_environment_and_nothing_else_does(name: str) -> None:
    given = {variable: MADE_OF.fullmatch(value) for variable, value in verb_step(name)["env"].items()}
    assert all(given.values())
    expected = {(variable, wanted) for wanted in action(name)["inputs"] for variable in variables(wanted)}
    assert {(variable, match[1]) for variable, match in given.items() if match} == expected


@pytest.mark.parametrize("name", ["setup", *VERBS])
def test_every_output_comes_from_a_step(name: str) -> None:
    described = action(name)
    ids = {step["id"] for step in steps(described) if "id" in step}
    for output, about in described["outputs"].items():
        match = PRODUCED.fullmatch(about["value"])
        assert match, about
        assert match[1] in ids
        assert match[2] == output


@pytest.mark.parametrize("name", VERBS)
def test_the_inputs_are_the_options_of_the_verb(name: str) -> None:
    group = get_command(app).commands["gha"].loaded  # type: ignore[attr-defined]
    command = group.commands[name].loaded
    options = {_input_of(parameter): parameter for parameter in command.params if parameter.name != "help"}
    inputs = {wanted: about for wanted, about in action(name)["inputs"].items() if wanted not in NOT_OPTIONS}
    assert set(options) == set(inputs)
    for wanted, about in inputs.items():
        assert options[wanted].envvar in ([*variables(wanted)], *variables(wanted)), wanted
        assert _message(options[wanted].default) == about.get("default", ""), wanted


def _input_of(parameter: Any) -> str:
    return str(parameter.opts[0]).removeprefix("--")


def _message(default: object) -> str:
    """Return a default as an action's input has it."""
    if default is None or default == ():
        return ""
    return str(default).lower() if isinstance(default, bool) else str(getattr(default, "value", default))
