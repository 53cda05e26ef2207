"""Single values that override a config from outside its file, such as `trainer.steps=5` on a command line.

They are merged into the config's tree before it is checked, so that their mistakes are found by the same
checks. Their position in findings is a label that names where the value was given, because they are in no
file.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Table
from dataclasses import dataclass, replace
from functools import reduce

import yaml

from prime_train.errors import UsageError
from prime_train.spec.finding_drafts import (
    Listing,
    Mapping,
    Node,
    ParseAborted,
    Plain,
    Scalar,
    SourcePosition,
    TreeEntry,
)
from prime_train.spec.merge import KEYS_MAX, mapping_of
from prime_train.spec.yaml_tree import read_code, read_scalar

SHOWN_CHARS = 60
_FLOW = ("[", "{", '"', "'")
"""First characters of a value that is parsed as YAML; any other value is a plain scalar, parsed without YAML
syntax.
"""


@dataclass(frozen=True)
class ChosenSetting:
    """A value that overrides one key of a config. `path`: the keys from the root to the value."""

    path: tuple[str, ...]
    value: Node


def read_setting(text: str, label: str) -> ChosenSetting:
    """Read `KEY=VALUE`, such as `trainer.steps=5` or `hardware.gpus=[H100_80GB]`. `label`: what findings name
    in place of a file, without the value, which may be a secret. Raises UsageError if there is no key, or the
    value cannot be read.
    """
    key, sign, value = text.partition("=")
    path = tuple(key.strip().split("."))
    if not sign or not all(path) or len(path) > KEYS_MAX:
        raise UsageError(
            f"{key[:SHOWN_CHARS]!r} is not a setting of the form KEY=VALUE",
            fix="write KEY=VALUE, such as trainer.steps=5",
        )
    label = f"{label} {key.strip()}".strip()[: 2 * SHOWN_CHARS]
    return ChosenSetting(
        path, _flow(value, label) if value.startswith(_FLOW) else _scalar(value, read_scalar(value), label)
    )


def text_setting(path: Sequence[str], text: str, label: str) -> ChosenSetting:
    """Return a setting whose value is this text, even if it looks like a number or YAML. Raises UsageError if
    it is not valid Unicode.
    """
    return ChosenSetting(tuple(path), _scalar(text, text, label))


def setting_of(key: str, value: object, label: str) -> ChosenSetting:
    """Return a setting with which a key such as `trainer.steps` gets this Python value. Raises UsageError if
    a config cannot contain a value of its type.
    """
    label = f"{label} {key}"[: 2 * SHOWN_CHARS]
    if not all(key.split(".")) or key.count(".") >= KEYS_MAX:
        raise UsageError(
            f"{key[:SHOWN_CHARS]!r} is not a key of a config", fix="write one such as trainer.steps"
        )
    return ChosenSetting(tuple(key.split(".")), _node(value, label))


def with_settings(root: Mapping, settings: Iterable[ChosenSetting]) -> Mapping:
    """Return the tree with every setting applied, in place of what variants set for its key, too; if two
    settings have the same key, the last one counts.
    """
    return reduce(_with_setting, settings, root)


def config_text(values: Plain) -> str:
    """Return the values as the text of a YAML config, which parses to the same values."""
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


class _Dumper(yaml.SafeDumper):
    """YAML dumper that escapes invisible characters, because some of them end a line in YAML and the config
    reader refuses them. Texts of several lines, such as scripts, keep their lines.
    """


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    style = (
        None if value.isprintable() else "|" if all(line.isprintable() for line in value.split("\n")) else '"'
    )
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def _with_setting(tree: Mapping, setting: ChosenSetting) -> Mapping:
    set_for_all = _with(tree, setting.path, setting.value)
    hardware = set_for_all.entry("hardware")
    variants = (
        hardware.value.entry("variants")
        if hardware is not None and isinstance(hardware.value, Mapping)
        else None
    )
    if variants is None or not isinstance(variants.value, Listing) or setting.path[0] == "hardware":
        return set_for_all
    items = tuple(_with_setting_in_variant(item, setting) for item in variants.value.items)
    return _with(set_for_all, ("hardware", "variants"), replace(variants.value, items=items))


def _with_setting_in_variant(variant: Node, setting: ChosenSetting) -> Node:
    there = variant.entry("set") if isinstance(variant, Mapping) else None
    if there is None or not isinstance(variant, Mapping) or not isinstance(there.value, Mapping):
        return variant
    return _with(
        variant, ("set",), mapping_of(there.value.place, _without_setting(there.value.entries, setting))
    )


def _without_setting(entries: Iterable[TreeEntry], setting: ChosenSetting) -> Iterable[TreeEntry]:
    """Yield the entries of a variant's `set` that the setting does not override; keys are dotted there."""
    key = ".".join(setting.path)
    for entry in entries:
        if f"{key}.".startswith(f"{entry.key}.") and key != entry.key and isinstance(entry.value, Mapping):
            below = key.removeprefix(f"{entry.key}.").split(".")
            yield TreeEntry(entry.key, entry.place, _with(entry.value, below, setting.value))
        elif not f"{entry.key}.".startswith(f"{key}."):
            yield entry


