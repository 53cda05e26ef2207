"""The content of outputs, and of logs and metrics, which an attempt uploads in pieces while they grow."""

from collections.abc import Iterable, Iterator, Sequence

from prime_train.buckets.port import Bucket, Data, Stat, small_object
from prime_train.checkpoints.chunks import Damaged, fetch_blob
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.outputs.manifest import OutputVersion
from prime_train.text.line_pieces import lines_in
from prime_train.text.safe import neutralized


def content_of(bucket: Bucket, pieces: Iterable[Stat]) -> Iterator[bytes]:
    """Yield the content piece by piece, without pieces larger than any agent writes. Raises the bucket's
    errors.
    """
    for piece in pieces:
        content = small_object(bucket, piece.key)
        if content is not None:
            yield content.data


def lines_of(bucket: Bucket, pieces: Iterable[Stat]) -> Iterator[str]:
    """Return the lines, without their ends."""
    return lines_in(content_of(bucket, pieces))


def end_of(bucket: Bucket, pieces: Sequence[Stat], bytes_max: int) -> str:
    """Return the last `bytes_max` bytes of the text, or a little less."""
    kept: list[Stat] = []
    size = 0
    for piece in reversed(pieces):
        size += piece.size
        if size > bytes_max and kept:
            break
        kept.append(piece)
    return b"".join(content_of(bucket, reversed(kept)))[-bytes_max:].decode(errors="replace")


def chunks_of(bucket: Bucket, version: OutputVersion) -> Iterator[Data]:
    """Yield the content of an output, verified by its hashes. Raises UsageError if it is damaged, and the
    bucket's errors.
    """
    for chunk in version.file.chunks:
        try:
            yield fetch_blob(bucket, version.manifest.key_of(chunk), chunk)
        except Damaged as error:
            text, fix = (
                f"{neutralized(version.file.path)} is damaged in the bucket: it {error}",
                "name an attempt or a step with another version of it",
            )
            raise UsageError(text, fix=fix, code=Exit.FINDINGS) from error
