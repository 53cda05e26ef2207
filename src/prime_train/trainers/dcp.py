"""Shard sizes from the `.metadata` of a PyTorch distributed checkpoint, read without PyTorch.

`.metadata` is a pickle. Every class in it is replaced by an empty stub when it is read, so that none of its
code is ever executed.
"""

import io
import pickle
from collections.abc import Mapping
from typing import Any

METADATA_BYTES_MAX = 64 * 2**20


class _Stub:
    """Stub for any class or function; keeps the state that the pickle sets."""

    def __new__(cls, *_: object, **__: object) -> "_Stub":
        return super().__new__(cls)

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        if isinstance(state, Mapping):
            self.__dict__.update(state)

    # Methods by which a pickle fills list and dict subclasses.
    def append(self, _: object) -> None: ...

    def extend(self, _: object) -> None: ...

    def __setitem__(self, _: object, __: object) -> None: ...


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return type(name, (_Stub,), {})


def shard_sizes(metadata: bytes) -> dict[str, int]:
    """Return the minimum size in bytes of each shard, keyed by its path relative to the folder of
    `.metadata`.

    Raises ValueError if `.metadata` cannot be read, most likely because it is truncated.
    """
    try:
        entries = _Reader(io.BytesIO(metadata)).load().storage_data
        sizes: dict[str, int] = {}
        for place in entries.values():
            sizes[place.relative_path] = max(
                sizes.get(place.relative_path, 0), int(place.offset) + int(place.length)
            )
    except Exception as error:  # unpickling damaged data can raise any exception
        raise ValueError(f"not the metadata of a distributed checkpoint: {type(error).__name__}") from error
    return sizes
