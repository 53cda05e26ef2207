"""Recognises saves by the files that were seen: their unit, their names, the number in them, when one is
complete, and what is written beside it.

The order of certainty: events of the kernel before times; a number that changes from save to save, checked
against the step that the script reports; files of one number are one unit, and the one that is closed last is
the sentinel; a short text or link that is renewed after each unit and names it is a pointer; a file with the
bytes of the newest one is a copy of it, one that sometimes has older bytes is the best.
"""

import re
import string
from collections.abc import Iterator
from pathlib import PurePosixPath

from prime_train.rehearsal.fixed_saves import fixed, overwritten
from prime_train.rehearsal.numbered_saves import is_doubtful, numbered
from prime_train.rehearsal.recording import Change, FileChange, Recording
from prime_train.rehearsal.saves import Save, SavesSeen
from prime_train.rehearsal.written_files import Completed, FileHistory, history_of, is_draft, is_no_state
from prime_train.spec.checkpoint_names import counting_field


def saves_seen(recording: Recording) -> SavesSeen:
    """Return what the recording shows of the script's checkpoints; without saves if it shows none."""
    history = history_of(recording)
    files = [
        one
        for one in history.completed
        if one.path not in history.growing and not is_no_state(one.path) and one.size > 0
        if not is_draft(one.path)
    ]
    found, overwritten = numbered(files, history), fixed(files, history)
    if found is None:
        return overwritten
    is_surer = overwritten.saves and not is_doubtful(overwritten.saves[0].path)
    # Numbered samples, or the best of each epoch, beside a state that each save writes over.
    return overwritten if is_surer and is_doubtful(found.saves[0].path) else found


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
    found = _numbered_in(folder, known, history) if known.counts else _fixed_in(folder, known, history)
    if known.is_folder and known.sentinel:
        found = [save for save in found if any(one.name == known.sentinel for one in save.members)]
    # The last of those that are known may have been cut off.
    expected = min((_count(save) for save in known.saves[:-1] or known.saves), default=0)
    return sorted((save for save in found if _count(save) >= expected), key=lambda save: save.closed_s)


def _count(save: Save) -> int:
    return len({one.path for one in save.members})


def _fixed_in(folder: str, known: SavesSeen, history: FileHistory) -> list[Save]:
    versions = [
        [one for one in history.completed if re.fullmatch(rf"(?:{folder}/)?{_expression(name)}", one.path)]
        for name in (known.pattern, *known.also)
    ]
    main, also = [one for one in versions[0] if one.size > 0], versions[1:]
    return [overwritten(one.path, one, also, main) for one in main]


def _numbered_in(folder: str, known: SavesSeen, history: FileHistory) -> list[Save]:
    main = re.compile(rf"(?P<unit>(?:{folder}/)?{_expression(known.pattern)})(?P<inside>/.*)?")
    also = [re.compile(rf"(?:{folder}/)?{_expression(pattern)}(?:/.*)?") for pattern in known.also]
    by_number: dict[int, list[Completed]] = {}
    paths: dict[int, str] = {}
    for one in history.completed:
        found = main.fullmatch(one.path)
        if found is not None and bool(found["inside"]) == known.is_folder and one.size > 0:
            number = int(found["number"])
            by_number.setdefault(number, []).append(one)
            paths[number] = found["unit"]
    for one in history.completed:
        part = next((found for pattern in also if (found := pattern.fullmatch(one.path))), None)
        if part is not None and "number" in part.groupdict():
            by_number.get(int(part["number"]), []).append(one)
    saves = []
    for number, members in by_number.items():
        members.sort(key=lambda one: one.order)
        closed_s = max(one.closed_s for one in members)
        gone = history.deleted_s(paths[number], closed_s)
        begun_s = min(one.begun_s for one in members)
        saves.append(Save(number, paths[number], begun_s, closed_s, tuple(members), gone))
    return saves


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
