"""Finds the place of every key and value in a TOML text, without interpreting the values.

The standard library reads TOML but keeps no places. This scanner reads the text's outline in one pass, with
limits on levels and values, so that texts on which the library would be slow are refused before they reach
it. It is lenient: the library decides what is valid TOML, and `Lost` only reports how far the outline could
be followed.
"""

import re
import tomllib
from bisect import bisect_right
from dataclasses import dataclass, field

from prime_train.spec.finding_drafts import FindingDraft, ParseAborted, SourcePosition
from prime_train.spec.yaml_tree import DEPTH_MAX, VALUES_MAX

BARE_CHARS_MAX = 1000
"""Maximum length in characters of an unquoted value or a key."""
LINES_MAX = 100_000

_GAP = re.compile(r"(?:[ \t\n]++|#[^\n]*+)*+")
_SPACE = re.compile(r"[ \t]*+")
_LINE_END = re.compile(r"[ \t]*+(?:#[^\n]*+)?+(?=\n|\Z)")
_KEY = re.compile(r"""[A-Za-z0-9_-]++|"(?:[^"\\\n]++|\\.)*+"|'[^'\n]*+'""")
_TEXT = re.compile(
    r'"""(?:[^"\\]++|\\.|"{1,2}(?!"))*+"{3,5}'
    + r"|'''(?:[^']++|'{1,2}(?!'))*+'{3,5}"
    + r'|"(?:[^"\\\n]++|\\.)*+"'
    + r"|'[^'\n]*+'",
    re.DOTALL,
)
_BARE = re.compile(r"""[0-9]{4}-[0-9]{2}-[0-9]{2}[ Tt][0-9]{2}:[^\s,\]}#]*+|[^\s,\[\]{}#="']++""")


