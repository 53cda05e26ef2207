"""Watches a folder for changes of files: by the kernel's events on Linux, elsewhere by looking again and
again.

The kernel says when a file is created, written to, closed, renamed or deleted, in this order. Looking finds
only what has changed between two looks, so a file counts as closed once its size and time have stayed the
same for `QUIET_S`.
"""

import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import blake3

from prime_train.rehearsal.recording import Change, FileChange

if sys.platform == "linux":
    from inotify_simple import Event, INotify, flags

FOLDERS_MAX = 5_000
CHANGES_MAX = 200_000
DIGEST_BYTES_MAX = 64 * 2**20
"""Bytes of a file that are read at most for its digest: half from its beginning, half from its end."""
TEXT_BYTES_MAX = 4096
QUIET_S = 0.3
LOOK_S = 0.05
WAIT_MS = 100
LEFT_OUT = frozenset({"__pycache__", ".git", "wandb", "mlruns", ".cache", "node_modules"})
"""Folders that are not watched: caches, and what trackers of experiments write."""


class FileWatch:
    """Watches everything below `root` from its start until `end`. `seen` is called with each change, and
    `touched` with the path of a file at each write, both in the thread of the watch. `now_s`: seconds since
    the process was started.
    """

    def __init__(
        self,
        root: Path,
        seen: Callable[[FileChange], None],
        touched: Callable[[str], None],
        now_s: Callable[[], float],
    ) -> None:
        self.root, self._seen, self.touched, self.now_s = root, seen, touched, now_s
        self._number = 0
        self.is_over = threading.Event()
        self.is_ready = threading.Event()
        self.is_exact = sys.platform == "linux"
        self._thread = threading.Thread(target=self._watch, name="files", daemon=True)

    def start(self) -> None:
        """Start the watch; on return, no change is missed any more."""
        self._thread.start()
        self.is_ready.wait()

    def end(self) -> None:
        """End the watch, after what has happened so far was told."""
        self.is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        if sys.platform == "linux":
            try:
                kernel = INotify()
            except OSError:  # the limit of watches for this user is reached
                self.is_exact = False
            else:
                with kernel:
                    return _Events(self, kernel).watch()
        return _Looks(self).watch()

    def tell(
        self,
        change: Change,
        path: Path,
        *,
        came_from: str = "",
        is_folder: bool = False,
        with_content: bool = False,
        at_s: float | None = None,
    ) -> None:
        """Tell of a change. `at_s`: when it happened, if that was not now."""
        if self._number >= CHANGES_MAX:
            return
        self._number += 1
        status = _status(path)
        at_s = self.now_s() if at_s is None else at_s
        digest, text = ("", None)
        if with_content and status is not None and stat.S_ISREG(status.st_mode):
            digest, text = _content(path, status.st_size)
        self._seen(
            FileChange(
                self._number,
                at_s,
                change,
                path.relative_to(self.root).as_posix(),
                status.st_ino if status else 0,
                status.st_size if status else 0,
                digest,
                text,
                came_from,
                is_folder,
            )
        )


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None


