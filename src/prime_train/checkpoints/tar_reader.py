"""Reads tar archives made by others member by member, in bounded memory.

Python's tarfile takes a truncated archive, or an unreadable header, for the end of the archive, and reads an
extended header of any size into memory. Here an archive ends only at its end mark, and every header is
bounded: pax and GNU tar headers hold a long name and nothing else that is needed here.

Whoever looks through an archive before somebody else's `tar` unpacks it must see the same members. Programs
do not agree on headers that no packer writes: a name for all members, two names of one member, a file whose
name ends in a slash, numbers in other forms. Such an archive is refused.
"""

import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

HEADER_BYTES_MAX = 64 * 1024
"""Upper limit of one extended header."""
AFTER_END_BYTES_MAX = 16 * 2**20
"""Upper limit of the padding after the end mark: archives are padded to full records, and nothing else
follows the end mark.
"""
_BLOCK = 512
_READ_BYTES = 2**20
_LONG_NAME, _LONG_LINK = tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK
_PAX, _PAX_GLOBAL = tarfile.XHDTYPE, tarfile.XGLTYPE
_FILES = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)
_FOR_ALL = frozenset({"comment", "atime", "ctime", "mtime", "uid", "gid", "uname", "gname"})
"""What a header for all members may say: `git archive` writes its commit there. Some programs take a name or
size in it for that of every member, and others do not.
"""
_NUMBER = re.compile(rb"[ \0]*|[ ]*[0-7]+[ \0].*|[ ]*[0-7]+|[\x80\xff].*", re.DOTALL)
"""The forms of a number that all programs read alike: octal digits, or its bytes after a mark."""
_SIZE, _MAGIC, _PREFIX = slice(124, 136), slice(257, 263), slice(345, 346)
_USTAR = b"ustar\0"


class ArchiveBroken(Exception):
    """The archive is cut off, damaged or no tar archive; the message gives the position."""


class Unsafe(Exception):
    """The archive holds a member that must not be unpacked; the message names it and gives the reason."""


@dataclass(frozen=True)
class Member:
    """An entry of a tar archive. `size`: bytes of a file, 0 for all other kinds. `link`: the target of a
    symbolic link.
    """

    name: str
    kind: bytes
    size: int
    mode: int
    mtime_s: int
    link: str = ""

    @property
    def is_file(self) -> bool:
        return self.kind in _FILES

    @property
    def is_folder(self) -> bool:
        return self.kind == tarfile.DIRTYPE

    @property
    def is_link(self) -> bool:
        return self.kind == tarfile.SYMTYPE


