"""Rewrites pydantic's errors for users, each at its place in the file."""

import difflib
from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from prime_train.adapters.config_yaml import nearest
from prime_train.adapters.config_yaml.nodes import Draft, Entry, Listing, Mapping, Node, Place, Scalar
from prime_train.core.config_tree import find
from prime_train.core.text.redaction import masked

SEEN_CHARS_MAX = 60
MASKED_CHARS_MAX = 2000

_WANTED = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a number",
    "string": "text",
    "bool": "true or false",
    "tuple": "a list",
    "list": "a list",
    "dict": "keys with values",
    "model": "keys with values",
}
"""The expected kind, by the first word of pydantic's error type."""

_BOUNDS = {
    "greater_than": ("gt", "must be greater than"),
    "greater_than_equal": ("ge", "must be at least"),
    "less_than": ("lt", "must be less than"),
    "less_than_equal": ("le", "must be at most"),
}

_PATTERNS = {
    "trainer.prime_rl.ref": "must be a commit: 8 to 40 digits and letters from a to f",
    "name": "must be lower-case letters, digits and inner hyphens, 32 at most",
    "environment": "must be the name of a variable: letters, digits and _, no digit in front",
    "secrets": "must be the name of a variable of the control plane, such as HF_TOKEN",
    "tags": "must be a short word of lower-case letters, digits and inner dots, hyphens and underscores, 32 characters at most",
    "alerts.webhook": "must be the name of a variable of the control plane that holds the URL, such as ALERT_URL",
}
"""What the pattern of a key requires, in plain words."""


@dataclass(frozen=True)
class SpecError:
    """One entry of pydantic's error list: its path (keys and list positions), its type, its message and its limits."""

    path: tuple[str | int, ...]
    kind: str
    text: str
    context: Table[str, object] = field(default_factory=dict, compare=False)
    of_key: bool = False
    """Whether the key is wrong, rather than its value."""

    @classmethod
    def of(cls, row: Any) -> Self:
        # pydantic marks an error of a key by an extra last element of its path.
        path = tuple(step for step in row["loc"] if step != "[key]")
        return cls(path, row["type"], row["msg"], row.get("ctx", {}), "[key]" in row["loc"][-1:])

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(step for step in self.path if isinstance(step, str))


def troubles(mistakes: Sequence[SpecError], root: Mapping) -> list[Draft]:
    """Return a draft for each mistake. A required key that is only misspelt is reported once, not as unknown and missing."""
    unknown = {mistake.path for mistake in mistakes if mistake.kind == "extra_forbidden"}
    meant = {(*path[:-1], nearest.key(SpecError(path, "", "").keys[:-1], str(path[-1]))) for path in unknown}
    return [_trouble(mistake, root) for mistake in mistakes if not (mistake.kind == "missing" and mistake.path in meant)]


def _trouble(mistake: SpecError, root: Mapping) -> Draft:
    """Return the draft of one mistake, placed at its key (unknown keys), its value (wrong values) or its parent's key (missing keys)."""
    entry, node = _find(root, mistake.path)
    match mistake.kind:
        case "extra_forbidden":
            return _unknown(mistake, entry)
        case "missing":
            holder, parent = _find(root, mistake.path[:-1])
            return _missing(mistake, holder.place if holder else parent.place)
        case "value_error":
            return _impossible(mistake, node)
        case _ if mistake.of_key and entry is not None:
            return _said("PT013", mistake, entry.place, _PATTERNS["environment"], seen=entry.key)
        case _:
            return _wrong(mistake, node, entry.place if entry is not None and _is_empty(node) else node.place)


def without_unknown(root: Mapping, mistakes: Sequence[SpecError]) -> Mapping:
    """Return the tree without its unknown keys; the same tree if all are known."""
    for mistake in mistakes:
        if mistake.kind == "extra_forbidden":
            without = _without(root, mistake.path)
            root = without if isinstance(without, Mapping) else root
    return root


# ----------------------------------------------------------------------------------------------------------------- the places


def _find(root: Mapping, path: Sequence[str | int]) -> tuple[Entry | None, Node]:
    """Return the last entry and node of this path, as far as the file contains it."""
    entry: Entry | None = None
    node: Node = root
    for step in path:
        if isinstance(node, Mapping) and isinstance(step, str):
            inner = node.entry(step)
            if inner is None:
                break
            entry, node = inner, inner.value
        elif isinstance(node, Listing) and isinstance(step, int) and step < len(node.items):
            entry, node = None, node.items[step]
    return entry, node


def _without(node: Node, path: Sequence[str | int]) -> Node:
    if isinstance(node, Mapping) and path:
        kept = (
            Entry(e.key, e.place, _without(e.value, path[1:])) if e.key == path[0] else e
            for e in node.entries
            if e.key != path[0] or len(path) > 1
        )
        return Mapping(node.place, tuple(kept), node.size)
    if isinstance(node, Listing) and path:
        items = (_without(item, path[1:]) if at == path[0] else item for at, item in enumerate(node.items))
        return Listing(node.place, tuple(items), node.size)
    return node


