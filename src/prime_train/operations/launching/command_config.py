"""The config of a run that is launched by its trainer's command alone."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from prime_train.adapters.config_yaml.settings import Setting, config_text
from prime_train.configs.templates.own_script import Kind, Own, name_of
from prime_train.core.config_tree import Plain
from prime_train.core.errors import UsageError

LABEL = "command line"
"""What findings name in place of the config's file."""
FOLDER, PATTERN = "checkpoints", "step_{step}"
RESUME = "--resume-step {step}"
_ASSUMED = (
    ("name", ("name",), "{name}, from the script or the folder"),
    ("code", ("trainer", "tree"), "the current folder is copied to the machine"),
    ("success", ("trainer", "steps"), "exit code 0 of the command; with trainer.steps, its last step"),
    ("checkpoints", ("checkpoints",), f"each in a folder {FOLDER}/step_N, complete when it has not changed for a while"),
    ("restart", ("trainer", "resume"), "the command with --resume-step N appended, after a checkpoint was restored"),
)
"""What is assumed about a command: the topic, the key of the config that says it otherwise, and the text."""
_PLACEHOLDER = re.compile(r"(\{checkpoints\})")


@dataclass(frozen=True)
class CommandConfig:
    """A config made of a command. `assumed`: what the user did not say, as topic and text."""

    text: str
    assumed: tuple[tuple[str, str], ...]
    label: str = LABEL


def config_of(command: Sequence[str], usd: float, *, name: str | None = None, settings: Sequence[Setting] = ()) -> CommandConfig:
    """Return the smallest config that runs this command: its name is made from the script's, unless one is given, and checkpoints appear in
    the folder `checkpoints`. One word alone is a command line for a shell; several are the command's arguments. `{checkpoints}` stands for
    the checkpoint folder; all other braces mean themselves. `usd`: the budget; `settings`: what will replace its values, and is therefore
    not assumed.

    Raises UsageError if there is no command.
    """
    line = command[0].strip() if len(command) == 1 else shlex.join(command)
    if not line:
        raise UsageError("there is no command to run", fix="write it as you would type it, such as python train.py")
    made = name_of(Own(Kind.COMMAND, line, steps=1, usd=usd, name=name or ""))
    trainer: Plain = {"command": _escaped(line), "resume": RESUME}
    text = config_text({"name": made, "trainer": trainer, "checkpoints": {"folder": FOLDER, "pattern": PATTERN}, "budget": {"usd": usd}})
    given = [setting.path for setting in settings] + ([("name",)] if name else [])
    assumed = [(topic, said.format(name=made)) for topic, path, said in _ASSUMED if not any(one[: len(path)] == path for one in given)]
    return CommandConfig(text, tuple(assumed))


def _escaped(line: str) -> str:
    parts = _PLACEHOLDER.split(line)
    return "".join(part if _PLACEHOLDER.fullmatch(part) else part.replace("{", "{{").replace("}", "}}") for part in parts)
