"""The answers that a provider's adapter relies on: a table per provider, each answer with its source, or as a
belief.

Of each answer, only the fields that the adapter reads are listed. What else real answers have is compared
with the fake in the tests.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from prime_train.providers.answers.shape import kind_of, parent_of, values_at

BELIEF = "belief"
MAYBE = "?"
ANY = "any"
VALUE_CHARS_MAX = 60
WORDS_MAX = 8


@dataclass(frozen=True)
class KnownAnswer:
    """An answer that a provider is known to give to a call.

    `method`: `*` for any; `path`: a template, in which `{id}` is one segment and `{any}` any number of them;
    `asks`: text that the body of the request contains, where one path has several calls; `statuses`: with any
    of which it comes. `says`: what it means. `source`: where that is known from, or `belief`. `fields`: types
    of fields by path, several with `|`, with `?` at the end if the field may be missing; `values`: all known
    values of fields; `maps`: see `shape`.
    """

    method: str
    path: str
    statuses: tuple[int, ...]
    says: str
    source: str
    asks: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    maps: tuple[str, ...] = ()

    @property
    def is_belief(self) -> bool:
        return self.source == BELIEF

    @property
    def call(self) -> str:
        return f"{self.method} {self.path}{f' ({self.asks})' if self.asks else ''}"

    @property
    def status_text(self) -> str:
        return " or ".join(map(str, self.statuses))

    def is_asked(self, method: str, path: str, asked: str) -> bool:
        """Return whether this call was made. `asked`: the body of the request as text."""
        return (
            self.method in (method, "*") and self._pattern.fullmatch(path) is not None and self.asks in asked
        )

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        pieces = re.split(r"(\{\w+\})", self.path.rstrip("/"))
        kinds = {"{any}": ".+"}
        return re.compile(
            "".join(
                kinds.get(piece, "[^/]+") if piece.startswith("{") else re.escape(piece) for piece in pieces
            )
            + "/?"
        )

    def faults(self, content: object) -> Iterator[str]:
        """Yield in words what of the answer's content is not as it is known to be."""
        for path, kinds in self.fields.items():
            yield from self._type_faults(content, path, kinds)
        for path, known in self.values.items():
            seen = dict.fromkeys(
                value for value in values_at(content, path, maps=self.maps) if isinstance(value, str)
            )
            unknown = [value for value in seen if value not in known]
            if unknown:
                shown = ", ".join(repr(value[:VALUE_CHARS_MAX]) for value in unknown[:WORDS_MAX])
                yield f"{path}: value never seen: {shown}"

    def _type_faults(self, content: object, path: str, kinds: str) -> Iterator[str]:
        may_lack, known = kinds.endswith(MAYBE), kinds.removesuffix(MAYBE).split("|")
        found = values_at(content, path, maps=self.maps)
        parent = parent_of(path)
        if not may_lack and not path.endswith(("[]", "*")) and parent is not None:
            holders = sum(isinstance(value, dict) for value in values_at(content, parent, maps=self.maps))
            if holders > len(found) or (not parent and not holders):
                yield f"{path}: not there, {' or '.join(known)} expected"
        wrong = dict.fromkeys(kind_of(value).value for value in found if kind_of(value).value not in known)
        if wrong and ANY not in known:
            yield f"{path}: {' or '.join(wrong)}, not {' or '.join(known)}"


class Verdict(StrEnum):
    """Whether a real answer was as it is known to be."""

    SEEN = "seen"
    NOT_SEEN = "not seen"
    DIFFERS = "differs"


@dataclass(frozen=True)
class Judged:
    """An answer of the table, or one that the table lacks, and how the real ones were. `what`: the call and
    the status; `why`: the differences, in words.
    """

    what: str
    says: str
    source: str
    verdict: Verdict
    times: int = 0
    why: tuple[str, ...] = ()


def answer_in(
    table: Sequence[KnownAnswer], method: str, path: str, asked: str, status: int
) -> KnownAnswer | None:
    """Return the answer of the table that this is; None if it has none."""
    return next((one for one in table if status in one.statuses and one.is_asked(method, path, asked)), None)


def call_of(table: Sequence[KnownAnswer], method: str, path: str, asked: str) -> str:
    """Return the call as the table names it, with what tells it from others of its path."""
    known = next((one for one in table if one.method == method and one.is_asked(method, path, asked)), None)
    return known.call if known is not None else f"{method} {template_of(table, method, path, asked)}"


def template_of(table: Sequence[KnownAnswer], method: str, path: str, asked: str) -> str:
    """Return the call's template, so that a path is shown without ids; of an unknown call, each segment with
    a digit is left out, unless it is a version.
    """
    known = next((one for one in table if one.method == method and one.is_asked(method, path, asked)), None)
    if known is not None:
        return known.path
    return "/".join(_segment(part) for part in path.split("/"))


def _segment(part: str) -> str:
    return "{id}" if re.search(r"\d", part) and re.fullmatch(r"v\d{1,2}", part) is None else part