class Lost(Exception):
    """The structure of the TOML text cannot be followed beyond the offset `at`."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


@dataclass(slots=True)
class Leaf:
    """A single value, as it is spelled."""

    place: SourcePosition
    raw: str


@dataclass(slots=True)
class Table:
    """Keys with their places and values."""

    place: SourcePosition
    entries: dict[str, tuple[SourcePosition, "Outline"]] = field(default_factory=dict)
    declared: bool = False
    """Whether the table has a [section] of its own, or is written as {...}."""


@dataclass(slots=True)
class Array:
    """A list of values or of [[tables]]."""

    place: SourcePosition
    items: list["Outline"] = field(default_factory=list)
    of_tables: bool = False


Outline = Leaf | Table | Array
_Key = list[tuple[str, SourcePosition]]


class Scanner:
    """Scanner of one text; `file` is the file name in its places. `doubled` is the first key that is written
    twice, recorded here because the library does not report its first place.
    """

    def __init__(self, source: str, file: str = "") -> None:
        self._text, self._file = source, file
        self._starts = [0, *(found.end() for found in re.finditer("\n", source))]
        self._values = 0
        self.doubled: FindingDraft | None = None

    def place(self, at: int) -> SourcePosition:
        line = bisect_right(self._starts, at)
        return SourcePosition(line, at - self._starts[line - 1] + 1, self._file)

    def line_end(self, at: int) -> int:
        """Return the offset at which the line that contains `at` ends, including its line break."""
        found = self._text.find("\n", at)
        return len(self._text) if found < 0 else found + 1

    def outline(self) -> Table:
        """Return the structure of the text: its tables, keys and values with their positions. Raises Lost if
        it cannot be followed, ParseAborted if a limit is exceeded.
        """
        if len(self._starts) > LINES_MAX:
            raise ParseAborted(
                FindingDraft(
                    "PT008",
                    SourcePosition(file=self._file),
                    f"more than {LINES_MAX:,} lines, which no config has",
                )
            )
        root = Table(SourcePosition(file=self._file))
        table, at = root, self._gap(0)
        while at < len(self._text):
            if self._text[at] == "[":
                table, at = self._header(root, at)
            else:
                at = self._pair(table, at, depth=1)
            at = self._gap(self._skip(_LINE_END, at))
        return root

    # --------------------------------------------------------------------------------------------------------
    # the lines

    def _header(self, root: Table, at: int) -> tuple[Table, int]:
        is_item = self._text.startswith("[[", at)
        key, at = self._key(self._space(at + (2 if is_item else 1)))
        at = self._expect("]]" if is_item else "]", at)
        holder = self._inner(root, key[:-1], at)
        name, place = key[-1]
        self._count(place)
        there = holder.entries.get(name)
        node = there[1] if there is not None else None
        if is_item:
            return self._item(holder, name, place, node, at), at
        if isinstance(node, Array):
            raise Lost(at)
        self._once(not isinstance(node, Table) or node.declared, name, place, there)
        table = node if isinstance(node, Table) else Table(place)
        # A table's place is its own header, even if a key of it appeared earlier.
        table.place, table.declared = place, True
        holder.entries[name] = (place, table)
        return table, at

    def _item(self, holder: Table, name: str, place: SourcePosition, there: Outline | None, at: int) -> Table:
        if there is None:
            there = Array(place, of_tables=True)
            holder.entries[name] = (place, there)
        if not isinstance(there, Array) or not there.of_tables:
            raise Lost(at)
        table = Table(place)
        there.items.append(table)
        return table

    def _pair(self, table: Table, at: int, *, depth: int) -> int:
        key, at = self._key(at)
        at = self._space(self._expect("=", at))
        holder = self._inner(table, key[:-1], at)
        name, place = key[-1]
        value, at = self._value(at, depth=depth + len(key))
        there = holder.entries.get(name)
        self._once(there is not None, name, place, there)
        holder.entries[name] = (place, value)
        return at

    def _inner(self, table: Table, key: _Key, at: int) -> Table:
        """Return the table that these keys lead to, and create it if it is missing; for a list of tables,
        take its last one.
        """
        for name, place in key:
            there = table.entries.get(name)
            node = there[1] if there is not None else None
            if node is None:
                self._count(place)
                node = Table(place)
                table.entries[name] = (place, node)
            if isinstance(node, Array) and node.of_tables:
                node = node.items[-1]
            if not isinstance(node, Table):
                raise Lost(at)
            table = node
        return table

    def _once(
        self, is_double: bool, name: str, place: SourcePosition, there: tuple[SourcePosition, Outline] | None
    ) -> None:
        if is_double and there is not None and self.doubled is None:
            message = f"the key {name[:60]!r} is written twice, first in line {there[0].line}"
            self.doubled = FindingDraft("PT006", place, message, fix="keep one of them")

    # -------------------------------------------------------------------------------------------------------
    # keys and values

    def _key(self, at: int) -> tuple[_Key, int]:
        key: _Key = []
        while True:
            found = _KEY.match(self._text, at)
            if found is None:
                raise Lost(at)
            if len(found[0]) > BARE_CHARS_MAX:
                raise ParseAborted(
                    FindingDraft(
                        "PT008",
                        self.place(at),
                        f"a key of more than {BARE_CHARS_MAX:,} characters, which no config has",
                    )
                )
            key.append((_word(found[0], at), self.place(at)))
            if len(key) > DEPTH_MAX:
                raise ParseAborted(
                    FindingDraft(
                        "PT008",
                        self.place(at),
                        f"more than {DEPTH_MAX} levels of nesting, which no config has",
                    )
                )
            at = self._space(found.end())
            if not self._text.startswith(".", at):
                return key, at
            at = self._space(at + 1)

    def _value(self, at: int, *, depth: int) -> tuple[Outline, int]:
        place = self.place(at)
        self._count(place)
        if depth > DEPTH_MAX:
            raise ParseAborted(
                FindingDraft("PT008", place, f"more than {DEPTH_MAX} levels of nesting, which no config has")
            )
        match self._text[at : at + 1]:
            case "[":
                return self._array(at, depth)
            case "{":
                return self._inline(at, depth)
            case "'" | '"':
                found = _TEXT.match(self._text, at)
            case _:
                found = _BARE.match(self._text, at)
        if found is None:
            raise Lost(at)
        if found[0][0] not in "'\"" and len(found[0]) > BARE_CHARS_MAX:
            raise ParseAborted(
                FindingDraft(
                    "PT008",
                    place,
                    f"more than {BARE_CHARS_MAX} characters without quotes: a bare value this long cannot be "
                    "valid TOML",
                )
            )
        return Leaf(place, found[0]), found.end()

    def _array(self, at: int, depth: int) -> tuple[Array, int]:
        array = Array(self.place(at))
        at = self._gap(at + 1)
        while not self._text.startswith("]", at):
            value, at = self._value(at, depth=depth + 1)
            array.items.append(value)
            at = self._comma(at, "]")
        return array, at + 1

    def _inline(self, at: int, depth: int) -> tuple[Table, int]:
        table = Table(self.place(at), declared=True)
        at = self._gap(at + 1)
        while not self._text.startswith("}", at):
            at = self._comma(self._pair(table, at, depth=depth), "}")
        return table, at + 1

    def _comma(self, at: int, end: str) -> int:
        at = self._gap(at)
        if self._text.startswith(",", at):
            return self._gap(at + 1)
        if not self._text.startswith(end, at):
            raise Lost(at)
        return at

    # --------------------------------------------------------------------------------------------------------
    # the steps

    def _count(self, place: SourcePosition) -> None:
        self._values += 1
        if self._values > VALUES_MAX:
            raise ParseAborted(
                FindingDraft("PT008", place, f"more than {VALUES_MAX:,} values, which no config has")
            )

    def _expect(self, sign: str, at: int) -> int:
        at = self._space(at)
        if not self._text.startswith(sign, at):
            raise Lost(at)
        return at + len(sign)

    def _gap(self, at: int) -> int:
        """Return the offset after spaces, line ends and comments."""
        return self._skip(_GAP, at)

    def _space(self, at: int) -> int:
        return self._skip(_SPACE, at)

    def _skip(self, pattern: re.Pattern[str], at: int) -> int:
        found = pattern.match(self._text, at)
        if found is None:
            raise Lost(at)
        return found.end()


def _word(raw: str, at: int) -> str:
    """Return a key without its quotes."""
    if raw[0] == '"' and "\\" in raw:
        try:
            return str(tomllib.loads(f"key = {raw}")["key"])
        except ValueError as error:
            raise Lost(at) from error
    return raw[1:-1] if raw[0] in "'\"" else raw
