"""Saves by the numbers in their names: which number counts, and which files of one number are one checkpoint."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from prime_train.rehearsal.beside_saves import beside
from prime_train.rehearsal.saves import BEST, GAP_S, Save, SavesSeen
from prime_train.rehearsal.written_files import NUMBER, Completed, FileHistory, is_text_name

_STEPS = re.compile(r"(?:step|iter|iteration|update|(?<![a-z])(?:it|s|n))s?[-_=]?$", re.IGNORECASE)
_STEPS_AFTER = re.compile(r"[-_]?(?:step|iter|update)", re.IGNORECASE)
_EPOCHS = re.compile(r"(?:epoch|(?<![a-z])(?:ep|e))s?[-_=]?$", re.IGNORECASE)
_UNITS = re.compile(r"(?:checkpoint|ckpt|model|snapshot|state|weights|save)s?[-_.]?$", re.IGNORECASE)
_RANKS = re.compile(
    r"(?:rank|shard|part|worker|process|split|(?<![a-z])(?:of|mp|tp|pp|dp))[-_=]?$", re.IGNORECASE
)


@dataclass
class _Family:
    """The files whose paths differ only in numbers. `parts`: the path, cut at its whole numbers, with `*` for
    those with a fraction that changes.
    """

    parts: tuple[str, ...]
    files: list[tuple[tuple[str, ...], Completed]] = field(default_factory=list)

    @property
    def size(self) -> int:
        return max(one.size for _, one in self.files)

    def values(self, slot: int) -> list[int]:
        return [int(numbers[slot]) for numbers, _ in self.files]


def _families(files: Iterable[Completed]) -> list[_Family]:
    found: dict[tuple[str, ...], _Family] = {}
    fractions: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for one in files:
        parts, numbers, broken, at = [""], [], [], 0
        for number in NUMBER.finditer(one.path):
            parts[-1] += one.path[at : number.start()]
            at = number.end()
            if "." in number[0]:
                parts[-1] += _FRACTION
                broken.append(number[0])
            else:
                numbers.append(number[0])
                parts.append("")
        parts[-1] += one.path[at:]
        found.setdefault(tuple(parts), _Family(tuple(parts))).files.append((tuple(numbers), one))
        fractions.setdefault(tuple(parts), set()).add(tuple(broken))
    for name, family in found.items():
        family.parts = _with_fractions(name, fractions[name])
    return list(found.values())


_FRACTION = "\0"


def _with_fractions(parts: Sequence[str], seen: set[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the parts with the numbers that have a fraction, and `*` for those that change."""
    shown = iter([column[0] if len(set(column)) == 1 else "*" for column in zip(*sorted(seen), strict=True)])
    return tuple(re.sub(_FRACTION, lambda _: next(shown), part) for part in parts)


@dataclass(frozen=True)
class _Numbered:
    """A family with the slot of the number that counts. `unit`: the path of the unit with {n} for the number
    and `*` for other numbers that change; `inside`: the path of the file in it, empty if the unit is a file.
    """

    unit: str
    inside: str
    slot: int
    counts: str
    files: tuple[tuple[int, str, Completed], ...]
    width: int


_PRODUCTS = re.compile(
    r"(?:^|[/_.-])(?:samples?|fakes?|preds?|predictions?|generat(?:ed|ions?)|recons?|reconstructions?|visuals?|plots?|"
    r"figures?|images?|videos?|attentions?|embeddings?|eval(?:uation)?s?|metrics?|batch(?:es)?)(?:[/_.-]|$)",
    re.IGNORECASE,
)
"""Words in paths of what a training produces and never reads again."""


def is_doubtful(path: str) -> bool:
    """Return whether a file of this name may well be no checkpoint to resume from: a product, or the best."""
    return bool(_PRODUCTS.search(path) or BEST.search(PurePosixPath(path).name))


def numbered(files: Sequence[Completed], history: FileHistory) -> SavesSeen | None:
    """Return the saves whose names have numbers; None if there are none."""
    rows = [row for family in _families(files) if (row := _with_slot(family)) is not None]
    by_unit: dict[str, list[_Numbered]] = {}
    for row in rows:
        if _is_state(row):
            by_unit.setdefault(row.unit, []).append(row)
    if not by_unit:
        return None
    sizes = {
        unit: sum(max(one.size for *_, one in row.files) for row in found) for unit, found in by_unit.items()
    }
    main = max(
        by_unit,
        key=lambda unit: (
            not is_doubtful(unit),
            _saves_of(by_unit[unit]) > 1,
            sizes[unit],
            _saves_of(by_unit[unit]),
        ),
    )
    numbers = _numbers_of(by_unit[main])
    parent = str(PurePosixPath(main).parent)
    group = [main]
    for unit, found in by_unit.items():
        theirs = _numbers_of(found)
        if (
            unit != main
            and is_doubtful(unit) == is_doubtful(main)
            and str(PurePosixPath(unit).parent) == parent
            and len(theirs & numbers) >= max(1, len(numbers) - 1)
        ):
            group.append(unit)
    for row in rows:
        if not _is_state(row) and _is_text_of(row, parent, _saves(by_unit[main], by_unit[main], history)):
            by_unit.setdefault(row.unit, []).append(row)
            group.append(row.unit)
    group.sort(key=lambda unit: min(one.order for row in by_unit[unit] for *_, one in row.files))
    states = [unit for unit in group if any(_is_state(row) for row in by_unit[unit])]
    main = states[0] if not any(row.inside for row in by_unit[main]) else main
    others = tuple(unit for unit in by_unit if unit not in group)
    return _seen(main, group, by_unit, history, files, others)


