"""Which files a process has completed, each time that it did, by the changes that were recorded."""

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from prime_train.rehearsal.recording import Change, FileChange, Recording
from prime_train.spec.checkpoint_names import DRAFTS
from prime_train.text.safe import neutralized

_LOGS = (
    ".csv",
    ".tsv",
    ".jsonl",
    ".ndjson",
    ".log",
    ".out",
    ".err",
    ".md",
    ".html",
    ".yaml",
    ".yml",
    ".toml",
)
_MEDIA = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".mp4", ".wav", ".pdf", ".webm")
_OTHERS = (".pyc", ".pyo", ".lock", ".py", ".sh", ".swp")
_TEXT = (*_LOGS, ".txt", ".json")
_TFEVENTS = "events.out.tfevents"


@dataclass(frozen=True)
class Completed:
    """A file that was completed: closed after it was written, or moved to its name. `order`: the number of
    the change that completed it. `is_rewrite`: the same file was written over in its place. `draft`: the name
    that it had before, if it was moved there.
    """

    path: str
    begun_s: float
    closed_s: float
    order: int
    size: int
    digest: str
    text: str | None = None
    is_rewrite: bool = False
    draft: str = ""

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name


@dataclass
class FileHistory:
    """All that happened to the files. `links`: symbolic links made, with what they name. `deleted`: when
    files and folders were deleted. `growing`: paths of files that are appended to, or open as long as the
    process runs. `open`: paths of files that are being written.
    """

    completed: list[Completed] = field(default_factory=list)
    links: list[FileChange] = field(default_factory=list)
    deleted: dict[str, float] = field(default_factory=dict)
    growing: set[str] = field(default_factory=set)
    open: set[str] = field(default_factory=set)

    def deleted_s(self, path: str, after_s: float) -> float | None:
        """Return when the file or folder was deleted after that time; None if it was not."""
        at_s = self.deleted.get(path)
        return at_s if at_s is not None and at_s > after_s else None


def history_of(recording: Recording) -> FileHistory:
    """Return the history of all files that were recorded."""
    found = FileHistory()
    begun: dict[str, FileChange] = {}
    last: dict[str, Completed] = {}
    for one in list(recording.changes):
        if recording.killed_s is not None and one.at_s >= recording.killed_s and one.change is Change.CLOSED:
            continue  # the kernel closed it
        match one.change:
            case Change.BEGUN if not one.is_folder:
                begun.setdefault(one.path, one)
            case Change.CLOSED if _is_closed_by_end(one, begun.get(one.path, one), recording):
                found.growing.add(one.path)
            case Change.CLOSED:
                _closed(found, one, begun.pop(one.path, one), last)
            case Change.MOVED:
                _moved(found, one, begun, last)
            case Change.LINKED:
                if one.came_from:
                    found.links.append(one)
                else:
                    found.completed.append(_completed(one, one.at_s))
            case Change.DELETED:
                found.deleted[one.path] = one.at_s
                begun.pop(one.path, None)
                last.pop(one.path, None)
            case Change.BEGUN:
                pass
    found.open |= begun.keys()
    found.growing.update(_appended(found.completed))
    found.completed.sort(key=lambda one: one.order)
    return found


def _completed(one: FileChange, begun_s: float) -> Completed:
    return Completed(one.path, begun_s, one.at_s, one.number, one.size, one.digest, one.text)


def _is_closed_by_end(one: FileChange, begun: FileChange, recording: Recording) -> bool:
    """Return whether the file was open for long, and was closed only as the process ended, as logs are."""
    ends = [at_s for at_s in (recording.asked_s, recording.ended_s) if at_s is not None]
    if not ends:
        return False
    return one.at_s >= min(ends) - END_S and min(ends) - begun.at_s > max(LONG_S, min(ends) / 2)


LONG_S = 3.0
END_S = 0.3


def _closed(found: FileHistory, one: FileChange, begun: FileChange, last: dict[str, Completed]) -> None:
    whole = replace(_completed(one, begun.at_s), is_rewrite=one.path in last)
    last[one.path] = whole
    found.completed.append(whole)


def _moved(
    found: FileHistory, one: FileChange, begun: dict[str, FileChange], last: dict[str, Completed]
) -> None:
    """Give what was moved its new name: a file, or all files of a folder."""
    if not one.is_folder:
        last.pop(one.came_from, None)
        # Whatever had that name since it was moved away last was a draft.
        drafts = [done for done in found.completed if one.came_from and done.path == one.came_from]
        found.completed = [done for done in found.completed if done not in drafts]
        begun_s = min((done.begun_s for done in drafts), default=one.at_s)
        whole = replace(_completed(one, begun_s), draft=one.came_from)
        found.completed.append(whole)
        last[one.path] = whole
        return
    prefix = one.came_from + "/"
    found.completed = [
        replace(done, draft=one.came_from) if one.came_from and done.draft.startswith(prefix) else done
        for done in found.completed
    ]
    for number, done in enumerate(found.completed):
        if one.came_from and done.path.startswith(prefix) and done.path in last:
            path = one.path + "/" + done.path[len(prefix) :]
            last.pop(done.path)
            found.completed[number] = last[path] = replace(
                done, path=path, closed_s=one.at_s, draft=one.came_from
            )
    for path in [path for path in begun if one.came_from and path.startswith(prefix)]:
        begun[one.path + "/" + path[len(prefix) :]] = begun.pop(path)


def _appended(completed: Iterable[Completed]) -> Iterator[str]:
    """Yield the paths of files of text to which more was added each time."""
    sizes: dict[str, list[int]] = {}
    for one in completed:
        if one.path.lower().endswith(_TEXT) and not one.draft:
            sizes.setdefault(one.path, []).append(one.size)
    for path, all_sizes in sizes.items():
        if len(all_sizes) > 1 and all(later > earlier for earlier, later in itertools.pairwise(all_sizes)):
            yield path


def is_no_state(path: str) -> bool:
    """Return whether a file of this name is never what a trainer resumes from: code, pictures, logs, and names
    that no config could hold.
    """
    name = PurePosixPath(path).name.lower()
    return name.endswith((*_MEDIA, *_OTHERS, *_LOGS)) or _TFEVENTS in name or neutralized(path) != path


def is_draft(path: str) -> bool:
    """Return whether the file, or a folder that it is in, has a name under which trainers write what they
    rename afterwards.
    """
    return any(part.endswith(DRAFTS) for part in PurePosixPath(path).parts)


def is_text_name(path: str) -> bool:
    return path.lower().endswith(_TEXT)


NUMBER = re.compile(r"\d+\.\d+|\d+")
"""A number in a name; one with a fraction is a metric and no step."""
