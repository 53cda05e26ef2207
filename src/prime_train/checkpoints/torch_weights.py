"""Reads the model's tensors from a file that `torch.save` wrote, without torch, and writes them as
safetensors.

Such a file is a zip archive with a pickle and one file of plain numbers per storage. The pickle was written
on a rented machine, so nothing that it names is ever called: tensors are rebuilt as descriptions, and every
other object becomes a stand-in without behaviour. It is also bounded what a small file can take of memory and
time: pickles can refer to an object again and again.

Only files of whole, contiguous tensors can be converted. Sharded checkpoints (`.distcp`, FSDP, DeepSpeed)
need their library.
"""

import io
import json
import math
import pickle
import pickletools
import struct
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, ClassVar

SUFFIXES = (".pt", ".pth", ".bin", ".ckpt")
PICKLE_BYTES_MAX = 32 * 2**20
"""Size of the structure, and of the archive's directory: a tensor takes 120 bytes of either."""
OPCODES_MAX = 3_000_000
"""Number of a pickle's instructions, each of which can make an object; a tensor takes 30."""
NAMES_MAX = 10_000
"""Number of names of classes and functions; `torch.save` writes each once."""
INTEGER_BITS_MAX = 1024
DIMENSIONS_MAX = 64
HEADER_BYTES_MAX = 100_000_000
"""Upper limit that the format sets to a header."""
MODEL_KEYS = ("state_dict", "model_state_dict", "model", "module", "weights")
"""Where the files of common training scripts have the model, beside the optimizer and other states."""
DEPTH_MAX = 3
COPY_BYTES = 2**20

_LITTLE = b"little"
_BROKEN = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    ValueError,
    struct.error,
    EOFError,
    zlib.error,
)
"""What zipfile raises for archives that are damaged, encrypted or of a kind that it does not know."""
_DTYPES = {
    "DoubleStorage": ("F64", 8),
    "FloatStorage": ("F32", 4),
    "HalfStorage": ("F16", 2),
    "BFloat16Storage": ("BF16", 2),
    "LongStorage": ("I64", 8),
    "IntStorage": ("I32", 4),
    "ShortStorage": ("I16", 2),
    "CharStorage": ("I8", 1),
    "ByteStorage": ("U8", 1),
    "BoolStorage": ("BOOL", 1),
}


class NotConvertible(Exception):
    """The file cannot be converted; the message is a predicate that follows its name."""


@dataclass(frozen=True)
class _Storage:
    dtype: str
    item_bytes: int
    key: str