def _with_slot(family: _Family) -> _Numbered | None:
    """Return the family with the number that counts; None if no number changes, unless it was seen once."""
    count = len(family.parts) - 1
    if count == 0:
        return None
    values = [family.values(slot) for slot in range(count)]
    changing = [slot for slot in range(count) if len(set(values[slot])) > 1]
    once = len({one.path for _, one in family.files}) == 1
    if not changing and (not once or any(one.is_rewrite for _, one in family.files)):
        return None
    rising = [
        slot for slot in changing if all(b >= a for a, b in zip(values[slot], values[slot][1:], strict=False))
    ]
    candidates = rising or ([] if changing else list(range(count)))
    candidates = [
        slot
        for slot in candidates
        if not _RANKS.search(family.parts[slot]) and not _is_time(family, slot, values[slot])
    ]
    if not changing:
        # Seen once: only a number that a word calls step or epoch is taken for one.
        candidates = [
            slot
            for slot in candidates
            if any(words.search(_label(family, slot)) for words in (_STEPS, _EPOCHS, _UNITS))
        ]
    if not candidates:
        return None
    slot = max(
        candidates,
        key=lambda slot: (
            len(set(values[slot])),
            bool(_STEPS.search(_label(family, slot)) or _STEPS_AFTER.match(family.parts[slot + 1])),
            not _EPOCHS.search(_label(family, slot)),
            values[slot][-1],
        ),
    )
    return _row(family, slot, set(changing))


def _is_time(family: _Family, slot: int, values: Sequence[int]) -> bool:
    """Return whether the number is a time, or a part of a date."""
    if all(UNIX_S[0] < value < UNIX_S[1] or UNIX_S[0] < value / 1000 < UNIX_S[1] for value in values):
        return True
    # At least three numbers with nothing but a sign between them.
    signs = [bool(_DATE_SIGN.fullmatch(part)) for part in family.parts[1:-1]]
    first = slot
    while first > 0 and signs[first - 1]:
        first -= 1
    last = slot
    while last < len(signs) and signs[last]:
        last += 1
    texts = [numbers[first : last + 1] for numbers, _ in family.files]
    if last > first and all(any(_DAY.fullmatch(one) for one in text) for text in texts):
        return True
    return last - first >= 2 and all(
        len(text[0]) in (2, 4) and all(len(one) == 2 or len(one) > 3 for one in text[1:]) for text in texts
    )


UNIX_S = (1_400_000_000, 3_000_000_000)
_DAY = re.compile(r"20\d\d(?:0[1-9]|1[0-2])[0-3]\d")
_DATE_SIGN = re.compile(r"[-_:+.T ]{1,2}")


def _label(family: _Family, slot: int) -> str:
    return family.parts[slot].rpartition("/")[2]


def _row(family: _Family, slot: int, changing: set[int]) -> _Numbered:
    counts = "epoch" if _EPOCHS.search(_label(family, slot)) and len(family.parts) >= 2 else "step"
    text = ""
    for number, part in enumerate(family.parts):
        text += part
        if number == len(family.parts) - 1:
            break
        if number == slot:
            text += "{n}"
        elif number not in changing:
            text += family.files[0][0][number]
        elif _EPOCHS.search(_label(family, number)) and not _RANKS.search(_label(family, number)):
            text += "{epoch}"
        else:
            text += "*"
    parts = PurePosixPath(text).parts
    at = next(number for number, part in enumerate(parts) if "{n}" in part)
    unit, inside = "/".join(parts[: at + 1]), "/".join(parts[at + 1 :])
    depth = at + 1
    files = tuple(
        (int(numbers[slot]), "/".join(PurePosixPath(one.path).parts[:depth]), one)
        for numbers, one in family.files
    )
    return _Numbered(
        unit, inside, slot, counts, files, _width([numbers[slot] for numbers, _ in family.files])
    )


def _width(texts: Sequence[str]) -> int:
    """Return the constant number of digits if some begin with zeros; 0 if none does."""
    widths = {len(text) for text in texts}
    return (
        widths.pop()
        if len(widths) == 1 and any(text.startswith("0") and len(text) > 1 for text in texts)
        else 0
    )


def _is_state(row: _Numbered) -> bool:
    """Return whether the files may be state: short texts alone are none."""
    return bool(row.inside) or not all(
        is_text_name(one.path) and one.text is not None for *_, one in row.files
    )


