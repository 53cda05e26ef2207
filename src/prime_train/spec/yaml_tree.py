"""Parses YAML text into a tree in which every key and value has its place.

The parser's events are read one by one, so that limits on nesting, number of values and aliases apply before
anything is built. Only the part of YAML that a config needs is accepted: no tags, no merge keys, one
document. Unquoted words are read as in YAML 1.1 (`no` is false), except where that surprises: `1:30` is not a
number in base 60, `010` is not eight, `2026-01-01` is not a date; these are text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

from prime_train.spec.finding_drafts import (
    DRAFTS_MAX,
    FindingDraft,
    Listing,
    Mapping,
    Node,
    ParseAborted,
    Scalar,
    SourcePosition,
    TreeEntry,
    Value,
)

DEPTH_MAX = 20
VALUES_MAX = 5_000
ALIASES_MAX = 100
ALIASED_CHARS_MAX = 1024 * 1024
"""Limit of the total number of characters that all aliases expand to."""

_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None}
_WORDS |= dict.fromkeys(("true", "yes", "on"), True) | dict.fromkeys(("false", "no", "off"), False)
_INT = re.compile(r"[-+]?(0|[1-9][0-9_]{0,17})")
_FLOAT = re.compile(r"[-+]?([0-9][0-9_]*\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?")
_FAST: type | None = getattr(yaml, "CSafeLoader", None)
"""PyYAML's parser in C, which is ten to twenty times as fast as the one in Python; None if PyYAML was built
without it.
"""

_EXPLAINED_CHARS_MAX = 65_536

_UNUSUAL_BREAK = re.compile("[\x85\u2028\u2029]|\r(?!\n)")
_BLOCK_BEGINS = re.compile(r"expected <block end>, but found '(?:<block (?:mapping|sequence) start>|-)'")
"""The parser's message about a line whose indentation matches no section above it."""
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]")


def read_code(source: str) -> tuple[Mapping, list[FindingDraft]]:
    """Return the tree of the mapping that `source` consists of, and the mistakes that do not prevent parsing.

    Raises ParseAborted if the text cannot be parsed, or is not one mapping.
    """
    _refuse_unusual_breaks(source)
    builder = _built(source)
    root = builder.root
    if root is None or (isinstance(root, Scalar) and root.value is None):
        raise ParseAborted(
            FindingDraft(
                "PT005",
                SourcePosition(),
                "the file is empty",
                fix="the smallest config has name, trainer.command and budget.usd",
            )
        )
    if not isinstance(root, Mapping):
        seen = "a list" if isinstance(root, Listing) else "a single value"
        raise ParseAborted(
            FindingDraft(
                "PT005",
                root.place,
                f"the file holds {seen}, not keys with values",
                fix="start with a line such as name: my-run",
            )
        )
    return root, builder.drafts


def read_scalar(text: str) -> Value:
    """Return the value of an unquoted word. Infinity and not-a-number stay text, because no setting can have
    these values.
    """
    lower = text.lower()
    if lower in _WORDS and text in (lower, lower.capitalize(), lower.upper()):
        return _WORDS[lower]
    if _LEADING_ZERO.match(text) and "." not in text:
        return text
    if _INT.fullmatch(text):
        return int(text.replace("_", ""))
    if _FLOAT.fullmatch(text):
        number = float(text.replace("_", ""))
        return number if abs(number) != float("inf") else text
    return text


# ------------------------------------------------------------------------------------------------------------
# events


class _NotYaml(ParseAborted):
    """The text is not valid YAML."""


def _built(source: str) -> "_Builder":
    """Parse with the fast parser. If it fails, parse a text that is not too long again with the slower one,
    which describes and locates errors better.
    """
    if _FAST is not None:
        try:
            return _built_by(_FAST, source)
        except _NotYaml:
            if len(source) > _EXPLAINED_CHARS_MAX:
                raise
    return _built_by(yaml.SafeLoader, source)


def _built_by(loader: type, source: str) -> "_Builder":
    builder = _Builder()
    for event in _events(loader, source, builder):
        builder.take(event)
    return builder


