"""Interprets prime-rl's command line: which files are merged over which, and which values the arguments
change in them.

`@ FILE` merges a file over those before it, `--part @ FILE` merges one into a part; in any order, files come
before arguments. A file includes no others. Flags are written with hyphens, keys with underscores.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from prime_train.spec.config_format import NULL, value_of
from prime_train.spec.merge import grown, mapping_of
from prime_train.spec.tree import Listing, Mapping, Node, Scalar, SourcePosition, TreeEntry, Value, place_of
from prime_train.trainers.kind import Configured

OPTIONAL_PARTS = frozenset(
    (
        "ac",
        "ac_offloading",
        "ckpt",
        "compile",
        "eval",
        "file",
        "full_offload",
        "heartbeat",
        "inference",
        "kv_cache_offload",
        "length_penalty",
        "lora",
        "metrics_server",
        "prime",
        "quantization",
        "resume",
        "router",
        "slurm",
        "vlm",
        "wandb",
    )
)
"""Parts that a bare flag turns on with their defaults."""

_Setting = tuple[tuple[str, ...], SourcePosition, Node]
"""The keys, their position, and the value."""


@dataclass(frozen=True)
class Include:
    """A file on the command line. `path`: the part of the config that it is merged into; empty: the entire
    config.
    """

    path: tuple[str, ...]
    file: str
    place: SourcePosition


@dataclass(frozen=True)
class Arguments:
    """The files that are merged over the first one, and the values set by arguments."""

    includes: tuple[Include, ...]
    values: Mapping


def arguments(words: Sequence[Scalar]) -> Arguments:
    """Return the included files and the settings that follow from the arguments after the first file.
    Arguments that prime-train cannot interpret are skipped, because prime-rl itself refuses them.
    """
    texts = [word.text for word in words]
    includes, settings, at = [], list[_Setting](), 0
    while at < len(words):
        path, end, inline = _flag(texts, at)
        is_bare = bool(path) and inline is None and end == at + 1 < len(words)
        into = texts[end] if is_bare and texts[end].startswith("@") else ""
        place = words[min(at + 1, end - 1)].place
        if texts[at] == "@" or into == "@":
            end = end + (1 if into else 0) + 1
            includes += [Include(path, texts[end - 1], words[end - 1].place)] if end <= len(words) else []
        elif into:
            end += 1
            includes.append(Include(path, into[1:], words[end - 1].place))
        elif path:
            settings.append(
                _setting(
                    path, [inline] if inline is not None else texts[at + 1 : end], words[at].place, place
                )
            )
        at = end
    return Arguments(tuple(includes), grown(SourcePosition(), settings))


def ours(spec: Configured, root: Mapping, file: str) -> Mapping:
    """Return the settings that every launch of this spec passes to prime-rl, each with its position in the
    spec, whose tree is `root` and whose file is `file`.
    """

    def at(path: tuple[str, ...]) -> SourcePosition:
        return replace(place_of(root, path), file=file)

    part = spec.trainer.prime_rl
    assert part is not None
    name, output, here = (
        ("trainer", "prime_rl", "run_name"),
        ("trainer", "prime_rl", "output"),
        ("trainer", "prime_rl"),
    )
    arguments: list[tuple[str, Value, tuple[str, ...]]] = [
        ("run.name", part.run_name, name),
        ("run.dir", part.run_name, name),
    ]
    arguments += [
        ("output_dir", part.output, output),
        ("max_steps", spec.trainer.steps, ("trainer", "steps")),
    ]
    arguments += [(f"{side}.heartbeat.url", "http://127.0.0.1", here) for side in ("trainer", "orchestrator")]
    if spec.checkpoints.every_steps is not None:
        arguments.append(("ckpt.interval", spec.checkpoints.every_steps, ("checkpoints", "every_steps")))
    if spec.wandb is not None:
        arguments.append(("monitors.wandb.project", spec.wandb.project, ("wandb", "project")))
    settings: list[_Setting] = [(("monitors", "file"), at(here), mapping_of(at(here), ()))]
    settings += [
        (tuple(key.split(".")), at(path), Scalar(at(path), str(value), value))
        for key, value, path in arguments
    ]
    return grown(at(here), settings)


def _flag(texts: Sequence[str], at: int) -> tuple[tuple[str, ...], int, str | None]:
    """Return the keys of a flag, the index after its values, and its value if that follows a `=`. No keys:
    not a flag.
    """
    if not texts[at].startswith("--") or texts[at] == "--":
        return (), at + 1, None
    name, sign, value = texts[at][2:].partition("=")
    path = tuple(name.replace("-", "_").split("."))
    if sign:
        return path, at + 1, value
    end = next((n for n in range(at + 1, len(texts)) if texts[n].startswith(("--", "@"))), len(texts))
    return path, end, None


def _setting(
    path: tuple[str, ...], given: Sequence[str], key: SourcePosition, value: SourcePosition
) -> "_Setting":
    if not given:
        return _switch(path, key)
    if len(given) == 1:
        return path, key, _value(given[0], value)
    items = tuple(_value(text, value) for text in given)
    return path, key, Listing(value, items, 1 + len(items))


def _switch(path: tuple[str, ...], place: SourcePosition) -> "_Setting":
    """Return the setting of a bare flag: on; `--no-NAME`: off; for an optional part: its defaults."""
    is_off = path[0].startswith("no_")
    names = (path[0].removeprefix("no_"), *path[1:])
    if names[-1] in OPTIONAL_PARTS:
        return names, place, Scalar(place, NULL, None) if is_off else mapping_of(place, ())
    return names, place, Scalar(place, str(not is_off), not is_off)


def _value(text: str, place: SourcePosition) -> Node:
    if text.startswith(("{", "[")):
        try:
            return _from_json(json.loads(text), text, place)
        except (ValueError, RecursionError):
            return Scalar(place, text, text)
    return Scalar(place, text, value_of(text))


def _from_json(value: object, text: str, place: SourcePosition) -> Node:
    match value:
        case dict():
            return mapping_of(
                place, (TreeEntry(key, place, _from_json(inner, text, place)) for key, inner in value.items())
            )
        case list():
            items = tuple(_from_json(item, text, place) for item in value)
            return Listing(place, items, 1 + sum(item.size for item in items))
        case str() | int() | float() | None:
            return Scalar(place, value if isinstance(value, str) else text, value)
        case _:
            raise ValueError(f"a value of type {type(value).__name__} cannot be written as JSON")
