"""A config as written in its file: every key and value with its position. Built from YAML and from TOML
alike, so that rules are independent of the format.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

Value = str | int | float | bool | None
Path = Sequence[str | int]
"""Keys, and list indices counted from 0: ("verification", 0, "path")."""
LINES_MAX = 200
"""Maximum number of lines that are searched in one multi-line text."""


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """A position, counted from 1. `file` is set only if it differs from the document's: an included file, or
    an override.
    """

    line: int = 1
    column: int = 1
    file: str = ""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value. `text` is its spelling in the file, `value` the parsed value."""

    place: SourcePosition
    text: str
    value: Value
    size: int = 1


@dataclass(frozen=True, slots=True)
class Listing:
    """A list. `size`: number of nodes in it, including itself."""

    place: SourcePosition
    items: tuple["Node", ...]
    size: int


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A key and its value. `place` is the position of the key."""

    key: str
    place: SourcePosition
    value: "Node"


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys with values, in the order of the file. `size`: number of nodes in it, including itself."""

    place: SourcePosition
    entries: tuple[TreeEntry, ...]
    size: int
    _by_key: dict[str, TreeEntry] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_key", {entry.key: entry for entry in self.entries})

    def entry(self, key: str) -> TreeEntry | None:
        """Return the entry with this key, or None; of duplicates the last one, whose value counts."""
        return self._by_key.get(key)


Node = Scalar | Listing | Mapping
Plain = Value | list["Plain"] | dict[str, "Plain"]


def plain(node: Node) -> Plain:
    """Return the parsed values without positions."""
    match node:
        case Scalar():
            return node.value
        case Listing():
            return [plain(item) for item in node.items]
        case Mapping():
            return {entry.key: plain(entry.value) for entry in node.entries}


def scalars(node: Node) -> Iterator[Scalar]:
    """Yield every single value of the tree, in order."""
    match node:
        case Scalar():
            yield node
        case Listing():
            for item in node.items:
                yield from scalars(item)
        case Mapping():
            for entry in node.entries:
                yield from scalars(entry.value)


def find(root: Node, path: Path) -> Node | None:
    """Return the node at `path`; None if there is none."""
    node: Node = root
    for step in path:
        if isinstance(node, Mapping) and isinstance(step, str):
            entry = node.entry(step)
            if entry is None:
                return None
            node = entry.value
        elif isinstance(node, Listing) and isinstance(step, int) and 0 <= step < len(node.items):
            node = node.items[step]
        else:
            return None
    return node


def place_of(root: Node, path: Path, *, on_key: bool = False) -> SourcePosition:
    """Return the position of the value at `path`; if it is missing, of the key of the nearest existing part
    above it.

    `on_key`: return the position of the key instead of the value's.
    """
    place, node = root.place, root
    for step in path:
        entry = node.entry(step) if isinstance(node, Mapping) and isinstance(step, str) else None
        below = find(node, (step,))
        if below is None:
            return place
        place, node = (entry.place if entry is not None else below.place), below
    return place if on_key or not path or _is_nothing(node) else node.place


def line_with(source: str, place: SourcePosition, word: str) -> SourcePosition:
    """Return the position of `word` in the text that starts at `place` and may span several lines; `place` if
    it lacks the word.

    A text continues as long as lines are indented deeper than its first line.
    """
    lines = _lines(source)[place.line - 1 : place.line - 1 + LINES_MAX]
    for at, line in enumerate(lines):
        if at and line.strip() and _indent(line) <= _indent(lines[0]):
            break
        if word in line:
            return replace(place, line=place.line + at, column=line.find(word) + 1) if at else place
    return place


@lru_cache(maxsize=2)
def _lines(source: str) -> list[str]:
    return source.split("\n")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _is_nothing(node: Node) -> bool:
    """Return whether the node is the empty value of a key, which has no position of its own."""
    return isinstance(node, Scalar) and node.value is None and not node.text
