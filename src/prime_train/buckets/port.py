"""The interface to a bucket, which holds objects by key; every adapter passes its contract tests.

It is apart from the other ports because the agent needs it, and them not.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from prime_train.errors import ObjectTooLarge


@dataclass(frozen=True)
class Stat:
    """Metadata of an object: `size` in bytes, `written_s` the second of the last write."""

    key: str
    size: int
    written_s: int


@dataclass(frozen=True)
class Content:
    """A small object with the tag that a later conditional write compares."""

    data: bytes
    tag: str


Data = bytes | bytearray | memoryview

GET_BYTES_MAX = 16 * 2**20


class Bucket(Protocol):
    """Objects by key. A reader gets a complete object or none. Keys are relative paths, with / between their
    parts.

    Every method is thread-safe and holds no more in memory than its arguments and its result.
    """

    def put(self, key: str, data: Data) -> None:
        """Store `data`, durable on return; the bucket has compared a checksum on arrival. No reference to
        `data` is kept."""

    def put_if(self, key: str, data: bytes, *, tag: str | None) -> bool:
        """Write only if the object's tag is still `tag` (None: only if there is no object). Return False,
        with nothing written, if not."""

    def put_file(self, key: str, path: Path) -> None: ...

    def get(self, key: str) -> Content | None:
        """Return the complete object with its tag, or None if there is none. Only for objects of at most
        `GET_BYTES_MAX` bytes; raises ObjectTooLarge for larger ones."""

    def read(self, key: str) -> Data | None:
        """Return the complete object as `get` does, but without its tag and with as few copies as possible,
        for content that the caller verifies by its hash."""

    def get_file(self, key: str, path: Path) -> bool:
        """Write the object to `path`. Return False, with nothing written, if there is none."""

    def stat(self, key: str) -> Stat | None: ...

    def list(self, prefix: str) -> Iterator[Stat]:
        """Yield the objects whose keys start with `prefix`, in the order of keys."""

    def delete(self, key: str) -> None:
        """Delete the object; does nothing if there is none."""


def small_object(bucket: Bucket, key: str) -> Content | None:
    """Return what a machine has stored under `key`; None if there is nothing, or something larger than what
    belongs there: a machine writes what it likes, and must not hold up whoever reads it. Raises the bucket's
    other errors."""
    try:
        return bucket.get(key)
    except ObjectTooLarge:
        return None
