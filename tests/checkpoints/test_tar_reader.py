"""What the reader of archives sees is what a person's own `tar` lays down: whatever programs read differently
is refused.
"""

import io
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from prime_train.checkpoints.tar_reader import TarReader, Unsafe

EVIL = b"[core]\nfsmonitor = evil\n"
HEADERS_MAX = 100


def member(name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type = len(data), kind
    return info.tobuf(tarfile.USTAR_FORMAT) + data + bytes(-len(data) % 512)


def pax(kind: bytes = tarfile.XHDTYPE, **values: str) -> bytes:
    return member("pax", b"".join(map(record, values.items())), kind)


def record(row: tuple[str, str]) -> bytes:
    line = f" {row[0].replace('_', '.')}={row[1]}\n".encode()
    length = next(size for size in range(len(line), len(line) + 9) if len(str(size)) + len(line) == size)
    return str(length).encode() + line


def long_name(name: str) -> bytes:
    return member("././@LongLink", name.encode() + b"\0", tarfile.GNUTYPE_LONGNAME)


def changed(header: bytes, at: int, field: bytes) -> bytes:
    """Return a member with another field in its header, and the checksum for it."""
    block = bytearray(header[:512])
    block[at : at + len(field)] = field
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + header[512:]


def names(archive: bytes) -> list[str]:
    return [
        one.name for one in TarReader(io.BytesIO(archive + bytes(1024)), headers_max=HEADERS_MAX).members()
    ]


INSIDE = member("run/.git/config", EVIL)
DECEIVING = {
    "a name for all members": member("run/README", b"hi")
    + pax(tarfile.XGLTYPE, path="run/.git/config")
    + member("run/notes", EVIL),
    "a size for all members": pax(tarfile.XGLTYPE, size="0") + member("run/notes", INSIDE),
    "a sparse name for all members": pax(tarfile.XGLTYPE, GNU_sparse_name="run/.git/config")
    + member("run/notes", EVIL),
    "a name of each kind": pax(path="run/.git/config") + long_name("run/notes") + member("run/notes", EVIL),
    "a name of each kind, the other way round": long_name("run/.git/config")
    + pax(path="run/notes")
    + member("run/notes", EVIL),
    "two names of one kind": pax(path="run/.git/config") + pax(path="run/notes") + member("run/notes", EVIL),
    "two long names": long_name("run/.git/config") + long_name("run/notes") + member("run/notes", EVIL),
    "a file that is called a folder": pax(path="run/notes/") + member("run/notes", INSIDE),
    "a size with an underscore": changed(member("run/notes") + INSIDE, 124, b"0000000_2000"),
    "a size with a prefix": changed(member("run/notes") + INSIDE, 124, b"0o2000".ljust(12, b"\0")),
    "a size with a sign": changed(member("run/notes") + INSIDE, 124, b"+0000002000\0"),
    "a folder that old headers do not have": changed(
        changed(member("Makefile", EVIL), 257, b"ustar  \0"), 345, b"run/sub"
    ),
}


@pytest.mark.parametrize("archive", DECEIVING.values(), ids=DECEIVING.keys())
def test_an_archive_that_programs_unpack_differently_is_refused(archive: bytes) -> None:
    with pytest.raises(Unsafe):
        names(archive)


def packed_by_python(folder: Path, into: Path, form: int) -> None:
    with tarfile.open(into, "w", format=form) as tar:
        tar.add(folder, "run")


def packed_by_tar(folder: Path, into: Path, form: str) -> None:
    subprocess.run(["tar", f"--format={form}", "-cf", into, "-C", folder.parent, folder.name], check=True)


def packed_by_git(folder: Path, into: Path) -> None:
    git = ["git", "-C", str(folder.parent), "-c", "user.name=a", "-c", "user.email=a@b.example"]
    for words in (
        ["init", "-q"],
        ["add", "run"],
        ["commit", "-qm", "x"],
        ["archive", f"--output={into}", "HEAD"],
    ):
        subprocess.run([*git, *words], check=True)


@pytest.mark.parametrize(
    "pack",
    [
        pytest.param(
            lambda folder, into: packed_by_python(folder, into, tarfile.PAX_FORMAT), id="python pax"
        ),
        pytest.param(
            lambda folder, into: packed_by_python(folder, into, tarfile.GNU_FORMAT), id="python gnu"
        ),
        pytest.param(lambda folder, into: packed_by_tar(folder, into, "gnu"), id="tar gnu"),
        pytest.param(lambda folder, into: packed_by_tar(folder, into, "posix"), id="tar posix"),
        pytest.param(packed_by_git, id="git archive"),
    ],
)
def test_an_archive_of_a_usual_packer_is_read(pack: Callable[[Path, Path], None], tmp_path: Path) -> None:
    long = f"{'d' * 90}/{'e' * 90}/größe.bin"
    folder = tmp_path / "run"
    for name in (long, "a.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x" * 600)
    pack(folder, tmp_path / "packed.tar")
    assert {f"run/{long}", "run/a.txt"} <= set(names((tmp_path / "packed.tar").read_bytes()))
