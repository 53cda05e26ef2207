"""The digest of a file's content."""

import hashlib
from collections.abc import Callable
from pathlib import Path

CHUNK_BYTES = 4 * 2**20


class Cancelled(Exception):
    """The work was called off; nothing was made durable by it."""


def digest_of(path: Path, *, cancelled: Callable[[], bool] = lambda: False) -> str:
    """`sha256-<hex>` of the content. Raises Cancelled between chunks, and OSError."""
    sha256 = hashlib.sha256()
    buffer = memoryview(bytearray(CHUNK_BYTES))
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            if cancelled():
                raise Cancelled(f"hashing {path.name} was called off")
            sha256.update(buffer[:count])
    return f"sha256-{sha256.hexdigest()}"
