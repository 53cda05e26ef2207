"""The model's weights as safetensors, from files of a checkpoint that `torch.save` wrote."""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from prime_train.buckets.port import Bucket, Data
from prime_train.checkpoints.chunks import Damaged, fetch
from prime_train.checkpoints.manifest import CHUNK_BYTES, Manifest, ManifestFile
from prime_train.checkpoints.restore import CheckpointDamaged
from prime_train.checkpoints.torch_weights import SUFFIXES, NotConvertible, TorchWeights
from prime_train.interop.bundle.layout import SAFETENSORS
from prime_train.text.safe import neutralized

_OTHER_STATES = re.compile(r"optim|sched|rng|random|rank|scaler|training_args", re.IGNORECASE)


@dataclass(frozen=True)
class Converted:
    """A file that can be converted. `path`: where it is in the bundle."""

    path: str
    weights: TorchWeights


@dataclass(frozen=True)
class Conversion:
    """The files that can be converted, and why others that look like weights cannot be."""

    files: tuple[Converted, ...] = ()
    notes: tuple[str, ...] = ()


def conversion(bucket: Bucket, manifest: Manifest) -> Conversion:
    """Find what can be converted. Of a checkpoint that has safetensors already, nothing is. Raises
    CheckpointDamaged, and the bucket's errors.
    """
    if any(file.path.endswith(".safetensors") for file in manifest.files):
        return Conversion()
    files, notes = [], []
    for file in filter(_may_have_weights, manifest.files):
        try:
            weights = TorchWeights(io.BufferedReader(_BucketFile(bucket, manifest, file), CHUNK_BYTES // 64))
        except NotConvertible as error:
            if file.path.endswith(SUFFIXES):
                notes.append(f"{neutralized(file.path)} as safetensors: it {error}")
        else:
            files.append(Converted(f"{SAFETENSORS}/{file.path}.safetensors", weights))
    return Conversion(tuple(files), tuple(notes) if not files else ())


def _may_have_weights(file: ManifestFile) -> bool:
    """Return whether the name is that of a model, and not of the states beside it or of one process's part.
    Some scripts give their files no suffix.
    """
    path = PurePosixPath(file.path)
    return path.suffix in ("", *SUFFIXES) and file.size > 0 and _OTHER_STATES.search(path.name) is None


class Streamed:
    """The file object that tarfile reads: the pieces of a generator. A read is short only at the end."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = bytearray()

    def read(self, size: int = -1, /) -> bytes:
        while size < 0 or len(self._left) < size:
            piece = next(self._pieces, None)
            if piece is None:
                break
            self._left += piece
        taken = bytes(self._left[:size] if size >= 0 else self._left)
        del self._left[: len(taken)]
        return taken


class _BucketFile(io.RawIOBase):
    """A file of a checkpoint, read from the bucket where it is asked for; each chunk is verified. One chunk
    is kept in memory.
    """

    def __init__(self, bucket: Bucket, manifest: Manifest, file: ManifestFile) -> None:
        self._bucket, self._manifest, self._file = bucket, manifest, file
        self._at = 0
        self._kept: tuple[int, Data] = (-1, b"")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: object) -> int:
        into = memoryview(buffer).cast("B")  # type: ignore[arg-type] # the stubs of io name no type for it
        if self._at >= self._file.size or not into:
            return 0
        number, start = divmod(self._at, CHUNK_BYTES)
        piece = memoryview(self._chunk(number)).cast("B")[start : start + len(into)]
        into[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def _chunk(self, number: int) -> Data:
        if self._kept[0] != number:
            chunk = self._file.chunks[number]
            try:
                self._kept = (number, fetch(self._bucket, self._manifest.holder, chunk))
            except Damaged as error:
                what = f"step {self._manifest.step} is damaged in the bucket: {self._file.path} {error}"
                raise CheckpointDamaged(what, [chunk.digest]) from error
        return self._kept[1]
