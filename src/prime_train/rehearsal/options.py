"""What the script's text says of its options: how often it saves, and how long it trains."""

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prime_train.spec.checkpoint_names import EPOCH

_OPTION = re.compile(
    r"""["'](?P<option>--[A-Za-z][\w.-]{0,60})["'](?P<rest>[^()]{0,300})""",
)
_SETTING = re.compile(
    r"^[ \t]*(?P<name>[a-z]\w{0,60})\s*(?::\s*int[^=\n]{0,20})?=\s*(?P<value>\d[\d_]*)[ \t]*(?:#|$)",
    re.MULTILINE,
)
BY_DASHES = (
    r"configurator|HfArgumentParser|simple_parsing|draccus|tyro|jsonargparse|\bfire\b|pydantic_settings"
)
"""What makes options of a script's variables or fields."""
_BY_DASHES = re.compile(BY_DASHES)
_DEFAULT = re.compile(r"default\s*=\s*(?P<value>\d[\d_]*)\b(?!\.)")
_SAVES = re.compile(
    r"^--(?:(?:save|ckpt|checkpoint|snapshot)[\w-]*?(?:every|steps?|interval|freq|iters?|period|epochs?|n)|"
    r"(?:every|eval[-_]?(?:interval|every|steps)|val[-_]?(?:interval|every|steps)|snap|"
    r"(?:every|interval)[-_](?:save|ckpt|checkpoint)[\w-]*|log[-_]?save[\w-]*))$",
    re.IGNORECASE,
)
_NOT_SAVES = re.compile(r"limit|keep|total|max|num[-_]", re.IGNORECASE)
_LENGTHS = {
    "step": re.compile(
        r"^--(?:(?:max|num|total|n|train)[-_]?)?(?:train[-_])?(?:steps|iters|iterations|updates|timesteps)$",
        re.IGNORECASE,
    ),
    EPOCH: re.compile(r"^--(?:(?:max|num|total|n|train)[-_]?)?(?:train[-_])?epochs$", re.IGNORECASE),
}


@dataclass(frozen=True)
class Number:
    """An option with a whole number. `value`: the command's, or the script's default."""

    option: str
    value: int
    is_given: bool
    is_setting: bool = False


def numbers_of(command: str, texts: Iterable[str]) -> list[Number]:
    """Return the options with whole numbers that the scripts define, and those that the command gives."""
    given = _given(command)
    found: dict[str, Number] = {}
    for text in texts:
        for option in _OPTION.finditer(text):
            default = _DEFAULT.search(option["rest"])
            name = option["option"]
            if name in given:
                found.setdefault(name, Number(name, given[name], True))
            elif default is not None:
                found.setdefault(name, Number(name, int(default["value"].replace("_", "")), False))
        for setting in _SETTING.finditer(text) if _BY_DASHES.search(text) else ():
            name = f"--{setting['name']}"
            value = int(setting["value"].replace("_", ""))
            found.setdefault(name, Number(name, given.get(name, value), name in given, is_setting=True))
    for name, value in given.items():
        found.setdefault(name, Number(name, value, True))
    return list(found.values())


def _given(command: str) -> dict[str, int]:
    try:
        words = shlex.split(command)
    except ValueError:
        return {}
    found = {}
    for at, word in enumerate(words):
        name, sign, value = word.partition("=")
        text = value if sign else (words[at + 1] if at + 1 < len(words) else "")
        if name.startswith("--") and text.replace("_", "").isdecimal():
            found[name] = int(text.replace("_", ""))
    return found


def save_options(numbers: Sequence[Number]) -> list[Number]:
    """Return the options that say how often the script saves, the likeliest first."""
    found = [one for one in numbers if _SAVES.match(one.option) and not _NOT_SAVES.search(one.option)]
    return sorted(found, key=lambda one: "save" not in one.option and "ckpt" not in one.option)


def length_of(numbers: Sequence[Number], counts: str) -> Number | None:
    """Return the option that says how many steps, or epochs, are trained."""
    return next((one for one in numbers if _LENGTHS[counts or "step"].match(one.option)), None)


def with_number(command: str, option: str, value: int, *, is_setting: bool = False) -> str:
    """Return the command with this value of an option, instead of its own if it has one. `is_setting`: the
    option stands for a variable or field of the script, and takes its value after a sign only.
    """
    replaced, count = re.subn(rf"(?<!\S){re.escape(option)}(=|\s+)\S+", rf"{option}\g<1>{value}", command)
    return (
        replaced if count else f"{command} {option}={value}" if is_setting else f"{command} {option} {value}"
    )
