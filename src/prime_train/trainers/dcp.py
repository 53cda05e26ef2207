"""What the `.metadata` of a PyTorch distributed checkpoint says of its shards, read without PyTorch.

`.metadata` is a pickle. It is read with every class replaced by an empty one, so nothing of it is ever run.
"""

import io
import pickle
from collections.abc import Mapping
from typing import Any

METADATA_BYTES_MAX = 64 * 2**20


class _Stub:
    """Stands for any class or function; keeps the state it is given."""

    def __new__(cls, *_: object, **__: object) -> "_Stub":
        return super().__new__(cls)

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        if isinstance(state, Mapping):
            self.__dict__.update(state)

    # What a pickled list or dict of an unknown class is filled through.
    def append(self, _: object) -> None: ...

    def extend(self, _: object) -> None: ...

    def __setitem__(self, _: object, __: object) -> None: ...


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return type(name, (_Stub,), {})


def shard_sizes(metadata: bytes) -> dict[str, int]:
    """The least size in bytes of each shard, by its path beside `.metadata`. ValueError: it cannot be read, it is cut off most likely."""
    try:
        entries = _Reader(io.BytesIO(metadata)).load().storage_data
        sizes: dict[str, int] = {}
        for place in entries.values():
            sizes[place.relative_path] = max(sizes.get(place.relative_path, 0), int(place.offset) + int(place.length))
    except Exception as error:  # a damaged pickle raises whatever it likes
        raise ValueError(f"not the metadata of a distributed checkpoint: {type(error).__name__}") from error
    return sizes
