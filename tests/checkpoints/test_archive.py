"""Archives made by others are unpacked completely, or fail with an error and leave nothing."""

import gzip
import io
import os
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import zstandard

from prime_train.checkpoints.archive import ArchiveRefused, TargetExists, stage, stem_of, unpack
from prime_train.checkpoints.tar_reader import Unsafe
from prime_train.checkpoints.unpacking import unpack_stream
from tests.agent.checkpoints.saving import on_disk

FILES = {
    "step_7/weights.bin": os.urandom(70_000),
    "step_7/deep/state.json": b"{}",
    "step_7/zeros": bytes(5000),
    "step_7/COMPLETE": b"7\n",
}
PACK: Mapping[str, Callable[[bytes], bytes]] = {
    "a.tar": lambda data: data,
    "a.tar.gz": gzip.compress,
    "a.tar.zst": zstandard.ZstdCompressor().compress,
}


def tarred(files: Mapping[str, bytes], *more: tarfile.TarInfo) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        for member in more:
            tar.addfile(member)
    return made.getvalue()


class Endless(io.BytesIO):
    """A stream that begins with some bytes and continues with others without end; it counts the bytes
    read.
    """

    def __init__(self, begin: bytes, again: bytes = bytes(2**16)) -> None:
        super().__init__()
        self._left, self._again, self.read_bytes = begin, again, 0

    def read(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        while len(self._left) < size:
            self._left += self._again
        taken, self._left = self._left[:size], self._left[size:]
        self.read_bytes += size
        return taken


def put(archive: Path, into: Path, *, replace: bool = False) -> Path:
    with stage(into, archive.name) as hidden:
        return unpack(archive, hidden, replace=replace).folder


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", list(PACK))
def test_what_was_packed_is_there_under_its_own_name(tmp_path: Path, name: str) -> None:
    target = put(written(tmp_path / name, PACK[name](tarred(FILES))), tmp_path / "into")
    assert target == tmp_path / "into" / "step_7"
    assert {f"step_7/{path}": data for path, data in on_disk(target).items()} == FILES
    assert [path.name for path in (tmp_path / "into").iterdir()] == ["step_7"]


def test_the_compression_is_reported_by_the_content_and_not_by_the_name(tmp_path: Path) -> None:
    assert put(written(tmp_path / "a.tar", gzip.compress(tarred(FILES))), tmp_path / "into").name == "step_7"


def test_frames_one_after_the_other_are_one_archive(tmp_path: Path) -> None:
    data, pack = tarred(FILES), PACK["a.tar.zst"]
    assert (
        put(
            written(tmp_path / "a.tar.zst", pack(data[:30_000]) + pack(data[30_000:])), tmp_path / "into"
        ).name
        == "step_7"
    )


def test_loose_files_go_into_a_folder_named_as_the_archive(tmp_path: Path) -> None:
    target = put(
        written(tmp_path / "run7.tar.gz", gzip.compress(tarred({"./a": b"1", "./b/c": b"2"}))),
        tmp_path / "into",
    )
    assert target == tmp_path / "into" / "run7"
    assert on_disk(target) == {"a": b"1", "b/c": b"2"}
    assert target.stat().st_mode & 0o055, "others may read it, as any folder that is made here"


def test_an_archive_that_is_cut_off_anywhere_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    plain = tarred(FILES)
    end = len(plain.rstrip(b"\0"))
    for name, pack in PACK.items():
        complete = pack(plain)
        # Of the plain one also each end of a block, where a cut looks like the end, but for the padding after
        # the end mark.
        cuts = {*range(1, len(complete) - 40, 4099), *(range(512, end + 512, 512) if name == "a.tar" else ())}
        for cut in sorted(cuts):
            cut_off = written(tmp_path / name, complete[: min(cut, end)])
            with pytest.raises(ArchiveRefused, match="truncated, damaged or not a tar archive"):
                put(cut_off, tmp_path / "into")
            assert not (tmp_path / "into").exists(), f"{name} cut at {cut}"


def test_a_flipped_bit_in_a_gzip_is_an_error(tmp_path: Path) -> None:
    complete = bytearray(gzip.compress(tarred(FILES)))
    complete[-6] ^= 1  # in the checksum, which is read last of all
    with pytest.raises(ArchiveRefused):
        put(written(tmp_path / "a.tar.gz", bytes(complete)), tmp_path / "into")
    assert not (tmp_path / "into").exists()


@pytest.mark.parametrize(
    "data", [b"", b"no archive at all", b"x" * 5000, b"\x1f\x8b rubbish", b"\x28\xb5\x2f\xfd rubbish" * 10]
)
def test_what_is_no_archive_is_reported_to_be_none(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ArchiveRefused, match="not a tar archive"):
        put(written(tmp_path / "a.tar", data), tmp_path / "into")


def test_a_header_that_cannot_be_read_is_not_taken_for_the_end(tmp_path: Path) -> None:
    data = bytearray(tarred({"step_7/a": b"1", "step_7/b": b"2"}))
    data[1024 + 3] ^= 1  # in the second member's name, so that the header's checksum is wrong
    with pytest.raises(ArchiveRefused, match="truncated, damaged"):
        put(written(tmp_path / "a.tar", bytes(data)), tmp_path / "into")


@pytest.mark.parametrize(
    ("name", "kind", "link"),
    [
        ("../evil", tarfile.REGTYPE, ""),
        ("step_7/link", tarfile.SYMTYPE, "../../../etc"),
        ("step_7/link", tarfile.SYMTYPE, "/etc/passwd"),
        ("step_7/device", tarfile.CHRTYPE, ""),
    ],
)
def test_what_reaches_outside_is_refused(tmp_path: Path, name: str, kind: bytes, link: str) -> None:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    with pytest.raises(ArchiveRefused, match="not safe to unpack"):
        put(written(tmp_path / "a.tar", tarred(FILES, member)), tmp_path / "into")
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_a_link_is_refused_and_the_option_of_tar_that_helps_is_named(tmp_path: Path, kind: bytes) -> None:
    member = tarfile.TarInfo("step_7/newest")
    member.type, member.linkname = kind, "step_7/COMPLETE"
    with pytest.raises(
        ArchiveRefused, match=r"'step_7/newest' is a (hard )?link \(pack with tar --(hard-)?dereference\)"
    ):
        put(written(tmp_path / "a.tar", tarred(FILES, member)), tmp_path / "into")
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar"]


def test_a_chain_of_links_writes_nothing_outside(tmp_path: Path) -> None:
    """By its text each link leads inside, but the last one leads out. Python versions without the fix of
    tarfile's filter followed it.
    """
    outside = tmp_path / "outside"
    outside.mkdir()
    deep = "/".join(["d" * 200] * 16)
    chain = [("step_7/a", deep), ("step_7/b", "a/.." + "/.." * 20 + str(outside)), ("step_7/c", str(outside))]
    links = []
    for name, target in chain:
        links.append(tarfile.TarInfo(name))
        links[-1].type, links[-1].linkname = tarfile.SYMTYPE, target
    links.append(tarfile.TarInfo("step_7/b/owned"))
    with pytest.raises(ArchiveRefused, match="not safe to unpack"):
        put(written(tmp_path / "a.tar", tarred(FILES, *links)), tmp_path / "into")
    assert not list(outside.iterdir())
    assert not (tmp_path / "into").exists()


def test_a_link_that_somebody_else_puts_into_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "into").mkdir()
    (tmp_path / "into" / "step_7").symlink_to(tmp_path / "outside")
    with pytest.raises(Unsafe, match="leads through something that is not a folder"):
        unpack_stream(io.BytesIO(tarred(FILES)), tmp_path / "into", margin_bytes=0)
    assert not list((tmp_path / "outside").iterdir())


