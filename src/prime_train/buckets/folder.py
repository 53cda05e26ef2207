"""Objects by key, in a folder: a reader sees a complete object or none, even if the process that writes it is
killed.

An object is written to `.tmp/` of the same file system, made durable, and renamed into place. Every change of
a key (a write, a conditional write, a delete) holds a lock file, so that comparing the tag and writing are
one step for all processes and threads; readers never wait. The kernel releases the lock of a process that
ends, and the file it left in `.tmp/` is removed when it is an hour old.
"""

import errno
import fcntl
import hashlib
import os
import secrets
import shutil
import stat as mode
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from prime_train.buckets.identity import MARK_BYTES_MAX, OtherBucket, mark_in, other_bucket
from prime_train.buckets.keys import MARK_KEY
from prime_train.buckets.object_keys import check_key
from prime_train.buckets.port import GET_BYTES_MAX, Content, Data, Stat
from prime_train.errors import ObjectTooLarge, PermanentError, TemporaryError

LOCKS_MAX = 256
LOCK_WAIT_S_MAX = 30.0
LOCK_POLL_S = 0.002
PLACE_TRIES_MAX = 100
TEMP_AGE_S_MAX = 3600
SWEEP_EVERY_S = 600
COPY_BLOCK_BYTES = 8 * 1024 * 1024
_TEMP = ".tmp"
_REFUSED = frozenset(
    {
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.ENAMETOOLONG,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.ENOTEMPTY,
        errno.EEXIST,
    }
)
_NO_FAST_COPY = frozenset(
    {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EBADF, errno.ETXTBSY}
)


