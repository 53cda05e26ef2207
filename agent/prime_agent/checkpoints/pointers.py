"""Pointers: small files, links and copies beside a checkpoint by which a trainer finds it when it resumes.

Without them a script that resumes by itself starts over on another machine. They are recognised by what they
hold: a short text that names a checkpoint, a symbolic link to one, or the same bytes as one of its files.
What is stored is not their content but how to write it for this checkpoint, so a pointer that still names the
one before, or names the next one already, is restored right as well. A copy called `best` is not what a
trainer resumes from, and is left out.
"""

import filecmp
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath

from prime_agent.checkpoints.units import Unit
from prime_train.checkpoints.manifest import PLACE, POINTER_BYTES_MAX, TREE, Pointer
from prime_train.spec.checkpoint_names import DRAFTS, CheckpointNames
from prime_train.trainers.of_spec import FileInfo

ENTRIES_MAX = 1000
POINTERS_MAX = 20
_BEST = "best"


def pointers_of(
    unit: Unit,
    files: Sequence[FileInfo],
    names: CheckpointNames,
    *,
    work: Path,
    present: Collection[int],
    learned: Mapping[str, Pointer],
) -> tuple[Pointer, ...]:
    """Return the pointers beside `unit`, as they are to be written for it. `present`: the numbers of the
    checkpoints in its folder; `learned`: the pointers that were recognised earlier, by name, which count as
    long as they are there.
    """
    number = names.number_in(unit.name)
    if number is None:
        return ()
    found: dict[str, Pointer] = {}
    for entry in _others(unit.folder, names):
        pointer = _recognised(entry, unit, files, names, (number, {number, *present}), work)
        pointer = pointer or _moved(learned.get(entry.name), unit, files)
        if pointer is not None:
            found[pointer.name] = pointer
    return tuple(found[name] for name in sorted(found))[:POINTERS_MAX]


def is_pointed_at(unit: Unit, files: Sequence[FileInfo], names: CheckpointNames, *, work: Path) -> bool:
    """Return whether a text or link beside `unit` names it and is not older than its files: trainers write
    that last, and a pointer that came first is older than what follows.
    """
    number = names.number_in(unit.name)
    if number is None or not files:
        return False
    newest_s = max(file.mtime_s for file in files)
    return any(_names(entry, unit, number, newest_s, names, work) for entry in _others(unit.folder, names))


def _names(
    entry: os.DirEntry[str], unit: Unit, number: int, newest_s: float, names: CheckpointNames, work: Path
) -> bool:
    try:
        status = entry.stat(follow_symlinks=False)
        if status.st_mtime < newest_s:
            return False
        if entry.is_symlink():
            return os.path.realpath(entry.path) == os.path.realpath(unit.path)
        is_short = entry.is_file() and 0 < status.st_size <= POINTER_BYTES_MAX
        return is_short and _text(entry, unit.folder, (number, {number}), names, work) is not None
    except (OSError, ValueError):
        return False  # it is changing, or is no text


def _others(folder: Path, names: CheckpointNames) -> Iterable[os.DirEntry[str]]:
    """Return the entries of the folder that are no part of a checkpoint, and no draft."""
    try:
        with os.scandir(folder) as entries:
            found = list(islice(entries, ENTRIES_MAX))
    except OSError:
        return []
    return [
        entry
        for entry in found
        if not entry.name.startswith(".")
        and not entry.name.endswith(DRAFTS)
        and not names.is_part(entry.name)
        and _BEST not in entry.name.lower()
    ]


def _recognised(
    entry: os.DirEntry[str],
    unit: Unit,
    files: Sequence[FileInfo],
    names: CheckpointNames,
    numbers: tuple[int, set[int]],
    work: Path,
) -> Pointer | None:
    try:
        if entry.is_symlink():
            target = unit.folder / os.readlink(entry.path)  # noqa: PTH115 - of an entry
            if os.path.realpath(target.parent) != os.path.realpath(unit.folder) or not names.is_part(
                target.name
            ):
                return None
            return Pointer(
                name=entry.name,
                kind="link",
                of=_own_part(target.name, unit, files, names) if unit.members else "",
            )
        if not entry.is_file():
            return None
        size = entry.stat().st_size
        same = next(
            (
                file.path
                for file in files
                if file.size == size and size and _is_same(Path(entry.path), unit.root / file.path)
            ),
            None,
        )
        if same is not None:
            return Pointer(name=entry.name, kind="copy", of=same)
        return _text(entry, unit.folder, numbers, names, work) if 0 < size <= POINTER_BYTES_MAX else None
    except (OSError, ValueError):
        return None  # it is changing, or has not the name of a pointer


