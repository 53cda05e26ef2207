"""Wrappers that make a bucket fail on purpose."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from prime_train.buckets.port import Bucket, Content, Data, Stat
from prime_train.errors import TemporaryError


class Cut(TemporaryError):
    """The connection was cut."""


@dataclass
class Counted:
    """Bucket that counts operations and written bytes. From the `cut_at`-th operation on it fails: before the
    operation takes effect or, with `late`, after.
    """

    inner: Bucket
    cut_at: int | None = None
    late: bool = False
    operations: int = 0
    bytes_put: int = 0
    keys_put: list[str] = field(default_factory=list)
    keys_deleted: list[str] = field(default_factory=list)
    before: Callable[[str, str], None] = lambda name, key: None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def _enter(self, name: str, key: str) -> bool:
        """Return whether the operation takes effect before it fails."""
        self.before(name, key)
        with self._lock:
            self.operations += 1
            dead = self.cut_at is not None and self.operations >= self.cut_at
            last = self.operations == self.cut_at and self.late
        if dead and not last:
            raise Cut(f"cut at {name} {key}")
        return last

    def _leave(self, cut: bool) -> None:
        if cut:
            raise Cut("cut before the answer")

    def put(self, key: str, data: Data) -> None:
        cut = self._enter("put", key)
        self.inner.put(key, data)
        with self._lock:
            self.bytes_put += len(data)
            self.keys_put.append(key)
        self._leave(cut)

    def put_if(self, key: str, data: bytes, *, tag: str | None) -> bool:
        cut = self._enter("put_if", key)
        done = self.inner.put_if(key, data, tag=tag)
        self._leave(cut)
        return done

    def put_file(self, key: str, path: Path) -> None:
        cut = self._enter("put_file", key)
        self.inner.put_file(key, path)
        with self._lock:
            self.bytes_put += path.stat().st_size
            self.keys_put.append(key)
        self._leave(cut)

    def get(self, key: str) -> Content | None:
        self._leave(self._enter("get", key))
        return self.inner.get(key)

    def read(self, key: str) -> Data | None:
        self._leave(self._enter("read", key))
        return self.inner.read(key)

    def get_file(self, key: str, path: Path) -> bool:
        self._leave(self._enter("get_file", key))
        return self.inner.get_file(key, path)

    def stat(self, key: str) -> Stat | None:
        self._leave(self._enter("stat", key))
        return self.inner.stat(key)

    def list(self, prefix: str) -> Iterator[Stat]:
        self._leave(self._enter("list", prefix))
        return self.inner.list(prefix)

    def delete(self, key: str) -> None:
        cut = self._enter("delete", key)
        self.inner.delete(key)
        self.keys_deleted.append(key)
        self._leave(cut)