class FolderBucket:
    """A folder as bucket; keys are paths in it. A key cannot lie under another one (`a` and `a/b`): the later
    write is refused.

    A missing folder is an error and not an empty bucket, unless `make` is set: an unmounted disk has not lost
    its checkpoints. The mount point of such a disk exists nevertheless, so with a `mark`, the bucket's
    identity, each call that writes or finds nothing checks that the folder bears this mark.
    """

    def __init__(self, root: Path, *, mark: str = "", make: bool = False) -> None:
        self._root, self._mark = root, mark
        self._temp = root / _TEMP
        self._cleaned_s = 0.0
        if make:
            with _translated_errors(root):
                # with code and checkpoints: not for other users of this machine
                root.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._temp.mkdir(exist_ok=True)

    def put(self, key: str, data: Data) -> None:
        path = self._path(key)
        with _translated_errors(path), self._draft() as draft:
            _write_durably(draft, data)
            with self._locked(key):
                self._place(draft, path)

    def put_if(self, key: str, data: bytes, *, tag: str | None) -> bool:
        path = self._path(key)
        with _translated_errors(path), self._locked(key):
            now = self.get(key)
            if (now.tag if now is not None else None) != tag:
                return False
            with self._draft() as draft:
                _write_durably(draft, data)
                self._place(draft, path)
            return True

    def put_file(self, key: str, path: Path) -> None:
        """Copy the file to `key`. Raises PermanentError if the file does not exist or cannot be read."""
        target = self._path(key)
        try:
            source = path.open("rb")
        except FileNotFoundError as error:
            raise PermanentError(f"{path}: {error.strerror}") from error
        except OSError as error:
            raise _leaves_root(error, path) from error
        with source, _translated_errors(target), self._draft() as draft:
            with draft.open("xb") as into:
                _copy(source.fileno(), into.fileno())
                os.fsync(into.fileno())
            with self._locked(key):
                self._place(draft, target)

    def get(self, key: str) -> Content | None:
        data = self.read(key)
        return Content(data, hashlib.sha256(data).hexdigest()) if data is not None else None

    def read(self, key: str) -> bytes | None:
        path = self._path(key)
        with _translated_errors(path):
            source = self._open(path)
            if source is None:
                return None
            with os.fdopen(source, "rb", buffering=0) as file:
                size = os.fstat(source).st_size
                if size > GET_BYTES_MAX:
                    raise ObjectTooLarge(
                        f"{path} has {size} bytes; at most {GET_BYTES_MAX} can be read at once"
                    )
                return file.read(GET_BYTES_MAX + 1)

    def get_file(self, key: str, path: Path) -> bool:
        """Copy the object to `path` atomically, and create the folder of `path` if it is missing. Return
        False if there is no such object.
        """
        origin = self._path(key)
        with _translated_errors(origin):
            source = self._open(origin)
        if source is None:
            return False
        draft = path.with_name(f".{secrets.token_hex(8)}.part")
        with os.fdopen(source, "rb", buffering=0), _translated_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with draft.open("xb") as into:
                    _copy(source, into.fileno())
                draft.replace(path)
            finally:
                draft.unlink(missing_ok=True)
        return True

    def stat(self, key: str) -> Stat | None:
        path = self._path(key)
        with _translated_errors(path):
            try:
                seen = path.stat()
            except (FileNotFoundError, NotADirectoryError):
                self._must_be_there()
                return None
        return Stat(key, seen.st_size, int(seen.st_mtime)) if mode.S_ISREG(seen.st_mode) else None

    def list(self, prefix: str) -> Iterator[Stat]:
        with _translated_errors(self._root):
            self._must_be_there()
        folder, slash, start = prefix.rpartition("/")
        if "\0" in prefix or (slash and any(part in ("", ".", "..") for part in folder.split("/"))):
            return
        yield from self._walk(folder + "/" if folder else "", start)

    def delete(self, key: str) -> None:
        path = self._path(key)
        with _translated_errors(path), self._locked(key):
            try:
                path.unlink()
            except (FileNotFoundError, NotADirectoryError):
                self._must_be_there()
                return
            except (IsADirectoryError, PermissionError):
                # A folder is not an object, so there is no object with that key (Linux reports EISDIR, macOS
                # EPERM).
                if not path.is_dir():
                    raise
                return
            # Remove the folders that a delete left empty, so that listings do not slow down.
            folder = path.parent
            with suppress(OSError):
                while folder != self._root:
                    folder.rmdir()
                    folder = folder.parent

    def _path(self, key: str) -> Path:
        check_key(key)
        return self._root / key

    def _open(self, path: Path) -> int | None:
        """Return a descriptor to read the object from, or None if it does not exist."""
        try:
            source = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError):
            self._must_be_there()
            return None
        if mode.S_ISREG(os.fstat(source).st_mode):
            return source
        os.close(source)
        return None

    def _must_be_there(self) -> None:
        if not self._root.is_dir():
            raise OtherBucket(
                f"the bucket's folder {self._root} does not exist; check that its disk is mounted"
            )
        found = mark_in(self._read_mark()) if self._mark else ""
        if found != self._mark:
            raise OtherBucket(
                f"{other_bucket(str(self._root), found, self._mark)}; check that its disk is mounted"
            )

    def _read_mark(self) -> bytes:
        try:
            with (self._root / MARK_KEY).open("rb") as file:
                return file.read(MARK_BYTES_MAX)
        except FileNotFoundError:
            return b""

    def _must_take(self) -> None:
        """Check before a write that the bucket's folder exists, so that nothing is written next to an
        unmounted one.
        """
        self._must_be_there()
        self._temp.mkdir(exist_ok=True)

    def _walk(self, folder: str, start: str) -> Iterator[Stat]:
        """Yield the objects below `folder` ("" or ending in /) whose path from there begins with `start`, in
        the order of keys.
        """
        for name, entry in self._entries(folder, start):
            try:
                seen = None if name.endswith("/") else entry.stat()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise _leaves_root(error, Path(entry.path)) from error
            if seen is None:
                yield from self._walk(folder + name, "")
            elif mode.S_ISREG(seen.st_mode):
                yield Stat(folder + name, seen.st_size, int(seen.st_mtime))

    def _entries(self, folder: str, start: str) -> Sequence[tuple[str, os.DirEntry[str]]]:
        """Return the folder's entries in the order of keys. A folder is sorted by its name with a slash, so
        that `a-b` comes before the content of `a/`.
        """
        path = self._root / folder
        try:
            with os.scandir(path) as entries:
                kept = [
                    e
                    for e in entries
                    if e.name.startswith(start) and (folder or not e.name.startswith(_TEMP))
                ]
                named = [(e.name + "/" if e.is_dir() else e.name, e) for e in kept]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise _leaves_root(error, path) from error
        return sorted(named, key=lambda pair: pair[0])

    @contextmanager
    def _draft(self) -> Iterator[Path]:
        """Yield a path to write to before the object is moved into place; the draft is always removed
        afterwards.
        """
        self._must_take()
        self._sweep()
        draft = self._temp / secrets.token_hex(16)
        try:
            yield draft
        finally:
            draft.unlink(missing_ok=True)

    @contextmanager
    def _locked(self, key: str) -> Iterator[None]:
        """Hold the key's lock among all threads and processes. Raises TemporaryError after `LOCK_WAIT_S_MAX`
        seconds.
        """
        self._must_take()
        place = int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big") % LOCKS_MAX
        lock = os.open(self._temp / f"lock-{place:03d}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            end_s = time.monotonic() + LOCK_WAIT_S_MAX
            while not _try_lock(lock):
                if time.monotonic() > end_s:
                    raise TemporaryError(
                        f"{self._root / key}: another writer has held its lock for {LOCK_WAIT_S_MAX:.0f} s"
                    )
                time.sleep(LOCK_POLL_S)
            yield
        finally:
            os.close(lock)

    def _place(self, draft: Path, path: Path) -> None:
        """Rename the finished draft to its name, durably. The folder is made again if the delete of another
        key removed it meanwhile.
        """
        for _ in range(PLACE_TRIES_MAX):
            with suppress(FileNotFoundError):
                _make_folder_durably(path.parent)
                draft.replace(path)
                _sync_folder(path.parent)
                return
        raise TemporaryError(
            f"{path}: the file or its temporary file was removed {PLACE_TRIES_MAX} times during the write"
        )

    def _sweep(self) -> None:
        """Remove drafts left by writers that have ended. A slow writer's draft stays, because each block it
        writes renews its modification time.
        """
        if time.monotonic() - self._cleaned_s < SWEEP_EVERY_S and self._cleaned_s:
            return
        self._cleaned_s = time.monotonic()
        with os.scandir(self._temp) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    if (
                        not entry.name.startswith("lock-")
                        and entry.stat().st_mtime < time.time() - TEMP_AGE_S_MAX
                    ):
                        os.unlink(entry.path)  # noqa: PTH108 - the entry's path is a string already


@contextmanager
def _translated_errors(path: Path) -> Iterator[None]:
    """Convert an OSError to an error of `ports` that names `path`."""
    try:
        yield
    except OSError as error:
        raise _leaves_root(error, path) from error


def _leaves_root(error: OSError, path: Path) -> PermanentError | TemporaryError:
    kind = PermanentError if error.errno in _REFUSED else TemporaryError
    return kind(f"{path}: {error.strerror or error}")


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write_durably(path: Path, data: Data) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _copy(source: int, target: int) -> None:
    """Copy from the current position to the end of the file, inside the kernel if possible (a copy-on-write
    file system then copies no data).
    """
    try:
        while os.copy_file_range(source, target, COPY_BLOCK_BYTES):
            pass
    except AttributeError:
        pass
    except OSError as error:
        if error.errno not in _NO_FAST_COPY:
            raise
    # Some file systems (/proc, some network ones) report 0 bytes copied although there is more: reading on
    # finds the true end. The writer is buffered because a raw one may write less than it was given, which
    # would leave a hole in the copy.
    with (
        os.fdopen(source, "rb", buffering=0, closefd=False) as reader,
        os.fdopen(target, "wb", closefd=False) as writer,
    ):
        shutil.copyfileobj(reader, writer, COPY_BLOCK_BYTES)


def _make_folder_durably(folder: Path) -> None:
    """Create the folder and its missing parents, and sync their entries, so that they survive a power
    failure.
    """
    if folder.is_dir():
        return
    _make_folder_durably(folder.parent)
    try:
        folder.mkdir()
    except FileExistsError:
        # Another writer was first; or a file is in the way, which the rename will report; or the folder is
        # deleted again, and is made by the next try.
        return
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
