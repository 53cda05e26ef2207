"""Rewrites pydantic's errors for users, each at its place in the file."""

import re
from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from prime_train.spec import suggestions
from prime_train.spec.finding_drafts import (
    FindingDraft,
    Listing,
    Mapping,
    Node,
    Scalar,
    SourcePosition,
    TreeEntry,
)
from prime_train.spec.tree import find
from prime_train.text.nearest import POSSIBLE, nearest
from prime_train.text.redaction import redacted

SEEN_CHARS_MAX = 60
REDACTED_CHARS_MAX = 2000

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
    "name": "must be at most 32 lower-case letters, digits and inner hyphens",
    "after.name": "must be at most 32 lower-case letters, digits and inner hyphens",
    "environment": "must be the name of a variable: letters, digits and _, not starting with a digit",
    "secrets": "must be the name of a variable of the control plane, such as HF_TOKEN",
    "tags": "must be a word of at most 32 lower-case letters, digits and inner dots, hyphens and underscores",
    "alerts.webhook": "must be the name of a variable of the control plane that holds the URL, such as "
    "ALERT_URL",
    "hardware.volumes": "a volume's name has letters, digits, dots and inner hyphens, and its sub_path is a "
    "folder in it, such as sets/web",
}
"""Descriptions of what a key's pattern requires, by key, in plain words."""
_OF_KEYS = {"hardware.volumes": "must be the path at which the volume is mounted, such as /data"}
"""The same of keys that a config chooses itself, by what contains them; where none is named, they are
variables.
"""


_STEP_IN_NAME = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


@dataclass(frozen=True)
class SpecError:
    """An entry of pydantic's error list: its path (keys and list positions), its type, its message and its
    limits.
    """

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


def drafts(errors: Sequence[SpecError], root: Mapping) -> list[FindingDraft]:
    """Return a draft for each mistake. A required key that is only misspelt is reported once, not as unknown
    and missing.
    """
    unknown = {error.path for error in errors if error.kind == "extra_forbidden"}
    corrected = {
        (*path[:-1], suggestions.key(SpecError(path, "", "").keys[:-1], str(path[-1]))) for path in unknown
    }
    return [_draft_of(error, root) for error in errors if _missing_path(error) not in corrected]


def _missing_path(error: SpecError) -> tuple[str | int, ...] | None:
    """Return the path of the key that is missing; None if the error is another one, or may be. A key that is
    needed only without others is missing by a value error that begins with its name.
    """
    match error.kind:
        case "missing":
            return error.path
        case "value_error":
            return (*error.path, error.text.removeprefix("Value error, ").partition(":")[0])
        case _:
            return None


def _draft_of(error: SpecError, root: Mapping) -> FindingDraft:
    """Return the draft of one mistake, placed at its key (unknown keys), its value (wrong values) or its
    parent's key (missing keys).
    """
    entry, node = _find(root, error.path)
    match error.kind:
        case "extra_forbidden":
            return _unknown(error, entry)
        case "missing":
            holder, parent = _find(root, error.path[:-1])
            place = holder.place if holder else parent.place
            example = suggestions.EXAMPLES.get(".".join(error.keys), "")
            return FindingDraft(
                "PT011",
                place,
                f"{_name(error.path)} is missing",
                fix=f"add it, such as {example}" if example else "add it",
            )
        case "value_error":
            return _impossible(error, node)
        case _ if error.of_key and entry is not None:
            words = _OF_KEYS.get(".".join(error.keys[:-1]), _PATTERNS["environment"])
            return _draft("PT013", error, entry.place, words, seen=entry.key)
        case _:
            return _wrong(error, node, entry.place if entry is not None and _is_empty(node) else node.place)


def without_unknown(root: Mapping, errors: Sequence[SpecError]) -> Mapping:
    """Return the tree without its unknown keys; the same tree if all are known."""
    for error in errors:
        if error.kind == "extra_forbidden":
            without = _without(root, error.path)
            root = without if isinstance(without, Mapping) else root
    return root


# ------------------------------------------------------------------------------------------------------------
# the places


def _find(root: Mapping, path: Sequence[str | int]) -> tuple[TreeEntry | None, Node]:
    """Return the last entry and node of this path, as far as the file contains it."""
    entry: TreeEntry | None = None
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
            TreeEntry(e.key, e.place, _without(e.value, path[1:])) if e.key == path[0] else e
            for e in node.entries
            if e.key != path[0] or len(path) > 1
        )
        return Mapping(node.place, tuple(kept), node.size)
    if isinstance(node, Listing) and path:
        items = (_without(item, path[1:]) if at == path[0] else item for at, item in enumerate(node.items))
        return Listing(node.place, tuple(items), node.size)
    return node


