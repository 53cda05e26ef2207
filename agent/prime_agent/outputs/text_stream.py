"""Text that grows on this machine, such as the trainer's log, uploaded in pieces with secrets redacted.

A piece ends where no secret can be cut: at the end of a line, and never inside a key or a secret of several
lines. The newest piece is written again, with what was added to it, until it has `PIECE_BYTES`. So few
objects hold even a long log, and a piece whose upload was interrupted is only written once more.
"""

import json
import logging
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from prime_agent.trainer.environment import SECRET_CHARS_MIN, without_secrets
from prime_agent.trainer.logs import OLD_MAX
from prime_train.buckets.keys import piece_key
from prime_train.buckets.port import Bucket

PIECE_BYTES = 256 * 1024
READ_BYTES = 256 * 1024
LINE_BYTES_MAX = 64 * 1024
"""Bytes after which a line that has not ended is uploaded, cut at a space if it has one."""
STREAM_BYTES_MAX = 256 * 2**20
"""Bytes of one file that are uploaded; the end of a longer log is on the machine, and among the evidence."""
KEY_BYTES_MAX = 64 * 1024
"""Bytes for which a key that has begun is waited for."""

_KEY_BEGIN, _KEY_END = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"), "-----END "
_log = logging.getLogger(__name__)


class TextStream:
    """A growing text file that is uploaded in pieces. `path` may not exist yet, and is rotated as
    `BoundedLog` does. `state`: a file beside it, from which a restarted agent knows what is uploaded. Only
    one thread may use it.
    """

    def __init__(
        self,
        bucket: Bucket,
        path: Path,
        *,
        run_id: str,
        attempt: int,
        identity: str,
        secrets: Mapping[str, str],
    ) -> None:
        self._bucket, self._secrets = bucket, secrets
        self._name = path.name
        self._run_id, self._attempt, self._identity = run_id, attempt, identity
        self._tail = _GrowingFile(path)
        self._state = path.with_name(f".{path.name}.uploaded")
        self._rest = b""
        self._piece, self._number, self._total = b"", 1, 0
        self._is_stored = True
        self._restore()

    def upload(self, *, is_last: bool) -> None:
        """Upload what was added. With `is_last`, nothing is added any more, so a last line without an end is
        uploaded, too. Raises what the bucket raises; the next call goes on where this one stopped.
        """
        self._store()
        while data := self._tail.read(READ_BYTES):
            self._add(self._cut(self._rest + data))
        if is_last and self._rest:
            text, self._rest = self._rest, b""
            self._add(text)
        self._store()
        inode, offset = self._tail.place
        state = {
            "inode": inode,
            "offset": max(0, offset - len(self._rest)),
            "number": self._number,
            "total": self._total,
        }
        with suppress(OSError):  # a full disk must not stop the uploads
            self._state.write_text(json.dumps(state))

    def close(self) -> None:
        """Close the file. What was added is not uploaded by this."""
        self._tail.close()

    def _cut(self, data: bytes) -> bytes:
        """Return what of the data can be uploaded, and keep the rest for later."""
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not end and len(data) > LINE_BYTES_MAX:
            end = data.rfind(b" ") + 1 or len(data)
        safe = self._without_begun_secret(data[:end])
        if len(data) - len(safe) > KEY_BYTES_MAX + LINE_BYTES_MAX:
            safe = data[:end]
        self._rest = data[len(safe) :]
        return safe

    def _without_begun_secret(self, data: bytes) -> bytes:
        """Return the data up to where a key or a secret begins that may go on in what follows."""
        text = data.decode(errors="surrogateescape")
        begun = [found.start() for found in _KEY_BEGIN.finditer(text) if _KEY_END not in text[found.end() :]]
        for _, secret in self._secrets.items():
            longest = min(len(secret) - 1, len(text)) if len(secret) >= SECRET_CHARS_MIN else 0
            begun += [len(text) - size for size in range(longest, 0, -1) if text.endswith(secret[:size])][:1]
        return text[: min(begun)].encode(errors="surrogateescape") if begun else data

    def _add(self, data: bytes) -> None:
        left = STREAM_BYTES_MAX - self._total
        if left <= 0 or not data:
            return
        text = without_secrets(data.decode(errors="replace"), self._secrets).encode(errors="replace")
        self._total += len(text)
        if len(text) >= left:
            text = text[:left] + f"\n--- only the first {STREAM_BYTES_MAX} bytes are stored here\n".encode()
        self._piece += text
        self._is_stored = False
        if len(self._piece) >= PIECE_BYTES:
            self._store()

    def _store(self) -> None:
        if not self._is_stored:
            self._bucket.put(
                piece_key(self._run_id, self._attempt, self._identity, self._name, self._number), self._piece
            )
            self._is_stored = True
        if len(self._piece) >= PIECE_BYTES:
            self._piece, self._number = b"", self._number + 1

    # ----------------------------------------------------------------------------------------- across
    # restarts of the agent

    def _restore(self) -> None:
        """Continue with a new piece after what an earlier agent of this attempt uploaded."""
        try:
            state = json.loads(self._state.read_text())
            self._tail.go_to(int(state["inode"]), int(state["offset"]))
            self._number, self._total = int(state["number"]) + 1, int(state["total"])
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError) as error:
            _log.warning("%s is uploaded from its start: %s", self._name, error)


class _GrowingFile:
    """Reader of a file that is appended to, and rotated when it has become too long."""

    def __init__(self, path: Path) -> None:
        self._paths = [path.with_name(f"{path.name}.{number}") for number in range(OLD_MAX, 0, -1)] + [path]
        self._file: IO[bytes] | None = None

    @property
    def place(self) -> tuple[int, int]:
        """The inode of the file that is being read, and the offset in it; zeros if there is none."""
        return (os.fstat(self._file.fileno()).st_ino, self._file.tell()) if self._file is not None else (0, 0)

    def go_to(self, inode: int, offset: int) -> None:
        """Continue at a place that was read earlier; at the start of the oldest file if that file is gone."""
        for path in self._paths:
            if _inode(path) == inode:
                self._file = path.open("rb", buffering=0)
                self._file.seek(offset)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most `size`; none if there is nothing new now."""
        while True:
            data = self._file.read(size) if self._file is not None else b""
            if data or not self._next():
                return data or b""

    def _next(self) -> bool:
        """Go on to the next newer file, if the one that was read to its end has been rotated."""
        there = [(inode, path) for path in self._paths if (inode := _inode(path))]
        inodes = [inode for inode, _ in there]
        own = self.place[0]
        at = inodes.index(own) + 1 if own in inodes else 0
        if at >= len(there):
            return False
        if own and self._file is not None and os.fstat(self._file.fileno()).st_size > self._file.tell():
            return True  # it was appended to before it was rotated
        inode, path = there[at]
        fresh = path.open("rb", buffering=0)
        if os.fstat(fresh.fileno()).st_ino != inode:  # it has just been rotated
            fresh.close()
            return True
        if self._file is not None:
            self._file.close()
        self._file = fresh
        return True


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0