def _name(path: Sequence[str | int]) -> str:
    """Return a path as text, such as trainer.tree.ref or verification[0].path."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.lstrip(".")[:200]


def _is_empty(node: Node) -> bool:
    return isinstance(node, Scalar) and node.value is None and not node.text


# ------------------------------------------------------------------------------------------------------------------ the words


def _said(code: str, mistake: SpecError, place: Place, text: str, *, fix: str = "", seen: str = "") -> Draft:
    return Draft(code, place, f"{_name(mistake.path)}: {text}" if mistake.path else text, fix=fix, value=seen[:SEEN_CHARS_MAX])


def _unknown(mistake: SpecError, entry: Entry | None) -> Draft:
    key, section = mistake.keys[-1], mistake.keys[:-1]
    where = f" in {'.'.join(section)}" if section else ""
    guess = nearest.key(section, key)
    fix = f"known{where}: {', '.join(nearest.keys_of(section))}"
    if guess:
        # A known key at the wrong depth.
        fix = f"it belongs to the whole file: write {key} without indentation" if section and guess == key else f"did you mean {guess}?"
    return Draft("PT010", entry.place if entry else Place(), f"unknown key {key[:SEEN_CHARS_MAX]!r}{where}", fix=fix, value=key)


def _missing(mistake: SpecError, place: Place) -> Draft:
    example = nearest.EXAMPLES.get(".".join(mistake.keys), "")
    return Draft("PT011", place, f"{_name(mistake.path)} is missing", fix=f"add it, such as {example}" if example else "add it")


def _impossible(mistake: SpecError, node: Node) -> Draft:
    text = str(mistake.context.get("error", mistake.text))
    # The message of a section's own check begins with the name of the key that it is about.
    about = find(node, text.split(" ", 1)[0].rstrip(":").split(".")) or node
    return _said("PT013", mistake, about.place, text, seen=_seen_text(about))


def _wrong(mistake: SpecError, node: Node, place: Place) -> Draft:
    seen, raw = _seen(node), _seen_text(node)
    kind = mistake.kind
    if kind in ("literal_error", "enum"):
        return _not_one_of(mistake, node, place)
    if kind in _BOUNDS:
        limit, words = _BOUNDS[kind]
        return _said("PT013", mistake, place, f"{words} {mistake.context.get(limit)}, got {seen}", seen=raw)
    if kind == "string_too_short":
        return _said("PT013", mistake, place, "must not be empty", seen=raw)
    if kind == "string_pattern_mismatch":
        words = next((_PATTERNS[key] for key in _spoken_of(mistake.keys) if key in _PATTERNS), "does not have the right form")
        return _said("PT013", mistake, place, f"{words}; got {seen}", fix=_named(mistake, node), seen=raw)
    wanted = _WANTED.get(kind.split("_", 1)[0])
    if wanted is None:
        return _said("PT013", mistake, place, f"{mistake.text}; got {seen}", seen=raw)
    return _of_another_kind(mistake, node, place, wanted)


def _spoken_of(keys: Sequence[str]) -> list[str]:
    """Return the key and the sections that contain it as dotted names, innermost first."""
    return [".".join(keys[:count]) for count in range(len(keys), 0, -1)]


def _of_another_kind(mistake: SpecError, node: Node, place: Place, wanted: str) -> Draft:
    is_word = isinstance(node, Scalar) and isinstance(node.value, bool | int | float)
    code = "PT014" if wanted == "text" and is_word else "PT012"
    text = f"expected {wanted}, got {_seen(node)}"
    return _said(code, mistake, place, text, fix=_remedy(mistake, node, wanted), seen=_seen_text(node))


def _remedy(mistake: SpecError, node: Node, wanted: str) -> str:
    if _is_empty(node):
        return "write a value, or delete the line" if wanted != "keys with values" else "indent its keys below it, or delete the line"
    if isinstance(node, Scalar) and wanted == "text":
        return f'quote it: "{node.text}"'
    if isinstance(node, Scalar) and wanted == "a list":
        return f"make it a list: [{_cut(node.text)}]"
    if isinstance(node, Scalar) and isinstance(node.value, str) and wanted in ("a number", "a whole number"):
        return "write digits only, without quotes and units"
    if isinstance(node, Listing) and wanted == "keys with values":
        return "write NAME: value lines, without - in front"
    if isinstance(node, Mapping) and wanted == "a list":
        return "start each item with - "
    keys = nearest.keys_of(mistake.keys)
    return f"its keys are {', '.join(keys)}" if keys and wanted == "keys with values" else ""


def _not_one_of(mistake: SpecError, node: Node, place: Place) -> Draft:
    expected = str(mistake.context.get("expected", "")).replace(" or ", ", ").replace("'", "")
    words = expected.split(", ")
    is_switch = isinstance(node, Scalar) and isinstance(node.value, bool)
    meant = [w for w in words if w == "never" and node.value is False] if isinstance(node, Scalar) else []
    if not meant and isinstance(node, Scalar):
        meant = difflib.get_close_matches(node.text.lower(), words, 1, 0.5)
    fix = f"did you mean {meant[0]}?" if meant else ""
    text = f"expected one of {expected}; got {_seen(node)}"
    return _said("PT014" if is_switch else "PT013", mistake, place, text, fix=fix, seen=_seen_text(node))


def _named(mistake: SpecError, node: Node) -> str:
    if mistake.keys == ("name",) and isinstance(node, Scalar):
        name = "".join(char if char.isascii() and char.isalnum() else "-" for char in node.text.lower())[:32].strip("-")
        return f"such as {name}" if name else ""
    return ""


def _seen(node: Node) -> str:
    match node:
        case Scalar(value=None):
            return "nothing"
        case Scalar(value=bool()) if node.text.lower() not in ("true", "false"):
            return f"{node.text}, which YAML reads as {str(node.value).lower()}"
        case Scalar(value=str()):
            return repr(_cut(node.text) + ("…" if len(node.text) > SEEN_CHARS_MAX else ""))
        case Scalar():
            return node.text[:SEEN_CHARS_MAX]
        case Listing():
            return "a list"
        case Mapping():
            return "keys with values"


def _seen_text(node: Node) -> str:
    return _cut(node.text) if isinstance(node, Scalar) else ""


def _cut(text: str) -> str:
    """Mask secrets before cutting the text: a part of a secret would not be recognised."""
    return masked(text[:MASKED_CHARS_MAX])[:SEEN_CHARS_MAX]