@dataclass(frozen=True)
class Tensor:
    """A tensor: its part of a storage."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def is_sane(self) -> bool:
        """Whether its values are of their types, which a pickle can change afterwards."""
        return (
            isinstance(self.storage, _Storage)
            and (self.storage.dtype, self.storage.item_bytes) in _DTYPES.values()
            and isinstance(self.storage.key, str)
            and _is_numbers((self.offset,))
            and _is_numbers(self.shape)
            and _is_numbers(self.stride)
            and len(self.shape) == len(self.stride)
        )

    @property
    def size(self) -> int:
        return math.prod(self.shape) * self.storage.item_bytes


class TorchWeights:
    """The model's tensors in a file of `torch.save`. `size`: the size of the file of safetensors."""

    def __init__(self, file: BinaryIO) -> None:
        """Read the structure of the file, but no numbers. Raises NotConvertible, and what reading the file
        raises.
        """
        try:
            self._zip = zipfile.ZipFile(_Bounded(file))
        except _BROKEN as error:
            raise NotConvertible("is not a file of torch.save in its format since torch 1.6") from error
        self._folder = _folder(self._zip)
        self.tensors = self._read()
        for name, tensor in self.tensors.items():
            self._check(name, tensor)
        self._header = _header(self.tensors)
        self.size = len(self._header) + sum(tensor.size for tensor in self.tensors.values())

    def content(self) -> Iterator[bytes]:
        """Yield the file of safetensors in pieces. Raises NotConvertible if a storage is shorter than its
        archive says.
        """
        yield self._header
        try:
            yield from self._numbers()
        except _BROKEN as error:
            raise NotConvertible(f"is damaged: {str(error)[:200]}") from error

    def _numbers(self) -> Iterator[bytes]:
        for name, tensor in self.tensors.items():
            with self._zip.open(self._entry(tensor)) as file:
                file.seek(tensor.offset * tensor.storage.item_bytes)
                left = tensor.size
                while left:
                    piece = file.read(min(COPY_BYTES, left))
                    if not piece:
                        raise NotConvertible(f"ends within the tensor {name[:100]!r}")
                    left -= len(piece)
                    yield piece

    def _read(self) -> dict[str, Tensor]:
        info = self._zip.getinfo(f"{self._folder}/data.pkl")
        if info.file_size > PICKLE_BYTES_MAX or info.compress_type != zipfile.ZIP_STORED:
            raise NotConvertible("has a structure that is too large")
        try:
            named = f"{self._folder}/byteorder"
            order = self._zip.open(named).read(len(_LITTLE) + 1) if named in self._zip.NameToInfo else _LITTLE
            structure = self._zip.read(info)
            _check_size(structure)
            found = _Unpickler(io.BytesIO(structure)).load()
        except NotConvertible:
            raise
        except Exception as error:  # a pickle may raise anything while it is read
            raise NotConvertible(f"has a structure that cannot be read: {type(error).__name__}") from error
        if order.strip() != _LITTLE:
            raise NotConvertible("was written on a big-endian machine")
        tensors = _model_in(found, DEPTH_MAX)
        if not any(tensor.is_sane and tensor.size for tensor in tensors.values()):
            raise NotConvertible("has no model: no mapping from names to tensors was found in it")
        return tensors

    def _check(self, name: str, tensor: Tensor) -> None:
        if not tensor.is_sane:
            raise NotConvertible("has a structure that cannot be read")
        if not _is_contiguous(tensor.shape, tensor.stride):
            raise NotConvertible(f"has a tensor that is not contiguous: {name[:100]!r}")
        info = self._entry(tensor)
        if info.compress_type != zipfile.ZIP_STORED:
            raise NotConvertible("is compressed")
        if tensor.offset * tensor.storage.item_bytes + tensor.size > info.file_size:
            raise NotConvertible(f"has a tensor that is larger than its storage: {name[:100]!r}")

    def _entry(self, tensor: Tensor) -> zipfile.ZipInfo:
        try:
            return self._zip.getinfo(f"{self._folder}/data/{tensor.storage.key}")
        except KeyError:
            raise NotConvertible("lacks a storage") from None


class _Bounded(io.BufferedIOBase):
    """Passes on what zipfile reads, but no piece that is larger than what it needs: the sizes in an archive
    can be any number.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def read(self, size: int | None = -1, /) -> bytes:
        data = self._file.read(
            PICKLE_BYTES_MAX + 1 if size is None or size < 0 else min(size, PICKLE_BYTES_MAX + 1)
        )
        if len(data) > PICKLE_BYTES_MAX:
            raise zipfile.BadZipFile("a part of it is too large")
        return data


def _folder(archive: zipfile.ZipFile) -> str:
    """Return the archive's only folder, which torch names after the file."""
    found = [
        name.removesuffix("/data.pkl")
        for name in archive.namelist()
        if name.endswith("/data.pkl") and name.count("/") == 1
    ]
    if len(found) != 1:
        raise NotConvertible("is an archive, but not one of torch.save")
    return found[0]