def _name(path: Sequence[str | int]) -> str:
    """Return a path as text, such as trainer.code.ref or verification[0].path."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.lstrip(".")[:200]


def _is_empty(node: Node) -> bool:
    return isinstance(node, Scalar) and node.value is None and not node.text


# ------------------------------------------------------------------------------------------------------------
# the words


def _draft(
    code: str, error: SpecError, place: SourcePosition, text: str, *, fix: str = "", seen: str = ""
) -> FindingDraft:
    return FindingDraft(
        code,
        place,
        f"{_name(error.path)}: {text}" if error.path else text,
        fix=fix,
        value=seen[:SEEN_CHARS_MAX],
    )


def _unknown(error: SpecError, entry: TreeEntry | None) -> FindingDraft:
    key, section = error.keys[-1], error.keys[:-1]
    where = f" in {'.'.join(section)}" if section else ""
    guess = suggestions.key(section, key)
    fix = f"known{where}: {', '.join(suggestions.keys_of(section))}"
    if guess:
        # A known key at the wrong depth.
        fix = (
            f"it is a top-level key: write {key} without indentation"
            if section and guess == key
            else f"did you mean {guess}?"
        )
    return FindingDraft(
        "PT010",
        entry.place if entry else SourcePosition(),
        f"unknown key {key[:SEEN_CHARS_MAX]!r}{where}",
        fix=fix,
        value=key,
    )


def _impossible(error: SpecError, node: Node) -> FindingDraft:
    text = str(error.context.get("error", error.text))
    # The message of a section's own check begins with the name of the key that it is about.
    # The path of a key that is named as by `_name`.
    about = (
        find(
            node,
            tuple(
                int(place) if place else key
                for key, place in _STEP_IN_NAME.findall(text.split(" ", 1)[0].rstrip(":"))
            ),
        )
        or node
    )
    return _draft("PT013", error, about.place, text, seen=_seen_text(about))


def _wrong(error: SpecError, node: Node, place: SourcePosition) -> FindingDraft:
    seen, raw = _seen(node), _seen_text(node)
    kind = error.kind
    if kind in ("literal_error", "enum"):
        return _not_one_of(error, node, place)
    if kind in _BOUNDS:
        limit, words = _BOUNDS[kind]
        return _draft("PT013", error, place, f"{words} {error.context.get(limit)}, got {seen}", seen=raw)
    if kind == "string_too_short":
        return _draft("PT013", error, place, "must not be empty", seen=raw)
    if kind == "string_pattern_mismatch":
        words = next(
            (_PATTERNS[key] for key in _spoken_of(error.keys) if key in _PATTERNS),
            "does not have the right form",
        )
        return _draft("PT013", error, place, f"{words}; got {seen}", fix=_named(error, node), seen=raw)
    wanted = _WANTED.get(kind.split("_", 1)[0])
    if wanted is None:
        return _draft("PT013", error, place, f"{error.text}; got {seen}", seen=raw)
    is_word = isinstance(node, Scalar) and isinstance(node.value, bool | int | float)
    code = "PT014" if wanted == "text" and is_word else "PT012"
    text = f"expected {wanted}, got {_seen(node)}"
    return _draft(code, error, place, text, fix=_remedy(error, node, wanted), seen=_seen_text(node))


def _spoken_of(keys: Sequence[str]) -> list[str]:
    """Return the key and the sections that contain it as dotted names, innermost first."""
    return [".".join(keys[:count]) for count in range(len(keys), 0, -1)]


def _remedy(error: SpecError, node: Node, wanted: str) -> str:
    if _is_empty(node):
        return (
            "write a value, or delete the line"
            if wanted != "keys with values"
            else "indent its keys below it, or delete the line"
        )
    if isinstance(node, Scalar) and wanted == "text":
        return f'quote it: "{node.text}"'
    if isinstance(node, Scalar) and wanted == "a list":
        return f"make it a list: [{_cut(node.text)}]"
    if isinstance(node, Scalar) and isinstance(node.value, str) and wanted in ("a number", "a whole number"):
        return "write digits only, without quotes and units"
    if isinstance(node, Listing) and wanted == "keys with values":
        return "write lines of the form NAME: value, without - in front"
    if isinstance(node, Mapping) and wanted == "a list":
        return "start each item with - "
    keys = suggestions.keys_of(error.keys)
    return f"its keys are {', '.join(keys)}" if keys and wanted == "keys with values" else ""


def _not_one_of(error: SpecError, node: Node, place: SourcePosition) -> FindingDraft:
    expected = str(error.context.get("expected", "")).replace(" or ", ", ").replace("'", "")
    words = expected.split(", ")
    is_switch = isinstance(node, Scalar) and isinstance(node.value, bool)
    suggested = [w for w in words if w == "never" and node.value is False] if isinstance(node, Scalar) else []
    if not suggested and isinstance(node, Scalar):
        suggested = [*nearest(node.text, words, likeness=POSSIBLE)]
    fix = f"did you mean {suggested[0]}?" if suggested else ""
    text = f"expected one of {expected}; got {_seen(node)}"
    return _draft("PT014" if is_switch else "PT013", error, place, text, fix=fix, seen=_seen_text(node))


def _named(error: SpecError, node: Node) -> str:
    if error.keys == ("name",) and isinstance(node, Scalar):
        name = "".join(char if char.isascii() and char.isalnum() else "-" for char in node.text.lower())[
            :32
        ].strip("-")
        return f"write a value such as {name}" if name else ""
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
    return redacted(text[:REDACTED_CHARS_MAX])[:SEEN_CHARS_MAX]
