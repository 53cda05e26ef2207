"""How a user's own script is told to resume by a setting that is no option of an argument parser: a variable
that the command sets, a field of a class of settings, or a key of a file of settings.
"""

import re
import shlex
from collections.abc import Iterator

_WORDS = re.compile(r"\b(?P<name>[A-Za-z_]\w{0,60})\s*==\s*[\"'](?P<word>resume|latest|last|auto)[\"']")
_FIELD = re.compile(
    r"^\s*(?P<name>[A-Za-z_]\w{0,60})\s*(?::[^=\n#]{1,80})?=\s*"
    r"(?P<value>None|False|\"\"|''|field\(\s*default\s*=\s*(?:None|False)\b)",
    re.MULTILINE,
)
_NAMES = re.compile(
    r"^(?:resume\w*|load_(?:from|ckpt|checkpoint)\w*|(?:init|start|restore|continue)_from\w*|restore\w*|ckpt_path|"
    r"checkpoint_path)$",
    re.IGNORECASE,
)
_SETS = re.compile(r"^--[A-Za-z][\w.-]*=")
_ASSIGNS = re.compile(r"^\+{0,2}[A-Za-z_][\w.]*=")


def settings_that_resume(command: str, text: str) -> tuple[str, ...]:
    """Return all arguments with which a script with this text may be told to resume by a setting, the
    likeliest first, as `trainer.resume` has them. They are written as the command writes its own.
    """
    form = _form(command)
    found = [_written(form, name, value) for name, value in _settings(text)]
    return tuple(dict.fromkeys(found))


def _settings(text: str) -> Iterator[tuple[str, str]]:
    for found in _WORDS.finditer(text):
        if found["name"] not in ("__name__", "mode", "key", "name"):
            yield found["name"], found["word"]
    for found in _FIELD.finditer(text):
        if _NAMES.match(found["name"]):
            yield found["name"], "True" if "False" in found["value"] else "{checkpoint}"


def _form(command: str) -> str:
    """Return how the command writes a setting: `--name=value`, `name=value` or `--name value`."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if any(_SETS.match(word) for word in words):
        return "--{0}={1}"
    return "{0}={1}" if any(_ASSIGNS.match(word) for word in words) else "--{0} {1}"


def _written(form: str, name: str, value: str) -> str:
    return f"--{name}" if form == "--{0} {1}" and value == "True" else form.format(name, value)