def _own_part(name: str, unit: Unit, files: Sequence[FileInfo], names: CheckpointNames) -> str:
    """Return the file of this checkpoint that corresponds to the file `name` of any."""
    paths = [file.path for file in files]
    if name in paths or names.is_main(name):
        return name if name in paths else unit.name
    for pattern in names.also:
        mine = next((path for path in paths if names.belongs_by(pattern, path, unit.name)), None)
        if mine is not None and CheckpointNames(pattern, first=names.first).is_main(name):
            return mine
    return unit.name


def _is_same(one: Path, other: Path) -> bool:
    return os.path.samefile(one, other) or filecmp.cmp(one, other, shallow=False)  # noqa: PTH121 - of two paths


def _text(
    entry: os.DirEntry[str],
    unit_folder: Path,
    numbers: tuple[int, set[int]],
    names: CheckpointNames,
    work: Path,
) -> Pointer | None:
    text = Path(entry.path).read_bytes().decode()
    if not all(character.isprintable() or character in "\r\n\t" for character in text):
        return None
    folders = {
        path: slot
        for slot, folder in ((TREE, work), (PLACE, unit_folder))
        for path in (str(folder), os.path.realpath(folder))
    }
    parts = parts_of(text, *numbers, names, folders=folders)
    return Pointer(name=entry.name, kind="text", parts=parts) if parts else None


def parts_of(
    text: str, number: int, present: Collection[int], names: CheckpointNames, *, folders: Mapping[str, int]
) -> tuple[str | int, ...]:
    """Return the parts of a pointer's text, in which the number of the checkpoint and the absolute paths of
    `folders` are replaced; () if the text names no checkpoint that is present.
    """
    if text.strip().isdecimal() and text.strip().isascii():
        spots = [re.search(r"[0-9]+", text)]
    else:
        spots = [found for around in names.text_around_number for found in _naming(*around).finditer(text)]
    named = {
        int(spot["number"] if "number" in spot.re.groupindex else spot[0])
        for spot in spots
        if spot is not None
    }
    chosen = number if number in named else min(named) if len(named) == 1 else None
    if chosen is None or chosen not in present:
        return ()
    places = {
        spot.span("number" if "number" in spot.re.groupindex else 0) for spot in spots if spot is not None
    }
    places |= {found.span() for found in re.finditer(r"(?<![\w.-])[0-9]+(?![\w.-])", text)}
    slots = {begin: (end, _width(text[begin:end])) for begin, end in places if int(text[begin:end]) == chosen}
    for folder in sorted(folders, key=len, reverse=True):
        for found in re.finditer(re.escape(folder) + r"(?=/|$|[\"'\s])", text):
            slots.setdefault(found.start(), (found.end(), folders[folder]))
    return _cut(text, slots)


def _naming(before: str, after: str) -> re.Pattern[str]:
    """Return a pattern of the name of a checkpoint in a text, with or without its ending."""
    number = r"(?P<number>[0-9]{1,12})"
    if before:
        return re.compile(rf"(?<![A-Za-z0-9]){re.escape(before)}{number}(?![0-9])")
    if after:
        return re.compile(rf"(?<![\w.-]){number}{re.escape(after)}")
    return re.compile(rf"(?<=[/\"']){number}(?=[\"'\s]|$)")


def _width(digits: str) -> int:
    return len(digits) if digits.startswith("0") and len(digits) <= 12 else 0


def _cut(text: str, slots: Mapping[int, tuple[int, int]]) -> tuple[str | int, ...]:
    parts: list[str | int] = []
    at = 0
    for begin, (end, slot) in sorted(slots.items()):
        if begin < at:
            continue
        parts += [text[at:begin], slot] if begin > at else [slot]
        at = end
    return tuple([*parts, text[at:]] if at < len(text) else parts)


def _moved(pointer: Pointer | None, unit: Unit, files: Sequence[FileInfo]) -> Pointer | None:
    """Return a pointer that was recognised at another checkpoint as one to this checkpoint."""
    if pointer is None or pointer.kind == "text":
        return pointer
    paths = {file.path for file in files}
    of = pointer.of if pointer.of in paths else _alike(pointer.of, files, unit)
    try:
        return pointer.model_copy(update={"of": of if pointer.of else ""}) if of or not pointer.of else None
    except ValueError:
        return None


def _alike(path: str, files: Sequence[FileInfo], unit: Unit) -> str:
    """Return the file of this checkpoint whose name differs from `path` only in its digits; empty if there is
    none.
    """
    shape = re.sub(r"[0-9]+", "0", path)
    found = next((file.path for file in files if re.sub(r"[0-9]+", "0", file.path) == shape), "")
    return found or (
        unit.name if unit.members and PurePosixPath(unit.name).suffix == PurePosixPath(path).suffix else ""
    )
