"""Counts the steps of a backtracking matcher such as Python's `re`, instead of measuring time."""

import re
from collections.abc import Callable, Iterator
from re import _constants as codes
from re import _parser as parser
from typing import Any


class Ceaseless(Exception):
    """The search takes more steps than allowed."""


def steps_of(pattern: str, text: str, *, steps_max: int) -> int:
    """Return the number of steps of a search for `pattern` in all of `text`, whether or not it is found.
    Raises Ceaseless. Lookaround and group names are ignored.
    """
    tree = parser.parse(pattern)
    matcher = _Matcher(text, steps_max)
    for start in range(len(text) + 1):
        for _ in matcher.sequence(list(tree), 0, start):
            break
    return matcher.steps


class _Matcher:
    def __init__(self, text: str, steps_max: int) -> None:
        self._text, self._steps_max, self.steps = text, steps_max, 0

    def sequence(self, items: list[Any], at: int, position: int) -> Iterator[int]:
        """Yield every end of a match of `items[at:]` that begins at `position`, in the order in which a
        matcher tries them.
        """
        self._step()
        if at == len(items):
            yield position
            return
        for end in self._one(items[at], position):
            yield from self.sequence(items, at + 1, end)

    def _one(self, item: Any, position: int) -> Iterator[int]:
        code, value = item
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            yield from self._repeat(value, position, code)
        elif code is codes.SUBPATTERN:
            yield from self.sequence(list(value[3]), 0, position)
        elif code is codes.ATOMIC_GROUP:
            yield from self._first(self.sequence(list(value), 0, position))
        elif code is codes.BRANCH:
            for branch in value[1]:
                yield from self.sequence(list(branch), 0, position)
        elif code is codes.AT:
            begins = value not in (codes.AT_BEGINNING, codes.AT_BEGINNING_STRING) or position == 0
            if begins and (value not in (codes.AT_END, codes.AT_END_STRING) or position == len(self._text)):
                yield position
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            yield position
        elif position < len(self._text) and self._takes(item, self._text[position]):
            yield position + 1

    def _repeat(self, value: Any, position: int, code: Any) -> Iterator[int]:
        least, most, inner = value
        single = self._single(inner)
        if single is not None:
            ends = [position]
            while (
                len(ends) <= most and ends[-1] < len(self._text) and self._takes(single, self._text[ends[-1]])
            ):
                self._step()
                ends.append(ends[-1] + 1)
            complete = ends[int(least) :]
            tried = (
                complete
                if code is codes.MIN_REPEAT
                else complete[-1:]
                if code is codes.POSSESSIVE_REPEAT
                else complete[::-1]
            )
            for end in tried:
                self._step()
                yield end
            return
        found = self._many(list(inner), least, most, position, 0, greedy=code is not codes.MIN_REPEAT)
        yield from self._first(found) if code is codes.POSSESSIVE_REPEAT else found

    def _many(
        self, inner: list[Any], least: int, most: Any, position: int, count: int, *, greedy: bool
    ) -> Iterator[int]:
        self._step()
        if not greedy and count >= least:
            yield position
        if count < most:
            for end in self.sequence(inner, 0, position):
                if end > position or count < least:
                    yield from self._many(inner, least, most, end, count + 1, greedy=greedy)
        if greedy and count >= least:
            yield position

    @staticmethod
    def _single(inner: Any) -> Any:
        """Return the only item of a repeated part if it is a single character; otherwise None."""
        items = list(inner)
        return (
            items[0]
            if len(items) == 1 and items[0][0] in (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN)
            else None
        )

    @staticmethod
    def _first(found: Iterator[int]) -> Iterator[int]:
        for end in found:
            yield end
            return

    @staticmethod
    def _takes(item: Any, character: str) -> bool:
        code, value = item
        if code is codes.LITERAL:
            return bool(ord(character) == value)
        if code is codes.NOT_LITERAL:
            return bool(ord(character) != value)
        if code is codes.ANY:
            return character != "\n"
        if code is codes.IN:
            negated = value[0][0] is codes.NEGATE
            return any(_in(one, character) for one in value[negated:]) is not negated
        raise NotImplementedError(code)

    def _step(self) -> None:
        self.steps += 1
        if self.steps > self._steps_max:
            raise Ceaseless


def _in(one: Any, character: str) -> bool:
    code, value = one
    if code is codes.LITERAL:
        return bool(ord(character) == value)
    if code is codes.RANGE:
        return bool(value[0] <= ord(character) <= value[1])
    return _CATEGORIES[value](character)


_CATEGORIES: dict[Any, Callable[[str], bool]] = {
    codes.CATEGORY_DIGIT: str.isdigit,
    codes.CATEGORY_NOT_DIGIT: lambda character: not character.isdigit(),
    codes.CATEGORY_SPACE: str.isspace,
    codes.CATEGORY_NOT_SPACE: lambda character: not character.isspace(),
    codes.CATEGORY_WORD: lambda character: re.match(r"\w", character) is not None,
    codes.CATEGORY_NOT_WORD: lambda character: re.match(r"\W", character) is not None,
}