@pytest.mark.parametrize(
    "kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK]
)
def test_a_header_of_gigabytes_is_refused_before_it_is_read(tmp_path: Path, kind: bytes) -> None:
    header = tarfile.TarInfo("step_7/pax")
    header.type, header.size = kind, 4 * 2**30
    content = Endless(header.tobuf(tarfile.GNU_FORMAT))
    with pytest.raises(Unsafe, match="an extended header of 4294967296 bytes"):
        unpack_stream(content, tmp_path, margin_bytes=0)
    assert content.read_bytes <= 2**20


def test_small_headers_without_end_are_refused_too(tmp_path: Path) -> None:
    header = tarfile.TarInfo("step_7/pax")
    header.type, header.size = tarfile.XGLTYPE, 512
    endless = Endless(b"", again=header.tobuf(tarfile.USTAR_FORMAT) + b"13 comment=x\n".ljust(512, b"\0"))
    with pytest.raises(Unsafe, match="more than 100 members"):
        unpack_stream(endless, tmp_path, margin_bytes=0, members_max=100)


def test_what_follows_the_end_mark_is_not_read_for_ever(tmp_path: Path) -> None:
    with pytest.raises(Unsafe, match="follow its end-of-archive marker"):
        unpack_stream(Endless(tarred(FILES)), tmp_path, margin_bytes=0)


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_times_and_programs_come_back_in_every_format(tmp_path: Path, form: int) -> None:
    long = "step_7/" + "/".join(["folder" * 8] * 3) + "/" + "f" * 90 + "é"
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=form) as tar:
        for name, mode in ((long, 0o755), ("step_7/plain", 0o600)):
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime = 3, mode, 1_700_000_000
            tar.addfile(member, io.BytesIO(b"abc"))
    target = put(written(tmp_path / "a.tar", made.getvalue()), tmp_path / "into")
    assert {f"step_7/{path}": data for path, data in on_disk(target).items()} == {
        long: b"abc",
        "step_7/plain": b"abc",
    }
    assert (target.parent / long).stat().st_mode & 0o100
    assert not (target / "plain").stat().st_mode & 0o100
    assert (target / "plain").stat().st_mtime == 1_700_000_000


