"""Upload of a checkpoint's files in chunks: each is read, hashed, compressed if that pays, and sent, many in
parallel.

Hash and upload use the same bytes in memory, so a change of the file meanwhile cannot make them differ.
Memory is bounded by the number of threads: each holds one chunk and its encoded form.
"""

import logging
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from prime_agent.checkpoints.blobs import Blobs
from prime_agent.checkpoints.idle_cores import IdleCores
from prime_agent.checkpoints.staging import Vanished
from prime_agent.checkpoints.thread_priority import step_back, step_back_library
from prime_agent.checkpoints.uplink import Uplink
from prime_train.checkpoints.codec import Codec, encode
from prime_train.checkpoints.codec_kinds import CodecByKind, kind_of
from prime_train.checkpoints.hashing import digest_of
from prime_train.checkpoints.manifest import CHUNK_BYTES, Chunk, ManifestFile, chunk_sizes
from prime_train.checkpoints.parallel import Once, in_parallel
from prime_train.spec.choices import Compress
from prime_train.trainers.of_spec import FileInfo

CODECS = {
    Compress.OFF: Codec.NONE,
    Compress.ZSTD: Codec.ZSTD,
    Compress.BYTES2: Codec.BYTES2,
    Compress.BYTES4: Codec.BYTES4,
}

_log = logging.getLogger(__name__)


class Cancelled(Exception):
    """The work was cancelled; it made nothing durable."""


@dataclass(frozen=True)
class Piece:
    """A chunk of a file that is to be uploaded."""

    file: FileInfo
    index: int
    size: int


@dataclass
class Sent:
    """Progress of an upload. `bytes_done` of `bytes_total` are in the bucket; `bytes_sent` were sent over the
    network for them.
    """

    bytes_total: int = 0
    bytes_done: int = 0
    bytes_sent: int = 0
    raw_sent: int = 0
    began_s: float = 0.0
    ended_s: float = 0.0


class Sender:
    """Sender of one checkpoint at a time. `cores` is the maximum number of cores for the encoders, if that
    many are idle.
    """

    def __init__(
        self,
        blobs: Blobs,
        uplink: Uplink,
        *,
        compress: Compress,
        monotonic_s: Callable[[], float],
        cores: int,
    ) -> None:
        self._blobs = blobs
        self._uplink = uplink
        self._compress = compress
        self._monotonic_s = monotonic_s
        self._kinds = CodecByKind(cores)
        self._spare = IdleCores(monotonic_s)
        self._own = threading.local()
        self._stopped = threading.Event()
        self.sent = Sent()

    def send(
        self, folder: Path, files: Sequence[FileInfo], *, cancelled: Callable[[], bool]
    ) -> tuple[ManifestFile, ...]:
        """Upload all `files`, which are in `folder`, and return them as the manifest lists them; their
        content is then in the bucket.

        Raises Vanished if a file has become shorter, Cancelled, OSError, and the bucket's errors.
        """
        pieces = [
            Piece(file, index, size) for file in files for index, size in enumerate(chunk_sizes(file.size))
        ]
        self.sent = Sent(bytes_total=sum(piece.size for piece in pieces), began_s=self._monotonic_s())
        self._uplink.begin()
        self._stopped.clear()
        once, lock, chunks = Once(), threading.Lock(), dict[str, Chunk]()
        step_back_library()

        def one(piece: Piece) -> Chunk:
            step_back()
            if cancelled():
                raise Cancelled("the upload was cancelled")
            raw = self._read(folder, piece)
            digest = digest_of(raw)
            once.do(digest, lambda: chunks.update({digest: self._bring(digest, raw, piece)}))
            with lock:
                self.sent.bytes_done += piece.size
            return chunks[digest]

        try:
            with self._spare.upload():
                done = in_parallel(one, pieces)
        finally:
            self._stopped.set()
            self._own = threading.local()
            self.sent.ended_s = self._monotonic_s()
        return _listed(files, pieces, done)

    def _read(self, folder: Path, piece: Piece) -> memoryview:
        """Read the chunk into this thread's own buffer. Files are not memory-mapped, because truncating a
        mapped file kills the process that reads it.
        """
        if not hasattr(self._own, "buffer"):
            self._own.buffer = memoryview(bytearray(CHUNK_BYTES))
        into: memoryview = self._own.buffer[: piece.size]
        with (folder / piece.file.path).open("rb", buffering=0) as file:
            count = os.preadv(file.fileno(), [into], piece.index * CHUNK_BYTES)
        if count != piece.size:
            raise Vanished(
                f"{piece.file.path} was truncated during its upload; if the trainer writes into it again, "
                "set checkpoints.in_place"
            )
        return into

    def _bring(self, digest: str, raw: memoryview, piece: Piece) -> Chunk:
        known = self._blobs.known(digest, len(raw))
        if known is not None:
            return known
        codec = self._codec(raw, piece)
        stored = raw if codec is Codec.NONE else self._encoded(codec, raw)
        if codec is not Codec.NONE and len(stored) >= len(raw):
            codec, stored = Codec.NONE, raw
        chunk = Chunk(digest=digest, size=len(raw), stored=len(stored), codec=codec.value)
        with self._uplink.sending(len(stored), stopped=self._stopped):
            self._blobs.put(chunk, stored)
        self.sent.bytes_sent += len(stored)
        self.sent.raw_sent += len(raw)
        return chunk

    def _codec(self, raw: memoryview, piece: Piece) -> Codec:
        if self._compress is not Compress.AUTO:
            return CODECS[self._compress]
        kind = kind_of(piece.file.path, raw if piece.index == 0 else b"")
        return self._kinds.codec_for(
            kind,
            raw,
            uplink_bytes_per_s=self._uplink.bytes_per_s,
            idle_cores=self._spare.cores,
            total_bytes=self.sent.bytes_total,
        )

    def _encoded(self, codec: Codec, raw: memoryview) -> bytes:
        with self._spare.encoding():
            return encode(codec, raw)


def _listed(
    files: Sequence[FileInfo], pieces: Sequence[Piece], chunks: Sequence[Chunk]
) -> tuple[ManifestFile, ...]:
    of = {
        path: tuple(chunk for _, chunk in group)
        for path, group in groupby(zip(pieces, chunks, strict=True), key=lambda pair: pair[0].file.path)
    }
    return tuple(
        ManifestFile(path=file.path, size=file.size, chunks=of.get(file.path, ()), mtime_s=int(file.mtime_s))
        for file in files
    )