def _events(loader: type, source: str, builder: "_Builder") -> Iterator[yaml.Event]:
    try:
        yield from yaml.parse(source, Loader=loader)
    except yaml.MarkedYAMLError as error:
        raise _NotYaml(_not_yaml(error)) from error
    except yaml.reader.ReaderError as error:
        in_bytes = loader is _FAST
        before = (
            source.encode()[: error.position].decode(errors="ignore")
            if in_bytes
            else source[: error.position]
        )
        place = _place_at(source, len(before))
        char_code = ord(source[min(len(before), len(source) - 1)])
        raise _NotYaml(
            FindingDraft("PT003", place, f"the character U+{char_code:04X} is not allowed in text")
        ) from error
    except (yaml.YAMLError, ValueError, OverflowError, IndexError) as error:
        # The library does not catch the error of an escape such as "\UFFFFFFFF".
        raise _NotYaml(
            FindingDraft("PT004", builder.place, f"not YAML from here on: {str(error)[:200]}")
        ) from error


def _refuse_unusual_breaks(source: str) -> None:
    """Refuse characters that end a line in YAML but not in editors: every line number after one would be
    wrong.
    """
    found = _UNUSUAL_BREAK.search(source)
    if found is not None:
        message = f"the character U+{ord(found[0]):04X}, which is invisible, ends a line in YAML"
        raise ParseAborted(
            FindingDraft(
                "PT003",
                _place_at(source, found.start()),
                message,
                fix="delete it, or save the file with normal line endings",
            )
        )


def _place_at(source: str, at: int) -> SourcePosition:
    return SourcePosition(source.count("\n", 0, at) + 1, at - (source.rfind("\n", 0, at) + 1) + 1)


def _not_yaml(error: yaml.MarkedYAMLError) -> FindingDraft:
    mark = error.problem_mark or error.context_mark
    place = _place(mark)
    problem = error.problem or "cannot be read"
    if r"'\t'" in problem:
        return FindingDraft(
            "PT004",
            place,
            "a tab character: YAML allows only spaces for indentation",
            fix="replace the tab with spaces",
        )
    if "mapping values are not allowed" in problem:
        return FindingDraft(
            "PT004",
            place,
            "not YAML: a colon in a place where none is allowed",
            fix="quote the text that holds ': ', or check the indentation",
        )
    if error.context_mark is not None and _BLOCK_BEGINS.search(problem):
        like = error.context_mark
        message = (
            f"not YAML: this line is indented by {mark.column if mark is not None else 0} "
            "spaces, which matches no section above it"
        )
        fix = f"indent it like the line above, or by {like.column} spaces like line {like.line + 1}"
        return FindingDraft("PT004", place, message, fix=fix)
    known = {
        "found undefined alias": "an alias without an anchor",
        "found duplicate anchor": "an anchor name that is already used",
    }
    text = next((known[key] for key in known if problem.startswith(key)), problem)
    context = f" {error.context}" if error.context else ""
    return FindingDraft("PT004", place, f"not YAML: {text}{context}"[:300])


def _place(mark: "yaml.Mark | yaml._yaml.Mark | None") -> SourcePosition:
    return SourcePosition(mark.line + 1, mark.column + 1) if mark is not None else SourcePosition()


@dataclass
class _Open:
    """A list or mapping that has not ended yet. `key` is a mapping's key whose value has not been read
    yet.
    """

    place: SourcePosition
    is_mapping: bool
    anchor: str | None
    items: list[Node] = field(default_factory=list)
    entries: list[TreeEntry] = field(default_factory=list)
    first: dict[str, SourcePosition] = field(default_factory=dict)
    """Position of the first occurrence of each key."""
    key: Scalar | None = None
    size: int = 1

    def closed(self) -> Node:
        if self.is_mapping:
            return Mapping(self.place, tuple(self.entries), self.size)
        return Listing(self.place, tuple(self.items), self.size)


