"""Reading, writing and locking the files of a pod, and waiting for them."""

import errno
import fcntl
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from prime_train.errors import PermanentError, TemporaryError

POLL_S = 0.005
_REFUSED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ENOTDIR})


@contextmanager
def translated_errors(path: Path) -> Iterator[None]:
    """Convert an OSError to an error of `ports` that names `path`."""
    try:
        yield
    except OSError as error:
        raise translate(error, path) from error


def translate(error: OSError, path: Path) -> PermanentError | TemporaryError:
    kind = PermanentError if error.errno in _REFUSED else TemporaryError
    return kind(f"{path}: {error.strerror or error}")


def await_true(question: Callable[[], bool], limit_s: float, complaint: str) -> None:
    """Poll until `question` returns True. Raises TemporaryError with `complaint` as its message after
    `limit_s` seconds.
    """
    end_s = time.monotonic() + limit_s
    while not question():
        if time.monotonic() > end_s:
            raise TemporaryError(f"{complaint} (waited {limit_s:.0f} s)")
        time.sleep(POLL_S)


def open_lock(folder: Path) -> int | None:
    """Return a descriptor of the pod's lock file, or None if it does not exist."""
    try:
        return os.open(folder / "alive.lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None


def try_lock(descriptor: int, kind: int) -> bool:
    """Return whether the lock (LOCK_EX or LOCK_SH) could be taken at once; closing the descriptor releases
    it.
    """
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def read_json(path: Path) -> dict[str, object]:
    """Return the JSON object in the file; empty if the file does not exist or holds no JSON object."""
    with translated_errors(path):
        try:
            content = json.loads(path.read_bytes())
        except (FileNotFoundError, ValueError):
            return {}
    return content if isinstance(content, dict) else {}


def write_json(path: Path, content: Mapping[str, object]) -> None:
    write(path, json.dumps(content).encode())


def write(path: Path, data: bytes) -> None:
    """Write the file atomically, readable by its owner only."""
    draft = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "wb") as into:
        into.write(data)
    draft.replace(path)


def write_line(fifo: Path, line: bytes) -> None:
    """Write a line to the fifo; raises OSError if no process has it open for reading."""
    descriptor = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def delete(folder: Path) -> None:
    """Delete the folder, including parts that a program made read-only. What cannot be deleted stays for the
    next sweep.
    """
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        for parent, _, _ in os.walk(folder):
            with suppress(OSError):
                Path(parent).chmod(0o700)
        shutil.rmtree(folder, ignore_errors=True)
