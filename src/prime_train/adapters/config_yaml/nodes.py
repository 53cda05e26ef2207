"""The tree of a YAML text: every key and value with its place. And what is wrong with it: troubles, which become findings."""

from collections.abc import Iterator
from dataclasses import dataclass

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Place:
    """Counted from 1."""

    line: int = 1
    column: int = 1


@dataclass(frozen=True)
class Trouble:
    """A finding in the making: it lacks only the file."""

    code: str
    place: Place
    message: str
    fix: str = ""
    value: str = ""


class Halt(Exception):
    """Reading can not go on after this trouble."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.message)
        self.trouble = trouble


@dataclass(frozen=True)
class Scalar:
    """`text` is what is written there, `value` what YAML reads it as."""

    place: Place
    text: str
    value: Value
    size: int = 1


@dataclass(frozen=True)
class Listing:
    place: Place
    items: tuple["Node", ...]
    size: int


@dataclass(frozen=True)
class Entry:
    key: str
    place: Place
    value: "Node"


@dataclass(frozen=True)
class Mapping:
    place: Place
    entries: tuple[Entry, ...]
    size: int

    def entry(self, key: str) -> Entry | None:
        """The entry with this key; of two, the last one, as it is its value that counts."""
        return next((entry for entry in reversed(self.entries) if entry.key == key), None)


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
