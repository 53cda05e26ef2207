"""A config as it is written: every key and value with its place. Made from YAML and from TOML alike, so that rules know of neither."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

Value = str | int | float | bool | None
Path = Sequence[str | int]
"""Keys, and places in lists counted from 0: ("verification", 0, "path")."""
LINES_MAX = 200
"""Of one text, that are looked through."""


@dataclass(frozen=True, slots=True)
class Place:
    """Counted from 1. `file` is said only where it is another one than that of the document: a file it includes, an override."""

    line: int = 1
    column: int = 1
    file: str = ""


@dataclass(frozen=True, slots=True)
class Scalar:
    """`text` is what is written there, `value` what it is read as."""

    place: Place
    text: str
    value: Value
    size: int = 1


@dataclass(frozen=True, slots=True)
class Listing:
    """A list. `size`: of values in it, itself among them."""

    place: Place
    items: tuple["Node", ...]
    size: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A key and its value. `place` is that of the key."""

    key: str
    place: Place
    value: "Node"


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys with values, in the order in which they are written. `size`: as in a list."""

    place: Place
    entries: tuple[Entry, ...]
    size: int
    _by_key: dict[str, Entry] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_key", {entry.key: entry for entry in self.entries})

    def entry(self, key: str) -> Entry | None:
        """The entry with this key; of two, the last one, as it is its value that counts."""
        return self._by_key.get(key)


Node = Scalar | Listing | Mapping
Plain = Value | list["Plain"] | dict[str, "Plain"]


def plain(node: Node) -> Plain:
    """The values alone."""
    match node:
        case Scalar():
            return node.value
        case Listing():
            return [plain(item) for item in node.items]
        case Mapping():
            return {entry.key: plain(entry.value) for entry in node.entries}


def scalars(node: Node) -> Iterator[Scalar]:
    """Every single value of the tree, in order."""
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
    """What stands there; None where nothing does."""
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


def place_of(root: Node, path: Path, *, on_key: bool = False) -> Place:
    """Where it stands; where it is missing, the key of the nearest part above it that is there.

    `on_key`: of what is there, the key instead of the value.
    """
    place, node = root.place, root
    for step in path:
        entry = node.entry(step) if isinstance(node, Mapping) and isinstance(step, str) else None
        below = find(node, (step,))
        if below is None:
            return place
        place, node = (entry.place if entry is not None else below.place), below
    return place if on_key or not path or _is_nothing(node) else node.place


def line_with(source: str, place: Place, word: str) -> Place:
    """Of a text that may go on over several lines: where it holds the word; its own place, where none of them does.

    A text goes on as long as lines are indented deeper than the one that it begins in.
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
    """A key without a value: its value has no place of its own."""
    return isinstance(node, Scalar) and node.value is None and not node.text
