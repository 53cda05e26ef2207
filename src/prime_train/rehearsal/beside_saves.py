"""What is written beside the checkpoints: pointers, links, copies, the best one, and what all of them share."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from prime_train.rehearsal.saves import BEST, GAP_S, Beside, Save
from prime_train.rehearsal.written_files import Completed, FileHistory, is_no_state

_STATE = re.compile(r"state|optim|rng|sched|ema|scaler|trainer", re.IGNORECASE)


def beside(
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
        kind = _kind_of(path, completed, saves, names | _stems(saves))
        if kind:
            found.append(Beside(path, kind, completed[-1].text or ""))
    for link in history.links:
        if PurePosixPath(link.came_from).name in names and link.path not in {one.path for one in found}:
            kind = "best" if BEST.search(PurePosixPath(link.path).name) else "link"
            found.append(Beside(link.path, kind, link.came_from))
    return found


def _stems(saves: Sequence[Save]) -> set[str]:
    """Return the names of the saves up to their numbers, by which a text may call them."""
    return {
        found[0]
        for save in saves
        if save.number is not None
        and (found := re.match(rf".*?[^\d]0*{save.number}(?!\d)", PurePosixPath(save.path).name))
    }


def _kind_of(path: str, completed: Sequence[Completed], saves: Sequence[Save], names: set[str]) -> str:
    name = PurePosixPath(path).name
    digests = {one.digest for save in saves for one in save.members}
    if all(one.text is not None for one in completed):
        numbers = {str(save.number) for save in saves}
        texts = [one.text or "" for one in completed]
        if all(any(other in text for other in names) or (text.strip() in numbers) for text in texts):
            return "pointer"
    if BEST.search(name):
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


CLOCKS_S = 0.01
"""Seconds by which times of files may differ from those of events."""


def _is_newest_each_time(completed: Sequence[Completed], saves: Sequence[Save]) -> bool:
    for one in completed:
        newest = [save for save in saves if save.begun_s <= one.closed_s + CLOCKS_S]
        if newest and one.digest not in {member.digest for member in newest[-1].members}:
            return False
    return True
