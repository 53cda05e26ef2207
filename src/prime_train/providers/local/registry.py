"""The registry of pods, one folder each, and the stock of each offer."""

import errno
import fcntl
import os
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from prime_train.errors import NoCapacity
from prime_train.providers.local.files import (
    await_true,
    delete,
    open_lock,
    read_json,
    translate,
    translated_errors,
    try_lock,
    write_json,
)

LOCK_WAIT_S_MAX = 30.0
DRAFT_AGE_S_MAX = 3600
_POD_ID = re.compile(r"local-[0-9a-f]{16}")


def is_pod_id(text: str) -> bool:
    return _POD_ID.fullmatch(text) is not None


@dataclass(frozen=True)
class Record:
    """The content of pod.json. `ready_s` is the time at which the pod has booted."""

    name: str
    offer_id: str
    usd_per_hour: float
    created_s: int
    ready_s: float


class Registry:
    """The folders under `root`. A hidden one is being created (`.new-`) or deleted (`.gone-`), and nothing
    runs in it.
    """

    def __init__(self, root: Path, stock: Mapping[str, int]) -> None:
        self.root = root
        self._stock = stock

    def folder(self, pod_id: str) -> Path:
        return self.root / pod_id

    def pod_ids(self) -> Sequence[str]:
        """Return the ids of all registered pods, in no particular order."""
        return [name for name in self._names() if is_pod_id(name)]

    def read(self, pod_id: str) -> Record | None:
        """Return the pod's record, or None if there is no such pod or its record is incomplete."""
        try:
            return Record(**read_json(self.folder(pod_id) / "pod.json"))  # type: ignore[arg-type]  # the file is written by `enter` alone
        except TypeError:
            return None

    def lives(self, pod_id: str) -> bool:
        """Return whether the pod's lock is held, by its first process or by the process that is starting
        it.
        """
        with translated_errors(self.folder(pod_id)):
            lock = open_lock(self.folder(pod_id))
            if lock is None:
                return False
            try:
                return not try_lock(lock, fcntl.LOCK_SH)
            finally:
                os.close(lock)

    def left(self) -> Callable[[str], int]:
        """Return a function that gives the number of pods of an offer that can still be created."""
        limits = {**self._stock, **read_json(self.root / "capacity.json")}
        records = [self.read(pod_id) for pod_id in self.pod_ids()]
        taken = Counter(record.offer_id for record in records if record is not None)

        def left(offer_id: str) -> int:
            limit = limits.get(offer_id)
            return limit - taken[offer_id] if isinstance(limit, int) else sys.maxsize

        return left

    def enter(self, pod_id: str, record: Record) -> int:
        """Register a pod, and return its lock, which the caller holds. After any error nothing is registered.
        Raises NoCapacity if no stock is left or the disk is full.
        """
        draft = self.root / f".new-{pod_id}"
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            self.sweep()
            with self._alone_with_the_stock():
                if self.left()(record.offer_id) <= 0:
                    raise NoCapacity(f"no {record.offer_id} is available any more")
                return _furnish(draft, record, self.folder(pod_id))
        except OSError as error:
            shutil.rmtree(draft, ignore_errors=True)
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise NoCapacity(f"{self.root}: {error.strerror}") from error
            raise translate(error, self.root) from error

    def strike(self, pod_id: str) -> None:
        """Remove the pod from the registry; its folder is deleted by the next sweep."""
        with suppress(FileNotFoundError):
            self.folder(pod_id).rename(self.root / f".gone-{pod_id}")

    def sweep(self) -> None:
        """Delete the folders of removed pods, and drafts left by control planes that ended while creating a
        pod.
        """
        with translated_errors(self.root):
            for name in self._names():
                path = self.root / name
                with suppress(FileNotFoundError):
                    if name.startswith(".gone-") or (
                        name.startswith(".new-") and path.stat().st_mtime < time.time() - DRAFT_AGE_S_MAX
                    ):
                        delete(path)

    def _names(self) -> Sequence[str]:
        with translated_errors(self.root):
            try:
                return os.listdir(self.root)  # noqa: PTH208 - names are wanted
            except FileNotFoundError:
                return []

    @contextmanager
    def _alone_with_the_stock(self) -> Iterator[None]:
        """Hold the lock of this registry's stock among all control planes, so that the last machine is not
        given out twice.
        """
        lock = os.open(self.root / ".create.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            await_true(
                lambda: try_lock(lock, fcntl.LOCK_EX),
                LOCK_WAIT_S_MAX,
                f"{self.root}: another control plane has locked the list of machines",
            )
            yield
        finally:
            os.close(lock)


def _furnish(draft: Path, record: Record, folder: Path) -> int:
    """Build the pod's folder under its hidden name, lock it, and rename it to its visible name. Return the
    lock.
    """
    (draft / "disk").mkdir(parents=True, mode=0o700)
    (draft / "home").mkdir(mode=0o700)
    os.mkfifo(draft / "control", 0o600)
    write_json(draft / "pod.json", asdict(record))
    lock = os.open(draft / "alive.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        draft.rename(folder)
    except OSError:
        os.close(lock)
        raise
    return lock