def _header(tensors: Mapping[str, Tensor]) -> bytes:
    fields: dict[str, object] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, tensor in tensors.items():
        fields[name] = {
            "dtype": tensor.storage.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [at, at + tensor.size],
        }
        at += tensor.size
    text = json.dumps(fields, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > HEADER_BYTES_MAX:
        raise NotConvertible("has too many tensors")
    return len(text).to_bytes(8, "little") + text


def _model_in(found: object, depth: int) -> dict[str, Tensor]:
    """Return the tensors of the model by name: those of a mapping that has only tensors, or else of the first
    part that is known to be the model.
    """
    if not isinstance(found, Mapping):
        return {}
    names = {name: value for name, value in found.items() if isinstance(name, str) and name != "_metadata"}
    if names and all(isinstance(value, Tensor) for value in names.values()):
        return names
    if depth == 0:
        return {}
    return next((tensors for key in MODEL_KEYS if (tensors := _model_in(names.get(key), depth - 1))), {})


class _Opaque:
    """Stands for any object that is not needed. It accepts whatever a pickle does to it, and keeps
    nothing.
    """

    def __new__(cls, *args: object, **named: object) -> "_Opaque":
        return super().__new__(cls)

    def __init__(self, *args: object, **named: object) -> None:
        pass

    def __call__(self, *args: object, **named: object) -> "_Opaque":
        return self

    def __setstate__(self, state: object) -> None:
        pass

    def __setitem__(self, key: object, value: object) -> None:
        pass

    def __hash__(self) -> int:
        return id(self)

    def append(self, value: object) -> None:
        pass

    def extend(self, values: object) -> None:
        pass

    def add(self, value: object) -> None:
        pass


class _StorageType:
    def __init__(self, name: str) -> None:
        self.name = name


def _check_size(structure: bytes) -> None:
    """Raise NotConvertible for a pickle that would make too many or too large objects, and what pickletools
    raises for a damaged one.
    """
    names = 0
    for number, (opcode, argument, _) in enumerate(pickletools.genops(structure)):
        names += opcode.name in ("GLOBAL", "STACK_GLOBAL", "INST", "OBJ")
        is_long = isinstance(argument, int) and argument.bit_length() > INTEGER_BITS_MAX
        if number >= OPCODES_MAX or names > NAMES_MAX or is_long:
            raise NotConvertible("has a structure that is too large")


def _is_key(value: object) -> bool:
    """Return whether the value can be a key: a hash of tuples that contain each other twice takes for
    ever.
    """
    return isinstance(value, str | int | float | bytes | None | _Opaque)


def _checked(load: Callable[[Any], None], part: slice) -> Callable[[Any], None]:
    """Return the instruction `load` with a check of the keys that it uses, which are that part of the stack
    since the last mark.
    """

    def checked(unpickler: Any) -> None:
        keys = unpickler.stack[part]
        if not all(_is_key(key) or (isinstance(key, tuple) and all(map(_is_key, key))) for key in keys):
            raise NotConvertible("has a structure with keys of an unknown kind")
        load(unpickler)

    return checked


class _Unpickler(pickle._Unpickler):
    """Calls nothing but the functions of this module, and hashes nothing but simple values. It is the
    implementation in Python, because only that one can check keys.
    """

    dispatch: ClassVar = {
        **pickle._Unpickler.dispatch,
        **{
            code[0]: _checked(pickle._Unpickler.dispatch[code[0]], part)
            for code, part in (
                (pickle.SETITEM, slice(-2, -1)),
                (pickle.SETITEMS, slice(0, None, 2)),
                (pickle.DICT, slice(0, None, 2)),
                (pickle.ADDITEMS, slice(None)),
                (pickle.FROZENSET, slice(None)),
            )
        },
    }

    def find_class(self, module: str, name: str) -> Any:
        # What is returned is made for this call: a pickle can set attributes of it.
        if module == "torch" and name in _DTYPES:
            return _StorageType(name)
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return partial(_rebuilt)
        if (module, name) in (
            ("torch._utils", "_rebuild_parameter"),
            ("torch._utils", "_rebuild_parameter_with_state"),
        ):
            return partial(_parameter)
        if (module, name) == ("collections", "OrderedDict"):
            return partial(_ordered)
        return type("Opaque", (_Opaque,), {})

    def persistent_load(self, pid: Any) -> Any:
        match pid:
            case ("storage", _StorageType(name=name), str(key), *_) if key.isalnum():
                return _Storage(*_DTYPES[name], key)
        raise NotConvertible("has a storage of an unknown type")


def _parameter(data: object, *rest: object) -> object:
    return data


def _ordered(*content: object) -> object:
    if content:
        raise NotConvertible("has a structure with keys of an unknown kind")
    return OrderedDict()


def _rebuilt(storage: Any, offset: Any, shape: Any, stride: Any, *rest: object) -> object:
    tensor = Tensor(storage, offset, shape, stride)
    return tensor if tensor.is_sane else _Opaque()


def _is_numbers(value: object) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) <= DIMENSIONS_MAX
        and all(type(one) is int and one >= 0 for one in value)
    )


def _is_contiguous(shape: Sequence[int], stride: Sequence[int]) -> bool:
    expected = 1
    for length, step in zip(reversed(shape), reversed(stride), strict=True):
        if length > 1 and step != expected:
            return math.prod(shape) == 0
        expected *= length
    return True
