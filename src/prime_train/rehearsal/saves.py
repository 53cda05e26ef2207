"""What a checkpoint of the script is, by the files that were seen: its unit, its names, the number in them,
when it is complete, and what is written beside it.

The order of certainty: events of the kernel before times; a number that changes from save to save, checked
against the step that the script reports; files of one number are one unit, and the one that is closed last is
the sentinel; a short text or link that is renewed after each unit and names it is a pointer; a file with the
bytes of the newest one is a copy of it, one that sometimes has older bytes is the best.
"""

import itertools
import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from prime_train.rehearsal.recording import Change, FileChange, Recording, is_even, median
from prime_train.rehearsal.written_files import (
    NUMBER,
    Completed,
    FileHistory,
    history_of,
    is_draft,
    is_no_state,
    is_text_name,
)
from prime_train.spec.checkpoint_names import counting_field

GAP_S = 1.0
"""Seconds without a write after which a further file begins another save, where names have no number."""
_STATE = re.compile(r"state|optim|rng|sched|ema|scaler|trainer", re.IGNORECASE)
_BEST = re.compile(r"(?:^|[-_.])best(?:[-_.]|$)", re.IGNORECASE)
_STEPS = re.compile(r"(?:step|iter|iteration|update|(?<![a-z])(?:it|s|n))s?[-_=]?$", re.IGNORECASE)
_STEPS_AFTER = re.compile(r"[-_]?(?:step|iter|update)", re.IGNORECASE)
_EPOCHS = re.compile(r"(?:epoch|(?<![a-z])(?:ep|e))s?[-_=]?$", re.IGNORECASE)
_UNITS = re.compile(r"(?:checkpoint|ckpt|model|snapshot|state|weights|save)s?[-_.]?$", re.IGNORECASE)
_RANKS = re.compile(
    r"(?:rank|shard|part|worker|process|split|(?<![a-z])(?:of|mp|tp|pp|dp))[-_=]?$", re.IGNORECASE
)


@dataclass(frozen=True)
class Save:
    """One save. `number`: that of its name, None for a name without one. `members`: its files, in the order
    in which they were completed. `deleted_s`: when the script deleted it.
    """

    number: int | None
    path: str
    begun_s: float
    closed_s: float
    members: tuple[Completed, ...]
    deleted_s: float | None = None

    @property
    def size(self) -> int:
        return sum({one.path: one.size for one in self.members}.values())


@dataclass(frozen=True)
class Beside:
    """A file beside the checkpoints: `kind` is pointer, link, copy, best or shared."""

    path: str
    kind: str
    text: str = ""