@dataclass
class _Builder:
    root: Node | None = None
    drafts: list[FindingDraft] = field(default_factory=list)
    place: SourcePosition = field(default_factory=SourcePosition)
    _open: list[_Open] = field(default_factory=list)
    _anchors: dict[str, Node | None] = field(default_factory=dict)
    _aliases: int = 0
    _aliased_chars: int = 0
    _values: int = 0

    def take(self, event: yaml.Event) -> None:
        self.place = _place(event.start_mark)
        match event:
            case yaml.DocumentStartEvent() if self.root is not None:
                raise ParseAborted(
                    FindingDraft(
                        "PT005",
                        self.place,
                        "a second document: a file may hold only one config",
                        fix="move it into a file of its own",
                    )
                )
            case yaml.ScalarEvent():
                self._add(self._scalar(event), event.anchor)
            case yaml.AliasEvent():
                self._add(self._aliased(str(event.anchor)), None)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._start(event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                ended = self._open.pop()
                self._add(ended.closed(), ended.anchor, counted=True)
            case _:
                pass

    def _start(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        if len(self._open) >= DEPTH_MAX:
            raise ParseAborted(
                FindingDraft(
                    "PT008", self.place, f"more than {DEPTH_MAX} levels of nesting, which no config has"
                )
            )
        if self._open and self._open[-1].is_mapping and self._open[-1].key is None:
            raise ParseAborted(
                FindingDraft(
                    "PT007",
                    self.place,
                    "a key must be one word",
                    fix="put quotes around text that contains braces or brackets",
                )
            )
        self._refuse_tag(event.tag)
        if event.anchor:
            self._anchors[event.anchor] = None
        self._count(1)
        self._open.append(_Open(self.place, isinstance(event, yaml.MappingStartEvent), event.anchor))

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        self._refuse_tag(event.tag)
        if any(0xD800 <= ord(char) <= 0xDFFF or char == "\0" for char in event.value):
            raise ParseAborted(
                FindingDraft(
                    "PT003", self.place, "an escape that is not a valid character", fix="remove the escape"
                )
            )
        value = read_scalar(event.value) if not event.style and event.tag is None else event.value
        return Scalar(self.place, event.value, value)

    def _refuse_tag(self, tag: str | None) -> None:
        if tag is not None:
            short = tag.replace("tag:yaml.org,2002:", "!!")[:60]
            self._report(
                FindingDraft(
                    "PT007",
                    self.place,
                    f"the tag {short} is not supported",
                    fix="remove it; quote the value to keep it text",
                )
            )

    def _report(self, draft: FindingDraft) -> None:
        if sum(reported.code == draft.code for reported in self.drafts) < DRAFTS_MAX:
            self.drafts.append(draft)

    def _aliased(self, anchor: str) -> Node:
        self._aliases += 1
        if self._aliases > ALIASES_MAX:
            raise ParseAborted(
                FindingDraft(
                    "PT008", self.place, f"more than {ALIASES_MAX} aliases", fix="write the values out"
                )
            )
        if anchor not in self._anchors:
            raise ParseAborted(
                FindingDraft(
                    "PT004",
                    self.place,
                    f"the alias *{anchor[:60]} has no anchor before it",
                    fix="put quotes around text that starts with *",
                )
            )
        node = self._anchors[anchor]
        if node is None:
            raise ParseAborted(
                FindingDraft(
                    "PT008", self.place, f"*{anchor[:60]} contains itself", fix="write the values out"
                )
            )
        self._aliased_chars += _chars(node)
        if self._aliased_chars > ALIASED_CHARS_MAX:
            raise ParseAborted(
                FindingDraft(
                    "PT008",
                    self.place,
                    f"aliases that expand to more than {ALIASED_CHARS_MAX:,} characters, which no config has",
                )
            )
        return node

    def _count(self, values: int) -> None:
        self._values += values
        if self._values > VALUES_MAX:
            raise ParseAborted(
                FindingDraft(
                    "PT008",
                    self.place,
                    f"more than {VALUES_MAX:,} values with aliases expanded, which no config has",
                )
            )

    def _add(self, node: Node, anchor: str | None, *, counted: bool = False) -> None:
        if not counted:
            self._count(node.size)
        if anchor is not None:
            self._anchors[anchor] = node
        if not self._open:
            self.root = node
            return
        top = self._open[-1]
        top.size += node.size
        if not top.is_mapping:
            top.items.append(node)
        elif top.key is None:
            top.key = self._key(node, top)
        else:
            top.entries.append(TreeEntry(top.key.text, top.key.place, node))
            top.key = None

    def _key(self, node: Node, top: _Open) -> Scalar:
        if not isinstance(node, Scalar):
            raise ParseAborted(
                FindingDraft(
                    "PT007",
                    self.place,
                    "a key must be one word",
                    fix="put quotes around text that contains braces or brackets",
                )
            )
        first = top.first.setdefault(node.text, self.place)
        if first != self.place:
            message = f"the key {node.text[:60]!r} is written twice, first in line {first.line}"
            self._report(FindingDraft("PT006", self.place, message, fix="keep one of them"))
        if node.text == "<<":
            self._report(
                FindingDraft(
                    "PT007", self.place, "the merge key << is not supported", fix="write the keys out"
                )
            )
        # An alias used as a key has the place of its use.
        return Scalar(self.place, node.text, node.value)


def _chars(node: Node) -> int:
    """Return the number of characters in the keys and values of a node."""
    match node:
        case Scalar():
            return len(node.text)
        case Listing():
            return sum(_chars(item) for item in node.items)
        case Mapping():
            return sum(len(entry.key) + _chars(entry.value) for entry in node.entries)
