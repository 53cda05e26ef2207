"""The config of a run that is launched by its trainer's command alone."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from prime_train.errors import UsageError
from prime_train.planning.new_configs.own_script import Own, name_of
from prime_train.spec.overrides import ChosenSetting, config_text
from prime_train.spec.tree import Plain

LABEL = "command line"
"""The label that findings show in place of the config's file name."""
FOLDER, PATTERN = "checkpoints", "step_{step}"
_ASSUMED = (
    ("name", ("name",), "{name}, from the script or the folder"),
    ("code", ("trainer", "code"), "the current folder is copied to the machine"),
    (
        "success",
        ("trainer", "steps"),
        "exit code 0 of the command, after the last step if trainer.steps is set",
    ),
    (
        "checkpoints",
        ("checkpoints",),
        f"each a folder or a file {FOLDER}/step_N, which is complete when it has not changed for a while",
    ),
    (
        "restart",
        ("trainer", "resume"),
        "the same command, which finds the restored checkpoint by itself or has the option --resume-step",
    ),
)
"""The assumptions about a command: the topic, the config key that overrides the assumption, and the text."""
_PLACEHOLDER = re.compile(r"(\{checkpoints\})")


@dataclass(frozen=True)
class CommandConfig:
    """A config made from a command. `assumed`: the values that the user did not give, as pairs of topic and
    text.
    """

    text: str
    assumed: tuple[tuple[str, str], ...]
    label: str = LABEL


def config_of(
    command: Sequence[str], usd: float, *, name: str | None = None, settings: Sequence[ChosenSetting] = ()
) -> CommandConfig:
    """Return the smallest config that runs this command. Its name is made from the script's, unless one is
    given, and its checkpoint folder is `checkpoints`. A single word is a command line for a shell; several
    words are the program and its arguments. `{checkpoints}` stands for the checkpoint folder; all other
    braces are kept literally. `usd`: the budget; `settings`: values that will replace the config's, and are
    therefore not listed as assumed.

    Raises UsageError if there is no command.
    """
    line = command[0].strip() if len(command) == 1 else shlex.join(command)
    if not line:
        raise UsageError(
            "no command was given", fix="write the command as you would in a shell, such as python train.py"
        )
    made = name_of(Own("command", line, steps=1, usd=usd, name=name or ""))
    trainer: Plain = {"command": _escaped(line), "resume": ""}
    text = config_text(
        {
            "name": made,
            "trainer": trainer,
            "checkpoints": {"folder": FOLDER, "pattern": PATTERN},
            "budget": {"usd": usd},
        }
    )
    given = [setting.path for setting in settings] + ([("name",)] if name else [])
    assumed = [
        (topic, wording.format(name=made))
        for topic, path, wording in _ASSUMED
        if not any(one[: len(path)] == path for one in given)
    ]
    return CommandConfig(text, tuple(assumed))


def _escaped(line: str) -> str:
    parts = _PLACEHOLDER.split(line)
    return "".join(
        part if _PLACEHOLDER.fullmatch(part) else part.replace("{", "{{").replace("}", "}}") for part in parts
    )