@dataclass(frozen=True)
class SavesSeen:
    """What was recognised. `folder`: of the checkpoints, with wildcards where its name changes. `pattern`,
    `also`: as a config has them. `counts`: step or epoch, empty for a fixed name. `width`: digits of a number
    that is padded with zeros, 0 for none or unknown. `is_folder`: each checkpoint is a folder. `sentinel`:
    the file that is always completed last, within a folder. `is_renamed`: it appears by a rename, complete.
    `is_in_place`: each save writes over the last one. `others`: names of what else was saved repeatedly.
    """

    saves: tuple[Save, ...] = ()
    folder: str = ""
    pattern: str = ""
    also: tuple[str, ...] = ()
    counts: str = ""
    width: int = 0
    is_folder: bool = False
    sentinel: str = ""
    is_renamed: bool = False
    is_in_place: bool = False
    beside: tuple[Beside, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def numbers(self) -> list[int]:
        return [save.number for save in self.saves if save.number is not None]

    @property
    def every(self) -> int:
        """The distance of the numbers of two saves; 0 if it is not known."""
        distances = [b - a for a, b in zip(self.numbers, self.numbers[1:], strict=False)]
        return int(median(distances)) if distances else 0

    @property
    def save_s(self) -> float:
        """Seconds from the first write of a save to its last."""
        return median([save.closed_s - save.begun_s for save in self.saves])

    @property
    def kept(self) -> int | None:
        """How many checkpoints the script keeps; None if it was not seen to delete any."""
        if self.is_in_place:
            return 1
        gone = [save.deleted_s for save in self.saves if save.deleted_s is not None]
        if not gone:
            return None
        last = max(gone)
        return sum(
            1
            for save in self.saves
            if save.closed_s <= last + GAP_S and (save.deleted_s is None or save.deleted_s > last)
        )

    @property
    def deletes_first(self) -> bool:
        """Whether a checkpoint was deleted right before the next one was saved, or while it was."""
        pairs = list(zip(self.saves, self.saves[1:], strict=False))
        return any(
            old.deleted_s is not None
            and any(
                # Nearer to the save that follows than to the one before.
                before.closed_s < old.deleted_s < new.closed_s
                and new.begun_s - old.deleted_s < (old.deleted_s - before.closed_s) / 2
                for before, new in pairs
            )
            for old in self.saves
        )


@dataclass
class _Family:
    """The files whose paths differ only in numbers. `parts`: the path, cut at its numbers."""

    parts: tuple[str, ...]
    files: list[tuple[tuple[str, ...], Completed]] = field(default_factory=list)

    @property
    def size(self) -> int:
        return max(one.size for _, one in self.files)

    def values(self, slot: int) -> list[int]:
        return [int(numbers[slot]) for numbers, _ in self.files]


def saves_seen(recording: Recording) -> SavesSeen:
    """Return what the recording shows of the script's checkpoints; without saves if it shows none."""
    history = history_of(recording)
    files = [
        one
        for one in history.completed
        if one.path not in history.growing and not is_no_state(one.path) and one.size > 0
        if not is_draft(one.path)
    ]
    numbered = _numbered(files, history)
    return numbered if numbered is not None else _fixed(files, history)


def saves_like(known: SavesSeen, recording: Recording) -> list[Save]:
    """Return the complete saves of another start of the same script, whose folder may have another number,
    date or word.
    """
    history = history_of(recording)
    for folder in _folders_like(known.folder):
        found = _saves_in(folder, known, history)
        if found:
            return found
    return []


def _folders_like(folder: str) -> Iterator[str]:
    """Yield expressions for folders like this one, the narrowest first."""
    parts = PurePosixPath(folder).parts
    yield "/".join(re.sub(r"(?:\\?[\d.:-])*\d+", r"[\\d.:-]+", re.escape(part)) + r"\d*" for part in parts)
    yield "/".join("[^/]+" if re.search(r"\d", part) else re.escape(part) for part in parts)
    yield "/".join([*map(re.escape, parts[:-1]), "[^/]+"])


def _saves_in(folder: str, known: SavesSeen, history: FileHistory) -> list[Save]:
    main = re.compile(rf"(?P<unit>(?:{folder}/)?{_expression(known.pattern)})(?P<inside>/.*)?")
    also = [re.compile(rf"(?:{folder}/)?{_expression(pattern)}(?:/.*)?") for pattern in known.also]
    by_number: dict[int, list[Completed]] = {}
    paths: dict[int, str] = {}
    for one in history.completed:
        found = main.fullmatch(one.path)
        if found is not None and bool(found["inside"]) == known.is_folder and one.size > 0:
            number = int(found["number"]) if known.counts else one.order
            by_number.setdefault(number, []).append(one)
            paths[number] = found["unit"]
    for one in history.completed:
        part = next((found for pattern in also if (found := pattern.fullmatch(one.path))), None)
        if part is not None and known.counts and "number" in part.groupdict():
            by_number.get(int(part["number"]), []).append(one)
    saves = []
    for number, members in by_number.items():
        members.sort(key=lambda one: one.order)
        closed_s = max(one.closed_s for one in members)
        gone = history.deleted_s(paths[number], closed_s)
        begun_s = min(one.begun_s for one in members)
        saves.append(
            Save(number if known.counts else None, paths[number], begun_s, closed_s, tuple(members), gone)
        )
    if known.is_folder and known.sentinel:
        saves = [save for save in saves if any(one.name == known.sentinel for one in save.members)]
    expected = len({one.name for one in known.saves[0].members}) if known.also and known.saves else 0
    whole = [save for save in saves if len({one.path for one in save.members}) >= expected]
    return sorted(whole, key=lambda save: save.closed_s)


def begins_save(known: SavesSeen, change: FileChange) -> bool:
    """Return whether this change begins a save, or goes on with one."""
    drafts = {one.draft.rpartition("/")[2] for save in known.saves for one in save.members if one.draft}
    expressions = [_expression(name, group=False) for name in (known.pattern, *known.also)]
    expressions += [re.sub(r"\d+", r"\\d+", re.escape(draft)) for draft in sorted(drafts)]
    names = re.compile("|".join(expressions))
    return (
        change.change is Change.BEGUN
        and not change.is_folder
        and any(names.match(part) for part in PurePosixPath(change.path).parts)
    )


def _expression(pattern: str, *, group: bool = True) -> str:
    """Return the expression for names of this pattern."""
    counts, text = counting_field(pattern), ""
    for literal, name, _, _ in string.Formatter().parse(pattern):
        text += re.escape(literal).replace(r"\*", "[^/]*")
        if name is not None:
            text += r"(?P<number>\d+)" if group and name == counts else r"\d+"
    return text


# ------------------------------------------------------------------------------------------------------------
# names with numbers


def _families(files: Iterable[Completed]) -> list[_Family]:
    found: dict[tuple[str, ...], _Family] = {}
    for one in files:
        parts, numbers, at = [""], [], 0
        for number in NUMBER.finditer(one.path):
            parts[-1] += one.path[at : number.start()]
            at = number.end()
            if "." in number[0]:
                parts[-1] += "*"
            else:
                numbers.append(number[0])
                parts.append("")
        parts[-1] += one.path[at:]
        found.setdefault(tuple(parts), _Family(tuple(parts))).files.append((tuple(numbers), one))
    return list(found.values())


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


def _numbered(files: Sequence[Completed], history: FileHistory) -> SavesSeen | None:
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
        by_unit, key=lambda unit: (_saves_of(by_unit[unit]) > 1, sizes[unit], _saves_of(by_unit[unit]))
    )
    numbers = _numbers_of(by_unit[main])
    parent = str(PurePosixPath(main).parent)
    group = [main]
    for unit, found in by_unit.items():
        theirs = _numbers_of(found)
        if (
            unit != main
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
    candidates = [slot for slot in candidates if not _RANKS.search(family.parts[slot])]
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
    names_seen = {PurePosixPath(save.path).name for save in saves}
    is_renamed = all(one.draft for save in saves for one in save.members)
    return SavesSeen(
        tuple(saves),
        folder,
        names[main],
        tuple(names[unit] for unit in group if unit != main),
        counts,
        first.width,
        is_folder,
        _sentinel(saves, by_unit[main]) if is_folder and len(group) == 1 and not is_renamed else "",
        is_renamed,
        beside=tuple(_beside(saves, files, history, folder, names_seen)),
        others=others,
    )


def _folder_of(unit: str) -> str:
    return str(PurePosixPath(unit).parent)


def _saves(rows: Sequence[_Numbered], main: Sequence[_Numbered], history: FileHistory) -> list[Save]:
    by_number: dict[int, list[Completed]] = {}
    paths: dict[int, str] = {}
    for row in rows:
        for number, path, one in row.files:
            by_number.setdefault(number, []).append(one)
            if row in main:
                paths[number] = path
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


# ------------------------------------------------------------------------------------------------------------
# names without a number


def _fixed(files: Sequence[Completed], history: FileHistory) -> SavesSeen:
    by_path: dict[str, list[Completed]] = {}
    for one in files:
        by_path.setdefault(one.path, []).append(one)
    binary = {
        path: found for path, found in by_path.items() if not all(one.text is not None for one in found)
    }
    state = binary or {path: found for path, found in by_path.items() if len(found) > 1}
    usual = {
        path: found for path, found in state.items() if not _BEST.search(PurePosixPath(path).name)
    } or state
    if not usual:
        return SavesSeen()
    most = max(len(found) for found in usual.values())
    often = {path: found for path, found in usual.items() if len(found) >= max(1, most - 1)}
    main = max(often, key=lambda path: (len(often[path]), max(one.size for one in often[path])))
    parent = str(PurePosixPath(main).parent)
    same = [path for path in often if path != main and str(PurePosixPath(path).parent) == parent]
    copies = [path for path in same if _are_same(by_path[path], by_path[main])]
    also = [path for path in same if path not in copies]
    saves = [
        _overwritten(main, one, [by_path[path] for path in also], by_path[main]) for one in by_path[main]
    ]
    best = [path for path in state if _BEST.search(PurePosixPath(path).name)]
    beside = [Beside(path, "copy") for path in copies] + [Beside(path, "best") for path in best]
    return SavesSeen(
        tuple(saves),
        parent,
        PurePosixPath(main).name,
        tuple(PurePosixPath(path).name for path in also),
        is_renamed=all(one.draft for one in by_path[main]),
        is_in_place=True,
        beside=tuple(beside),
    )


def _are_same(files: Sequence[Completed], others: Sequence[Completed]) -> bool:
    digests = {one.digest for one in others}
    return all(one.digest in digests for one in files)


def _overwritten(
    path: str, one: Completed, also: Sequence[Sequence[Completed]], all_of_it: Sequence[Completed]
) -> Save:
    following = next((other.begun_s for other in all_of_it if other.order > one.order), float("inf"))
    before = max((other.closed_s for other in all_of_it if other.order < one.order), default=float("-inf"))
    members = [one]
    for found in also:
        near = [
            other
            for other in found
            if before < other.closed_s < following and abs(other.closed_s - one.closed_s) < GAP_S
        ]
        members += near[-1:]
    members.sort(key=lambda member: member.order)
    return Save(None, path, min(m.begun_s for m in members), max(m.closed_s for m in members), tuple(members))


# ------------------------------------------------------------------------------------------------------------
# what is beside them


def _beside(
    saves: Sequence[Save],
    files: Sequence[Completed],
    history: FileHistory,
    folder: str,
    names: set[str],
) -> list[Beside]:
    members = {one.path for save in saves for one in save.members}
    found: list[Beside] = []
    by_path: dict[str, list[Completed]] = {}
    for one in history.completed:
        if one.path not in members and one.path not in history.growing and not is_no_state(one.path):
            by_path.setdefault(one.path, []).append(one)
    for path, completed in by_path.items():
        if any(path.startswith(save.path + "/") for save in saves):
            continue
        kind = _kind_of(path, completed, saves, names)
        if kind:
            found.append(Beside(path, kind, completed[-1].text or ""))
    for link in history.links:
        if PurePosixPath(link.came_from).name in names and link.path not in {one.path for one in found}:
            kind = "best" if _BEST.search(PurePosixPath(link.path).name) else "link"
            found.append(Beside(link.path, kind, link.came_from))
    return found


def _kind_of(path: str, completed: Sequence[Completed], saves: Sequence[Save], names: set[str]) -> str:
    name = PurePosixPath(path).name
    digests = {one.digest for save in saves for one in save.members}
    if all(one.text is not None for one in completed):
        numbers = {str(save.number) for save in saves}
        texts = [one.text or "" for one in completed]
        if all(any(other in text for other in names) or (text.strip() in numbers) for text in texts):
            return "pointer"
    if _BEST.search(name):
        return "best"
    if all(one.digest in digests for one in completed):
        return "copy" if _is_newest_each_time(completed, saves) else "best"
    with_saves = sum(
        any(save.begun_s - GAP_S <= one.closed_s <= save.closed_s + GAP_S for one in completed)
        for save in saves
    )
    is_binary = any(one.text is None for one in completed)
    if with_saves >= len(saves) - 1 and len(completed) > 1 and (is_binary or _STATE.search(name)):
        return "shared"
    return ""


def _is_newest_each_time(completed: Sequence[Completed], saves: Sequence[Save]) -> bool:
    for one in completed:
        newest = [save for save in saves if save.begun_s <= one.closed_s]
        if newest and one.digest not in {member.digest for member in newest[-1].members}:
            return False
    return True


def distances(numbers: Sequence[int]) -> str:
    """Return how the numbers of the saves follow each other, in words."""
    if is_even(numbers):
        return f"each {numbers[1] - numbers[0]}"
    steps = Counter(b - a for a, b in itertools.pairwise(numbers))
    return "at irregular distances" if len(steps) > 1 else ""
