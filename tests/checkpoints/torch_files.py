"""Files as `torch.save` writes them, made without torch, and what is in a file of safetensors."""

import io
import json
import pickle
import sys
import types
import zipfile
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch


@dataclass(frozen=True)
class Kept:
    """A tensor to save. `storage`: the type of its storage; `stride`: by default that of a contiguous
    tensor.
    """

    storage: str
    shape: tuple[int, ...]
    data: bytes = field(repr=False)
    offset: int = 0
    stride: tuple[int, ...] | None = None


def torch_file(
    state: object,
    *,
    folder: str = "archive",
    compression: int = zipfile.ZIP_STORED,
    byteorder: bytes = b"little",
) -> bytes:
    """Return the file that `torch.save(state)` would write."""
    storages: list[Kept] = []
    out, made = io.BytesIO(), io.BytesIO()
    with _torch() as torch:
        _Pickler(made, torch, storages).dump(state)
    with zipfile.ZipFile(out, "w", compression) as archive:
        archive.writestr(f"{folder}/data.pkl", made.getvalue())
        archive.writestr(f"{folder}/byteorder", byteorder)
        for number, kept in enumerate(storages):
            archive.writestr(f"{folder}/data/{number}", kept.data)
    return out.getvalue()


def safetensors_in(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the header, without its metadata, and the numbers."""
    length = int.from_bytes(data[:8], "little")
    assert length % 8 == 0
    header = json.loads(data[8 : 8 + length])
    assert header.pop("__metadata__") == {"format": "pt"}
    return header, data[8 + length :]


class _Storage:
    def __init__(self, kept: Kept) -> None:
        self.kept = kept


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, torch: Any, storages: list[Kept]) -> None:
        super().__init__(file, protocol=2)
        self._torch, self._storages = torch, storages

    def persistent_id(self, value: object) -> object:
        if not isinstance(value, _Storage):
            return None
        self._storages.append(value.kept)
        return (
            "storage",
            getattr(self._torch, value.kept.storage),
            str(len(self._storages) - 1),
            "cpu",
            len(value.kept.data),
        )

    def reducer_override(self, value: object) -> Any:
        if not isinstance(value, Kept):
            return NotImplemented
        steps, stride = 1, list[int]()
        for length in reversed(value.shape):
            stride.insert(0, steps)
            steps *= length
        rebuild = self._torch._utils._rebuild_tensor_v2
        return rebuild, (
            _Storage(value),
            value.offset,
            value.shape,
            value.stride or tuple(stride),
            False,
            OrderedDict(),
        )


@contextmanager
def _torch() -> Iterator[Any]:
    """Make modules of torch's names importable, as far as pickle looks at them."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")

    def _rebuild_tensor_v2(*args: object) -> None:
        raise AssertionError("it is only named")

    _rebuild_tensor_v2.__module__ = "torch._utils"
    _rebuild_tensor_v2.__qualname__ = "_rebuild_tensor_v2"
    utils.__dict__["_rebuild_tensor_v2"] = _rebuild_tensor_v2
    torch.__dict__["_utils"] = utils
    for name in ("FloatStorage", "BFloat16Storage", "ComplexFloatStorage"):
        torch.__dict__[name] = type(name, (), {"__module__": "torch"})
    with patch.dict(sys.modules, {"torch": torch, "torch._utils": utils}):
        yield torch