def _with(tree: Mapping, path: Sequence[str], value: Node) -> Mapping:
    there = tree.entry(path[0])
    new = value
    if len(path) > 1:
        inner = (
            there.value
            if there is not None and isinstance(there.value, Mapping)
            else mapping_of(value.place, ())
        )
        new = _with(inner, path[1:], value)
    place = there.place if there is not None and len(path) > 1 else value.place
    entries = {entry.key: entry for entry in tree.entries} | {path[0]: TreeEntry(path[0], place, new)}
    return mapping_of(tree.place, entries.values())


def _place(label: str) -> SourcePosition:
    return SourcePosition(0, 0, label)


def _scalar(text: str, value: str | int | float | bool | None, label: str) -> Scalar:
    if "\0" in text or any(0xD800 <= ord(char) <= 0xDFFF for char in text):
        raise UsageError(f"{label}: the value is not valid Unicode text")
    return Scalar(_place(label), text, value)


def _flow(text: str, label: str) -> Node:
    try:
        root, problems = read_code(f"value: {text}\n")
    except ParseAborted as halt:
        raise UsageError(
            f"{label}: the value cannot be read: {halt.draft.message}", fix=_flow_fix(text)
        ) from None
    node = root.entry("value")
    if problems or node is None or len(root.entries) > 1:
        reason = problems[0].message if problems else "there is more than one value"
        raise UsageError(f"{label}: the value cannot be read: {reason}", fix=_flow_fix(text))
    return _placed(node.value, _place(label))


def _flow_fix(text: str) -> str:
    return (
        "close the open quote or bracket"
        if text[0] in "\"'"
        else "write a list as [a, b], and keys with values as {a: 1, b: 2}"
    )


def _placed(node: Node, place: SourcePosition) -> Node:
    match node:
        case Scalar():
            return replace(node, place=place)
        case Listing():
            return replace(node, place=place, items=tuple(_placed(item, place) for item in node.items))
        case Mapping():
            return mapping_of(
                place, (TreeEntry(entry.key, place, _placed(entry.value, place)) for entry in node.entries)
            )


def _node(value: object, label: str) -> Node:
    if value is None or isinstance(value, bool | int | float):
        return _scalar(str(value), value, label)
    if isinstance(value, str):
        return _scalar(value, value, label)
    if isinstance(value, Table):
        return mapping_of(
            _place(label),
            (TreeEntry(str(key), _place(label), _node(item, label)) for key, item in value.items()),
        )
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        items = tuple(_node(item, label) for item in value)
        return Listing(_place(label), items, 1 + sum(item.size for item in items))
    raise UsageError(
        f"{label}: a config cannot hold values of type {type(value).__name__}",
        fix="use numbers, texts, lists and dictionaries",
    )
