"""Splits a trainer's command into words, and finds the config it names and the settings it changes."""

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache

from prime_train.core.config_tree import Mapping, Scalar, SourcePosition
from prime_train.core.config_tree.merge import grown
from prime_train.core.prime_rl.arguments import read
from prime_train.rules.rule import ConfigFormat

COMMAND_CHARS_MAX = 20_000

_HYDRA = re.compile(r"(\+{0,2})([A-Za-z_][\w.]*)=(.*)", re.DOTALL)


@lru_cache(maxsize=64)
def words(command: str) -> tuple[str, ...]:
    """Return the words of a command; empty if a shell would refuse the command or it exceeds `COMMAND_CHARS_MAX` characters."""
    if len(command) > COMMAND_CHARS_MAX:
        return ()
    try:
        return tuple(shlex.split(command.replace("\n", " "), comments=False))
    except ValueError:
        return ()


def flags(command: str) -> Iterator[tuple[str, str]]:
    """Yield the name and value of every --flag, with hyphens as underscores; the value is empty if there is none."""
    return flags_of(words(command))


def flags_of(split: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the same of a command that is split into words."""
    for at, word in enumerate(split):
        if not word.startswith("--") or word == "--":
            continue
        name, sign, value = word[2:].partition("=")
        after = split[at + 1] if at + 1 < len(split) and not split[at + 1].startswith("-") else ""
        yield name.replace("-", "_"), value if sign else after


def spelling_of(command: str, *names: str) -> str:
    """Return the first of these flags that the command contains, as it is spelt there; empty if there is none."""
    spelt = (word for name in names for word in (name, name.replace("_", "-")))
    return next((word for word in spelt if f"--{word}" in command), "")


def changes(command: str, config_format: ConfigFormat, place: SourcePosition) -> Mapping:
    """Return the settings with which the command overrides its config, all positioned at `place`."""
    # LLaMA-Factory takes both: flags without a file, and key=value beside one.
    pairs = (*flags(command), *settings(command)) if config_format == "hf" else settings(command)
    return grown(place, [(name.split("."), place, Scalar(place, value, read(value) if value else True)) for name, value in pairs])


def settings(command: str) -> Iterator[tuple[str, str]]:
    """Yield `part.key=value` pairs as hydra parses them."""
    for word in words(command):
        found = _HYDRA.fullmatch(word)
        if found is not None:
            yield found[2], found[3]