class TarReader:
    """Reads the members of a stream. A file's `content` must be read before the next member is requested."""

    def __init__(self, stream: IO[bytes], *, headers_max: int) -> None:
        self._stream = stream
        self._headers_left = headers_max
        self._headers_max = headers_max
        self._left = 0
        """Bytes of the current member that are not read yet; `_padding` counts those of its padding."""
        self._padding = 0
        self._offset = 0

    def members(self) -> Iterator[Member]:
        """Yield every member up to the end mark. Raises ArchiveBroken, Unsafe, and the stream's errors."""
        overrides: dict[str, str] = {}
        kinds: list[bytes] = []
        while (header := self._header()) is not None:
            size = (
                header.size
                if header.isreg() or header.type in (_LONG_NAME, _LONG_LINK, _PAX, _PAX_GLOBAL)
                else 0
            )
            self._left, self._padding = size, -size % _BLOCK
            if header.type in (_LONG_NAME, _LONG_LINK, _PAX):
                kinds.append(header.type)
                if len(set(kinds)) < len(kinds) or (_PAX in kinds and len(kinds) > 1):
                    raise Unsafe(
                        "a member has several extended headers, of which programs obey different ones"
                    )
            if header.type in (_LONG_NAME, _LONG_LINK):
                key = "path" if header.type == _LONG_NAME else "linkpath"
                overrides[key] = self._extended(header).rstrip(b"\0").decode("utf-8", "surrogateescape")
            elif header.type == _PAX:
                overrides |= _records(self._extended(header))
            elif header.type == _PAX_GLOBAL:
                if unknown := sorted(_records(self._extended(header)).keys() - _FOR_ALL):
                    raise Unsafe(
                        f"an extended header sets {unknown[0][:40]!r} for all members, which programs obey "
                        "differently"
                    )
            else:
                yield self._member(header, overrides)
                overrides, kinds = {}, []
            self._skip()
        self._drain()

    def content(self) -> Iterator[bytes]:
        """Yield the unread rest of the current file, in pieces."""
        while self._left:
            piece = self._read(min(self._left, _READ_BYTES))
            self._left -= len(piece)
            yield piece

    def _header(self) -> tarfile.TarInfo | None:
        """Return the next header; None at the end mark."""
        at = self._offset
        block = self._read(_BLOCK)
        if not any(block):
            return None
        if not self._headers_left:
            raise Unsafe(f"it has more than {self._headers_max} members")
        self._headers_left -= 1
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.TarError as error:
            raise ArchiveBroken(f"{error} at byte {at}") from error
        if header.size < 0:
            raise ArchiveBroken(f"a size of {header.size} bytes at byte {at}")
        if _NUMBER.fullmatch(block[_SIZE]) is None or (block[_PREFIX] != b"\0" and block[_MAGIC] != _USTAR):
            raise Unsafe(
                f"{header.name[:200]!r} has a header that programs read differently; pack it with GNU tar, "
                "or Python's tarfile"
            )
        return header

    def _member(self, header: tarfile.TarInfo, overrides: dict[str, str]) -> Member:
        if "size" in overrides and header.type in _FILES:
            self._left = _decimal(overrides["size"])
            self._padding = -self._left % _BLOCK
        if any(key.startswith("GNU.sparse.") for key in overrides):
            raise Unsafe(f"{header.name[:200]!r} is a sparse file; pack it without --sparse")
        name, link = overrides.get("path", header.name), overrides.get("linkpath", header.linkname)
        if header.type in _FILES and name.endswith("/"):
            raise Unsafe(f"{name[:200]!r} is a file with the name of a folder")
        return Member(name.rstrip("/"), header.type, self._left, header.mode, int(header.mtime), link)

    def _extended(self, header: tarfile.TarInfo) -> bytes:
        if header.size > HEADER_BYTES_MAX:
            raise Unsafe(
                f"it has an extended header of {header.size} bytes; at most {HEADER_BYTES_MAX} are allowed"
            )
        return b"".join(self.content())

    def _skip(self) -> None:
        """Skip to the next header."""
        for _ in self.content():
            pass
        self._read(self._padding)
        self._padding = 0

    def _read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._offset += len(data)
        if len(data) < size:
            raise ArchiveBroken(f"it ends at byte {self._offset}, before its end-of-archive marker")
        return data

    def _drain(self) -> None:
        """Read to the end of the stream, where compressed streams have their checksum. Raises Unsafe if more
        than padding follows.
        """
        left = AFTER_END_BYTES_MAX
        while data := self._stream.read(_READ_BYTES):
            left -= len(data)
            if left < 0:
                raise Unsafe(f"more than {AFTER_END_BYTES_MAX} bytes follow its end-of-archive marker")


def _records(data: bytes) -> dict[str, str]:
    """Return the records of a pax header: `LENGTH KEY=VALUE` and a line break, one after the other."""
    found: dict[str, str] = {}
    at = 0
    while at < len(data) and data[at]:
        length, blank, _ = data[at : at + 20].partition(b" ")
        record = data[at : at + _decimal(length.decode("latin-1"))]
        key, equals, value = record[len(length) + 1 :].partition(b"=")
        if not blank or not equals or not value.endswith(b"\n"):
            raise ArchiveBroken("an extended header that cannot be read")
        found[key.decode("utf-8", "surrogateescape")] = value[:-1].decode("utf-8", "surrogateescape")
        at += len(record)
    return found


def _decimal(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 20):
        raise ArchiveBroken(f"{text[:40]!r} in place of a number")
    return int(text)
