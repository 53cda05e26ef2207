"""Saves under a name without a number, which each of them writes over."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from prime_train.rehearsal.saves import BEST, GAP_S, Beside, Save, SavesSeen
from prime_train.rehearsal.written_files import NUMBER, Completed, FileHistory


def fixed(files: Sequence[Completed], history: FileHistory) -> SavesSeen:
    """Return the saves under fixed names; without saves if there are none."""
    by_path: dict[str, list[Completed]] = {}
    for one in files:
        by_path.setdefault(one.path, []).append(one)
    binary = {
        path: found for path, found in by_path.items() if not all(one.text is not None for one in found)
    }
    state = binary or {path: found for path, found in by_path.items() if len(found) > 1}
    usual = {
        path: found for path, found in state.items() if not BEST.search(PurePosixPath(path).name)
    } or state
    if not usual:
        return SavesSeen()
    most = max(len(found) for found in usual.values())
    often = {path: found for path, found in usual.items() if len(found) >= max(1, most - 1)}
    main = max(often, key=lambda path: (len(often[path]), max(one.size for one in often[path])))
    parent = str(PurePosixPath(main).parent)
    same = [path for path in by_path if path != main and str(PurePosixPath(path).parent) == parent]
    copies = [path for path in same if path in often and _are_same(by_path[path], by_path[main])]
    also = [
        path
        for path in same
        if path not in copies
        and not BEST.search(PurePosixPath(path).name)
        and _is_with_each(by_path[path], by_path[main])
    ]
    dated = _dated(usual) if most == 1 else ""
    if dated:
        return SavesSeen(others=(dated,))
    saves = [overwritten(main, one, [by_path[path] for path in also], by_path[main]) for one in by_path[main]]
    best = [path for path in state if BEST.search(PurePosixPath(path).name)]
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


def _is_with_each(files: Sequence[Completed], saves: Sequence[Completed]) -> bool:
    """Return whether this file is written with each save, and else never."""
    if not len(saves) - 1 <= len(files) <= len(saves) + 1:
        return False
    return all(
        any(save.begun_s - GAP_S <= one.closed_s <= save.closed_s + GAP_S for save in saves) for one in files
    )


def _dated(files: Iterable[str]) -> str:
    """Return the common name of files that differ only in numbers, none of which counts, such as a date."""
    names = Counter(NUMBER.sub("*", path) for path in files)
    name, count = names.most_common(1)[0]
    return name if count > 1 else ""


def _are_same(files: Sequence[Completed], others: Sequence[Completed]) -> bool:
    digests = {one.digest for one in others}
    return all(one.digest in digests for one in files)


def overwritten(
    path: str, one: Completed, also: Sequence[Sequence[Completed]], all_of_it: Sequence[Completed]
) -> Save:
    """Return the save that this version of a file is, with the versions of others that belong to it. `path`:
    the file; `also`: all versions of each of the others; `all_of_it`: all versions of the file.
    """
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
