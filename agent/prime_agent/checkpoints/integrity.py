"""Detection of truncated checkpoint files, as far as their formats allow.

Names, sizes and times cannot distinguish a complete file from a truncated one, but most formats can: their
index is at the end, or their header gives their length. A file of an unknown format counts as complete.
"""

import json
import struct
import zipfile
from collections.abc import Callable, Collection
from pathlib import Path, PurePosixPath

from prime_train.checkpoints.ranks import missing_state
from prime_train.trainers.dcp import METADATA_BYTES_MAX, shard_sizes
from prime_train.trainers.of_spec import FileInfo

JSON_BYTES_MAX = 16 * 2**20
SAFETENSORS_HEAD_BYTES_MAX = 128 * 2**20
TAG_BYTES_MAX = 4096
"""Largest file in which DeepSpeed names the newest folder."""

_ZIP_MAGIC = b"PK\x03\x04"

_WEIGHTS = frozenset(
    {".bin", ".ckpt", ".distcp", ".gguf", ".h5", ".msgpack", ".npy", ".npz", ".pt", ".pth", ".safetensors"}
)
"""Endings of files of weights or of an optimizer's state, none of which is ever empty."""
_INDEXES = (".safetensors.index.json", ".bin.index.json")


def violation_of(folder: Path, files: Collection[FileInfo]) -> str | None:
    """Return the first defect of these files of `folder`, as text that names the file, or None if no defect
    is known.

    Raises OSError, including FileNotFoundError, if a file cannot be read.
    """
    sizes = {file.path: file.size for file in files}
    lost = missing_state(sizes)
    if lost is not None:
        return f"{lost}: does not exist, and the other processes have written theirs"
    for path, size in sizes.items():
        if not size and PurePosixPath(path).suffix in _WEIGHTS:
            return f"{path}: is empty"
        check = _CHECKS.get(PurePosixPath(path).suffix) or _CHECKS.get(PurePosixPath(path).name)
        violation = check(folder / path, size) if check else None
        violation = violation or _missing(folder, path, sizes)
        if violation:
            return f"{path}: {violation}"
    return None


def _zip(path: Path, _: int) -> str | None:
    with path.open("rb") as file:
        magic = file.read(len(_ZIP_MAGIC))
    if magic != _ZIP_MAGIC and (path.suffix == ".npz" or _ZIP_MAGIC.startswith(magic)):
        return "is truncated"
    if magic != _ZIP_MAGIC:
        return None  # an older format of torch.save, of which a part cannot be distinguished from the whole
    try:
        zipfile.ZipFile(path).close()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error):
        return "is truncated: its index is missing"
    return None


def _zip_or_other(path: Path, size: int) -> str | None:
    """Check the file as a zip archive, as written by torch.save, if it begins like one. A file of any other
    format counts as complete.
    """
    with path.open("rb") as file:
        is_zip = file.read(len(_ZIP_MAGIC)) == _ZIP_MAGIC
    return _zip(path, size) if is_zip else None


def _safetensors(path: Path, size: int) -> str | None:
    with path.open("rb") as file:
        head = file.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else size
        if 8 + length > size or length > SAFETENSORS_HEAD_BYTES_MAX:
            return "is truncated in its header"
        try:
            entries = json.loads(file.read(length))
            end = max(
                (entry["data_offsets"][1] for name, entry in entries.items() if name != "__metadata__"),
                default=0,
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return "has a header that cannot be read"
    return (
        None if 8 + length + end == size else f"has {size} bytes, but its header declares {8 + length + end}"
    )


def _json(path: Path, size: int) -> str | None:
    if size > JSON_BYTES_MAX:
        return None
    text = path.read_bytes().decode("utf-8", "replace").strip()
    if not text or (text[0] == "{" and text[-1] != "}") or (text[0] == "[" and text[-1] != "]"):
        return "is truncated"
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        # JSON with comments or several documents may be intended; a missing end is not.
        return "is truncated" if error.pos >= len(text) else None
    except (ValueError, RecursionError):
        return None
    return None


_CHECKS: dict[str, Callable[[Path, int], str | None]] = {
    ".npz": _zip,
    ".pt": _zip,
    ".pth": _zip,
    ".ckpt": _zip,
    ".bin": _zip_or_other,
    ".safetensors": _safetensors,
    ".json": _json,
}


def _missing(folder: Path, path: str, sizes: dict[str, int]) -> str | None:
    """Return a description of the files that `path`, if it is an index, lists but the folder lacks; otherwise
    None.
    """
    beside = PurePosixPath(path).parent
    try:
        named = _named_by(folder / path, sizes[path])
    except ValueError:
        return "is truncated, or lists no file"
    for name, least in named.items():
        if name.endswith("/"):
            if not any(other.startswith(f"{beside / name}/") for other in sizes):
                return f"refers to the folder {name}, which does not exist"
            continue
        size = sizes.get(str(beside / name))
        if size is None:
            return f"refers to {name}, which does not exist"
        if size < least:
            return f"needs {least} bytes of {name}, which has {size}"
    return None


def _named_by(path: Path, size: int) -> dict[str, int]:
    """Return the files that an index lists, with the bytes they need; empty for files that are no index.
    Raises ValueError for a damaged index.
    """
    if path.name == ".metadata" and size <= METADATA_BYTES_MAX:
        return _shards(path)
    if path.name.endswith(_INDEXES) and size <= JSON_BYTES_MAX:
        index = json.loads(path.read_bytes())
        weights = index.get("weight_map") if isinstance(index, dict) else None
        if not isinstance(weights, dict) or not weights:
            raise ValueError("an index that lists nothing")
        return {str(name): 1 for name in weights.values()}
    if path.name == "latest" and size <= TAG_BYTES_MAX and any(path.parent.glob("global_step*/")):
        return (
            {f"{tag}/": 0}
            if (tag := path.read_text(encoding="utf-8").strip()).startswith("global_step")
            else {}
        )
    return {}


def _shards(path: Path) -> dict[str, int]:
    """Return the shards that `.metadata` lists. Without a shard beside it, it may be a file of another
    program, which lists nothing.
    """
    try:
        return shard_sizes(path.read_bytes())
    except ValueError:
        if any(path.parent.glob("*.distcp")):
            raise
        return {}