def _content(path: Path, size: int) -> tuple[str, str | None]:
    """Return the digest of the file's content, and the content itself if it is a short text."""
    with suppress(OSError), path.open("rb") as file:
        head = file.read(DIGEST_BYTES_MAX // 2)
        digest = blake3.blake3(head)
        if size > len(head):
            file.seek(max(len(head), size - DIGEST_BYTES_MAX // 2))
            digest.update(file.read(DIGEST_BYTES_MAX // 2))
        digest.update(str(size).encode())
        text = None
        if size <= TEXT_BYTES_MAX and b"\0" not in head:
            with suppress(UnicodeDecodeError):
                text = head.decode()
        return digest.hexdigest(), text
    return "", None


@dataclass
class _Moved:
    path: Path
    is_folder: bool


class _Events:
    """The watch by the kernel's events."""

    def __init__(self, watch: FileWatch, kernel: "INotify") -> None:
        self._watch, self._kernel, self._tell, self._root = watch, kernel, watch.tell, watch.root
        self._folders: dict[int, Path] = {}
        self._open: set[Path] = set()
        self._moving: dict[int, _Moved] = {}
        self._mask = (
            flags.CREATE
            | flags.MODIFY
            | flags.CLOSE_WRITE
            | flags.MOVED_FROM
            | flags.MOVED_TO
            | flags.DELETE
            | flags.ONLYDIR
        )

    def watch(self) -> None:
        for _ in self._add(self._root):
            pass
        self._watch.is_ready.set()
        while not self._watch.is_over.is_set():
            self._read(WAIT_MS)
        self._read(0)  # what had happened before the end

    def _read(self, wait_ms: int) -> None:
        for event in self._kernel.read(timeout=wait_ms):
            self._take(event)

    def _add(self, folder: Path) -> Iterator[Path]:
        """Watch the folder and those below, and yield the files that are there already."""
        if len(self._folders) >= FOLDERS_MAX or folder.name in LEFT_OUT:
            return
        with suppress(OSError):
            self._folders[self._kernel.add_watch(folder, self._mask)] = folder
            with os.scandir(folder) as entries:
                found = list(entries)
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    yield from self._add(Path(entry.path))
                else:
                    yield Path(entry.path)

    def _take(self, event: "Event") -> None:
        folder = self._folders.get(event.wd)
        if folder is None or not event.name:
            return
        path, is_folder = folder / event.name, bool(event.mask & flags.ISDIR)
        if event.mask & flags.MOVED_FROM:
            self._moving[event.cookie] = _Moved(path, is_folder)
            self._open.discard(path)
        elif event.mask & flags.MOVED_TO:
            self._moved(event.cookie, path, is_folder)
        elif event.mask & flags.DELETE:
            self._open.discard(path)
            self._tell(Change.DELETED, path, is_folder=is_folder)
        elif is_folder and event.mask & flags.CREATE:
            self._new_folder(path)
        elif event.mask & flags.CLOSE_WRITE:
            self._begin(path)
            self._open.discard(path)
            self._tell(Change.CLOSED, path, with_content=True)
        elif event.mask & flags.CREATE:
            self._created(path)
        elif event.mask & flags.MODIFY:
            self._begin(path)
            self._watch.touched(path.relative_to(self._root).as_posix())

    def _begin(self, path: Path) -> None:
        if path not in self._open:
            self._open.add(path)
            self._tell(Change.BEGUN, path)

    def _created(self, path: Path) -> None:
        if path.is_symlink():
            with suppress(OSError):
                self._tell(Change.LINKED, path, came_from=str(path.readlink()))
            return
        status = _status(path)
        if status is not None and status.st_nlink > 1:
            self._tell(Change.LINKED, path, with_content=True)
            return
        self._begin(path)

    def _new_folder(self, path: Path) -> None:
        self._tell(Change.BEGUN, path, is_folder=True)
        # A file that was made before its folder was watched: its end may have been missed. Times of files say
        # in which order they were written.
        for file in sorted(self._add(path), key=_changed_ns):
            self._created(file)
            if not file.is_symlink() and not _is_open(file):
                self._open.discard(file)
                self._tell(Change.CLOSED, file, with_content=True)

    def _moved(self, cookie: int, path: Path, is_folder: bool) -> None:
        source = self._moving.pop(cookie, None)
        came_from = ""
        if source is not None:
            came_from = source.path.relative_to(self._root).as_posix()
            for number, folder in self._folders.items():
                if folder == source.path or folder.is_relative_to(source.path):
                    self._folders[number] = path / folder.relative_to(source.path)
        if is_folder:
            self._files_moved(source.path if source is not None else None, path)
        self._tell(Change.MOVED, path, came_from=came_from, is_folder=is_folder, with_content=not is_folder)
        if path.is_symlink():
            with suppress(OSError):
                self._tell(Change.LINKED, path, came_from=str(path.readlink()))

    def _files_moved(self, source: Path | None, path: Path) -> None:
        """Tell of the files of a folder that was moved: what was told of them before may have come after the
        move, when nothing was at their old paths any more.
        """
        watched = set(self._folders.values())
        for folder, names in list(_files_below(path)):
            if folder not in watched:
                with suppress(OSError):
                    self._folders[self._kernel.add_watch(folder, self._mask)] = folder
            for file in names:
                before = source / file.relative_to(path) if source is not None else None
                if before is not None:
                    self._open.discard(before)
                came_from = before.relative_to(self._root).as_posix() if before is not None else ""
                self._tell(Change.MOVED, file, came_from=came_from, with_content=True)


def _files_below(top: Path) -> Iterator[tuple[Path, list[Path]]]:
    """Yield each folder from this one down, with its files in the order of their times."""
    for folder, _, names in os.walk(top):
        files = [Path(folder) / name for name in names]
        yield Path(folder), sorted((one for one in files if not one.is_symlink()), key=_changed_ns)


def _changed_ns(path: Path) -> int:
    status = _status(path)
    return status.st_mtime_ns if status is not None else 0


def _is_open(path: Path) -> bool:
    """Return whether a process of this user has the file open for writing, as far as can be seen."""
    status = _status(path)
    if status is None:
        return False
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        with suppress(OSError):
            for descriptor in (process / "fd").iterdir():
                with suppress(OSError):
                    other = descriptor.stat()
                    if (other.st_dev, other.st_ino) == (status.st_dev, status.st_ino):
                        return _writes(process / "fdinfo" / descriptor.name)
    return False


def _writes(info: Path) -> bool:
    flags_line = next((line for line in info.read_text().splitlines() if line.startswith("flags:")), "")
    return bool(flags_line) and int(flags_line.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY


@dataclass
class _Looked:
    size: int
    changed_ns: int
    inode: int
    since_s: float
    is_told: bool = False

    def is_now(self, status: os.stat_result) -> bool:
        """Return whether this is the same file, unchanged, and not a new one that got its number."""
        return (self.inode, self.size, self.changed_ns) == (
            status.st_ino,
            status.st_size,
            status.st_mtime_ns,
        )


class _Looks:
    """The watch by looking again and again."""

    def __init__(self, watch: FileWatch) -> None:
        self._watch, self._tell, self._root = watch, watch.tell, watch.root
        self._known: dict[Path, _Looked] = {}

    def watch(self) -> None:
        self._known = {
            path: _Looked(status.st_size, status.st_mtime_ns, status.st_ino, 0.0, is_told=True)
            for path, status in self._files()
        }
        self._watch.is_ready.set()
        while not self._watch.is_over.wait(LOOK_S):
            self._look()
        self._look()
        self._look(is_last=True)  # nothing changes any more

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        for folder, folders, names in os.walk(self._root):
            folders[:] = [name for name in folders if name not in LEFT_OUT]
            links = [name for name in folders if (Path(folder) / name).is_symlink()]
            for name in (*names, *links):
                with suppress(OSError):
                    status = (Path(folder) / name).lstat()
                    if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                        yield Path(folder) / name, status

    def _at_s(self, status: os.stat_result) -> float:
        """Return when a file was changed, in seconds since the start of the process."""
        return self._watch.now_s() - max(0.0, time.time() - status.st_mtime)

    def _moved(self, source: Path, path: Path, status: os.stat_result, now_s: float) -> None:
        self._known[path] = _Looked(status.st_size, status.st_mtime_ns, status.st_ino, now_s, is_told=True)
        came_from = source.relative_to(self._root).as_posix()
        self._tell(Change.MOVED, path, came_from=came_from, with_content=True)

    def _look(self, *, is_last: bool = False) -> None:
        now_s = time.monotonic()
        found = dict(self._files())
        gone = {path: self._known.pop(path) for path in [*self._known] if path not in found}
        for path, status in found.items():
            known = self._known.get(path)
            if known is None or known.inode != status.st_ino:
                source = next((one for one, before in gone.items() if before.is_now(status)), None)
                if source is not None:
                    del gone[source]
                    self._moved(source, path, status, now_s)
        for path in gone:
            self._tell(Change.DELETED, path)
        for path, status in sorted(found.items(), key=lambda row: row[1].st_mtime_ns):
            known = self._known.get(path)
            is_same = known is not None and (known.size, known.changed_ns, known.inode) == (
                status.st_size,
                status.st_mtime_ns,
                status.st_ino,
            )
            if known is None or not is_same:
                self._known[path] = _Looked(status.st_size, status.st_mtime_ns, status.st_ino, now_s)
                if stat.S_ISLNK(status.st_mode):
                    self._tell(Change.LINKED, path, came_from=str(path.readlink()))
                    self._known[path].is_told = True
                elif known is None or known.is_told:
                    self._tell(Change.BEGUN, path, at_s=self._at_s(status))
                self._watch.touched(path.relative_to(self._root).as_posix())
            elif known is not None and not known.is_told and (is_last or now_s - known.since_s >= QUIET_S):
                known.is_told = True
                # What was cut off by the end of the process was closed by that.
                at_s = None if is_last else self._at_s(status)
                self._tell(Change.CLOSED, path, with_content=True, at_s=at_s)
