"""The words of a trainer's command: the config they name, and what they change in it."""

import re
import shlex
from collections.abc import Iterator
from functools import lru_cache

from prime_train.core.config_tree import Mapping, Place, Scalar
from prime_train.core.config_tree.merge import grown
from prime_train.core.prime_rl.arguments import read
from prime_train.rules.rule import Kind

COMMAND_CHARS_MAX = 20_000

_HYDRA = re.compile(r"(\+{0,2})([A-Za-z_][\w.]*)=(.*)", re.DOTALL)


@lru_cache(maxsize=64)
def words(command: str) -> tuple[str, ...]:
    """None of a command that a shell would refuse, or that is longer than any that was written by hand."""
    if len(command) > COMMAND_CHARS_MAX:
        return ()
    try:
        return tuple(shlex.split(command.replace("\n", " "), comments=False))
    except ValueError:
        return ()


def config_named(command: str) -> str | None:
    """The file after --config."""
    return next((value for name, value in flags(command) if name in ("config", "config_file") and value), None)


def flags(command: str) -> Iterator[tuple[str, str]]:
    """Every --flag, its hyphens as underscores, and its value; empty where it has none."""
    split = words(command)
    for at, word in enumerate(split):
        if not word.startswith("--") or word == "--":
            continue
        name, sign, value = word[2:].partition("=")
        after = split[at + 1] if at + 1 < len(split) and not split[at + 1].startswith("-") else ""
        yield name.replace("-", "_"), value if sign else after


def changes(command: str, kind: Kind, place: Place) -> Mapping:
    """What the command says over its config, all of it at `place`."""
    pairs = flags(command) if kind == "hf_trainer" else _settings(command)
    said = ((tuple(name.split(".")), Scalar(place, value, read(value) if value else True)) for name, value in pairs)
    return grown(place, ((path, place, value) for path, value in said))


def _settings(command: str) -> Iterator[tuple[str, str]]:
    """`part.key=value`, as hydra reads them."""
    for word in words(command):
        found = _HYDRA.fullmatch(word)
        if found is not None:
            yield found[2], found[3]