def _is_text_of(row: _Numbered, parent: str, saves: Sequence[Save]) -> bool:
    """Return whether these texts are written with the saves, each beside the one of its number."""
    by_number = {save.number: save for save in saves}
    is_with_each = {number for number, *_ in row.files} >= set(by_number) - {saves[-1].number}
    return (
        is_with_each
        and str(PurePosixPath(row.unit).parent) == parent
        and all(
            number in by_number
            and by_number[number].begun_s - GAP_S <= one.begun_s <= by_number[number].closed_s + GAP_S
            for number, _, one in row.files
        )
    )


def _numbers_of(rows: Iterable[_Numbered]) -> set[int]:
    return {number for row in rows for number, *_ in row.files}


def _saves_of(rows: Iterable[_Numbered]) -> int:
    return len(_numbers_of(rows))


def _seen(
    main: str,
    group: Sequence[str],
    by_unit: dict[str, list[_Numbered]],
    history: FileHistory,
    files: Sequence[Completed],
    others: tuple[str, ...],
) -> SavesSeen:
    rows = [row for unit in group for row in by_unit[unit]]
    is_folder = any(row.inside for row in by_unit[main])
    saves = _saves(rows, by_unit[main], history)
    first = by_unit[main][0]
    counts = first.counts
    # Of a pattern with both, the step counts.
    names = {unit: PurePosixPath(unit).name.replace("{n}", "{" + counts + "}") for unit in group}
    if counts == "epoch":
        names = {
            unit: name.replace("{epoch}", "*") if name.count("{epoch}") > 1 else name
            for unit, name in names.items()
        }
    folder = _folder_of(main)
    also = [names[unit] for unit in group if unit != main]
    if not is_folder and _is_several(by_unit[main]):
        # The first process's file stands for those of all.
        also.insert(0, names[main])
        names[main] = _name_of_first(names[main], by_unit[main][0])
    names_seen = {PurePosixPath(save.path).name for save in saves}
    is_renamed = all(one.draft for save in saves for one in save.members)
    return SavesSeen(
        tuple(saves),
        folder,
        names[main],
        tuple(also),
        counts,
        first.width,
        is_folder,
        _sentinel(saves, by_unit[main]) if is_folder and len(group) == 1 and not is_renamed else "",
        is_renamed,
        beside=tuple(beside(saves, files, history, folder, names_seen)),
        others=others,
    )


def _is_several(rows: Sequence[_Numbered]) -> bool:
    """Return whether several files of this name have one number."""
    paths: dict[int, set[str]] = {}
    for number, path, _ in (file for row in rows for file in row.files):
        paths.setdefault(number, set()).add(path)
    return any(len(found) > 1 for found in paths.values())


def _name_of_first(pattern: str, row: _Numbered) -> str:
    """Return the pattern with what its wildcards stand for in the first of the files of a number."""
    number = row.files[0][0]
    first = min(path for other, path, _ in row.files if other == number)
    expression = re.escape(pattern).replace(r"\*", "(.*)")
    expression = re.sub(r"\\\{(?:step|epoch)\\\}", r"\\d+", expression)
    found = re.fullmatch(expression, PurePosixPath(first).name)
    values = iter(found.groups() if found is not None else ())
    return re.sub(r"\*", lambda _: next(values, "*"), pattern)


def _folder_of(unit: str) -> str:
    return str(PurePosixPath(unit).parent)


def _saves(rows: Sequence[_Numbered], main: Sequence[_Numbered], history: FileHistory) -> list[Save]:
    by_number: dict[int, list[Completed]] = {}
    paths: dict[int, str] = {}
    for row in rows:
        for number, path, one in row.files:
            by_number.setdefault(number, []).append(one)
            if row in main:
                paths[number] = min(path, paths.get(number, path))
    saves = []
    for number, members in by_number.items():
        if number not in paths:
            continue
        members.sort(key=lambda one: one.order)
        closed_s = max(one.closed_s for one in members)
        gone = history.deleted_s(paths[number], closed_s)
        if gone is None:  # a folder may vanish file by file
            gone = next(
                (at for one in members if (at := history.deleted_s(one.path, closed_s)) is not None), None
            )
        saves.append(
            Save(number, paths[number], min(one.begun_s for one in members), closed_s, tuple(members), gone)
        )
    return sorted(saves, key=lambda save: save.closed_s)


def _sentinel(saves: Sequence[Save], rows: Sequence[_Numbered]) -> str:
    """Return the file that is always completed last in a folder; empty if that changes."""
    whole = saves[:-1] if len(saves) > 2 else saves  # the last one may have been cut off
    last = {one.path[len(save.path) + 1 :] for save in whole for one in save.members[-1:]}
    if len(last) != 1 or not whole:
        return ""
    name = last.pop()
    return (
        name if all(len({one.path for one in save.members}) > 1 for save in whole) and "/" not in name else ""
    )