@pytest.mark.parametrize("name", [".ssh", ".git", "-rf"])
def test_an_archive_makes_no_folder_that_means_something_to_somebody_else(tmp_path: Path, name: str) -> None:
    (tmp_path / "home").mkdir()
    with pytest.raises(ArchiveRefused, match=r"begins with a d|would run by themselves"):
        put(written(tmp_path / "a.tar", tarred({f"{name}/config": b"x"})), tmp_path / "home")
    assert not list((tmp_path / "home").iterdir())


def test_what_programs_would_run_is_left_out_of_an_archive_and_named(tmp_path: Path) -> None:
    bare = {"x/HEAD": b"ref: refs/heads/main", "x/objects/o": b"x", "x/refs/r": b"x", "x/config": b"x"}
    run = {"w.pth": b"w", ".GIT /config": b"x", ".envrc": b"x"}
    files = {f"step_7/{path}": data for path, data in (run | bare).items()}
    archive = written(tmp_path / "a.tar", tarred(files))
    with stage(tmp_path / "into", archive.name) as hidden:
        done = unpack(archive, hidden)
    assert set(on_disk(done.folder)) == {"w.pth", "x/objects/o", "x/refs/r", "x/config"}
    assert set(done.left_out) == {"step_7/.GIT /config", "step_7/.envrc", "step_7/x/HEAD"}


def test_a_file_that_is_in_the_archive_twice_is_refused(tmp_path: Path) -> None:
    plain = tarred({"step_7/a": b"1"})
    with pytest.raises(ArchiveRefused, match="is in the archive twice"):
        put(written(tmp_path / "a.tar", plain[:1024] + plain), tmp_path / "into")


def test_a_member_larger_than_the_disk_is_refused_before_it_is_written(tmp_path: Path) -> None:
    member = tarfile.TarInfo("step_7/huge")
    member.size = 2**60
    with pytest.raises(ArchiveRefused, match=r"not enough disk space: step_7/huge needs 1073741824\.00 GiB"):
        put(written(tmp_path / "a.tar", member.tobuf() + bytes(1024)), tmp_path / "into")


def test_what_is_there_already_stays_unless_it_is_to_be_replaced(tmp_path: Path) -> None:
    into = tmp_path / "into"
    (into / "step_7").mkdir(parents=True)
    (into / "step_7" / "mine").write_text("precious")
    archive = written(tmp_path / "a.tar", tarred(FILES))
    with pytest.raises(TargetExists, match="step_7"):
        put(archive, into)
    assert on_disk(into) == {"step_7/mine": b"precious"}
    put(archive, into, replace=True)
    assert on_disk(into) == FILES


def test_what_a_killed_one_left_is_in_nobodys_way(tmp_path: Path) -> None:
    archive = written(tmp_path / "a.tar", tarred(FILES))
    left = tmp_path / "into" / ".prime-train-unpack-a.tar" / "content" / "step_6"
    left.mkdir(parents=True)
    assert put(archive, tmp_path / "into").name == "step_7"
    assert [path.name for path in (tmp_path / "into").iterdir()] == ["step_7"]


@pytest.mark.parametrize(
    ("name", "stem"), [("a.tar.gz", "a"), ("a.b.tgz", "a.b"), ("a.tar", "a"), ("a.tar.zst", "a"), ("a", "a")]
)
def test_the_name_without_its_ending(name: str, stem: str) -> None:
    assert stem_of(name) == stem


def test_an_archive_of_too_many_members_is_refused(tmp_path: Path) -> None:
    archive = written(tmp_path / "a.tar", tarred(FILES))
    with (
        pytest.raises(ArchiveRefused, match="more than 3 members"),
        stage(tmp_path / "into", archive.name) as hidden,
    ):
        unpack(archive, hidden, members_max=3)
    assert not (tmp_path / "into").exists()
