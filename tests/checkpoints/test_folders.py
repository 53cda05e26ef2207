"""Checkpoints of all shapes, uploaded and restored byte by byte with every codec, whatever they contain and
whatever happens meanwhile.
"""

import os
import random
import shutil
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from prime_agent.checkpoints.listing import files_in
from prime_agent.checkpoints.uploader import LocalCheckpoint, Vanished
from prime_train.buckets.folder import FolderBucket
from prime_train.checkpoints.manifest import CHUNK_BYTES, Manifest
from prime_train.checkpoints.restore import restore
from prime_train.checkpoints.verify import verify
from prime_train.errors import ExternalError
from prime_train.spec.choices import Compress
from tests.agent.buckets import Counted
from tests.agent.checkpoints.formats import tensors, zipped
from tests.agent.checkpoints.saving import (
    DCP,
    NOW_S,
    blob_sizes,
    download,
    manifests,
    on_disk,
    point_of,
    save,
    ship,
    uploader,
)
from tests.builders import RUN_ID

CHANCE = random.Random(7)
HALVES = b"".join(struct.pack("<e", CHANCE.gauss(0, 0.02)) for _ in range(20_000))
SINGLES = b"".join(struct.pack("<f", CHANCE.gauss(0, 0.02)) for _ in range(20_000))
MARK = {"COMPLETE": b"10\n"}

SMALL: Mapping[str, Mapping[str, bytes]] = {
    "safetensors": {"model.safetensors": tensors(HALVES), "optim/state.safetensors": tensors(SINGLES)},
    "one archive": {"checkpoint.pt": zipped(SINGLES)},
    "odd sizes": {
        f"{size}.bin": (HALVES + SINGLES)[:size] for size in (1, 2, 3, 4, 5, 63, 64, 65, 4095, 4097, 99_999)
    }
    | {"0.txt": b""},
    "empty files only": {"a": b"", "b/c": b""},
    "names": {
        "with space": b"1",
        " leading and trailing ": b"2",
        "ünïcödé/文字/😀.bin": b"3",
        "e\u0301": b"decomposed",
        "\u00e9": b"composed",
        "-rf": b"4",
        "a'b\"c$d;e&f|g*h?i": b"5",
        ".hidden/.more": b"6",
        "..dots/...": b"7",
        "x" * 200: b"8",
        "tab\there": b"9",
        "a%2Fb": b"10",
        "CON": b"11",
        "model.SAFETENSORS": b"12",
    },
    "deep": {"/".join("abcdefghijklmnopqrstuvwxyz") + "/end": b"z"},
    "the same often": {f"{n}/same": HALVES for n in range(20)},
    "zeros": {"zeros": bytes(100_000)},
    "chunks": {"large.bin": bytes(CHUNK_BYTES) + HALVES * 100, "whole.bin": b"\1" * CHUNK_BYTES},
}


@pytest.fixture
def bucket(tmp_path: Path) -> FolderBucket:
    return FolderBucket(tmp_path / "bucket", make=True)


def times(folder: Path) -> dict[str, int]:
    return {file.path: int(file.mtime_s) for file in files_in(folder)}


def age(folder: Path) -> Path:
    """Give each file a different modification time; the sentinel's is the newest."""
    for number, path in enumerate(sorted(folder.rglob("*"), key=lambda path: path.name == "COMPLETE")):
        if path.is_file() and not path.is_symlink():
            os.utime(path, (1_234_567_890 + number, 1_234_567_890 + number))
    return folder


def there_and_back(bucket: FolderBucket, disk: Path, compress: Compress) -> tuple[Path, Manifest]:
    """Upload the checkpoint that waits on `disk`, and return the folder into which it was restored."""
    manifest = ship(uploader(bucket, disk, compress=compress, files=[]))
    assert verify(bucket, manifest) == []
    return restore(bucket, RUN_ID, point_of(manifest), disk / "new" / "checkpoints"), manifest


@pytest.mark.parametrize("compress", list(Compress))
@pytest.mark.parametrize("shape", SMALL)
def test_every_shape_comes_back_byte_by_byte_with_its_times(
    bucket: FolderBucket, tmp_path: Path, shape: str, compress: Compress
) -> None:
    original = age(save(tmp_path / "tree", 10, {**SMALL[shape], **MARK}))
    restored, _ = there_and_back(bucket, tmp_path, compress)
    assert on_disk(restored) == {**SMALL[shape], **MARK}
    assert times(restored) == times(original)


@pytest.mark.parametrize("compress", list(Compress))
def test_a_real_distributed_checkpoint_comes_back(
    bucket: FolderBucket, tmp_path: Path, compress: Compress
) -> None:
    original = tmp_path / "tree" / "checkpoints" / "step_10"
    shutil.copytree(DCP, original)
    (original / "COMPLETE").write_bytes(b"10\n")
    age(original)
    restored, _ = there_and_back(bucket, tmp_path, compress)
    assert on_disk(restored) == on_disk(original)
    assert times(restored) == times(original)


@pytest.mark.exhaustive
def test_two_thousand_small_files_come_back(bucket: FolderBucket, tmp_path: Path) -> None:
    files = {f"{n % 10}/shard-{n}.bin": n.to_bytes(4, "big") * (n % 50 + 1) for n in range(2000)}
    age(save(tmp_path / "tree", 10, files | MARK))
    restored, manifest = there_and_back(bucket, tmp_path, Compress.AUTO)
    assert on_disk(restored) == files | MARK
    assert len(manifest.files) == 2001


@pytest.mark.exhaustive
@pytest.mark.slow
def test_of_a_sparse_file_the_zeros_are_sent_once(bucket: FolderBucket, tmp_path: Path) -> None:
    folder = save(tmp_path / "tree", 10, {"large.bin": b"", "COMPLETE": b"10\n"})
    size = 5 * 2**30
    with (folder / "large.bin").open("r+b") as file:
        file.truncate(size)
        file.seek(size // 2 + 5)
        file.write(b"not zero")
    os.utime(folder / "COMPLETE")
    manifest = ship(uploader(bucket, tmp_path, compress="off", files=[]))
    (large,) = (file for file in manifest.files if file.path == "large.bin")
    assert (large.size, len(large.chunks), len({chunk.digest for chunk in large.chunks})) == (
        size,
        size // CHUNK_BYTES,
        2,
    )
    assert sum(blob_sizes(bucket).values()) == 2 * CHUNK_BYTES + 3


# ---------------------------------------------------------------- links


def test_a_link_to_a_file_is_kept_as_that_file(bucket: FolderBucket, tmp_path: Path) -> None:
    outside = tmp_path / "base.bin"
    outside.write_bytes(b"of the base model")
    folder = save(tmp_path / "tree", 10, {"a.bin": b"a"})
    (folder / "base.bin").symlink_to(outside)
    (folder / "same.bin").symlink_to("a.bin")
    save(tmp_path / "tree", 10, MARK)
    restored, _ = there_and_back(bucket, tmp_path, Compress.AUTO)
    assert on_disk(restored) == {"a.bin": b"a", "base.bin": b"of the base model", "same.bin": b"a", **MARK}
    assert not any(path.is_symlink() for path in restored.rglob("*"))


@pytest.mark.parametrize("target", [".", "..", "/", "loop"])
def test_a_link_to_a_folder_or_to_itself_is_no_complete_checkpoint(
    bucket: FolderBucket, tmp_path: Path, target: str
) -> None:
    folder = save(tmp_path / "tree", 10, {"a.bin": b"a", **MARK})
    (folder / "loop").symlink_to(target)
    made = uploader(bucket, tmp_path, files=[])
    assert made.scan(NOW_S) == []
    with pytest.raises(ExternalError, match=r"link to a folder|symbolic links"):
        made.upload(LocalCheckpoint(10, folder), cancelled=lambda: False)
    assert manifests(bucket) == []


# ---------------------------------------------------------------- the trainer meanwhile


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def rewrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"other")


def replace(path: Path) -> None:
    path.with_name("draft").write_bytes(b"another")
    path.with_name("draft").rename(path)


CHANGES: Mapping[str, tuple[Callable[[Path], object], bool]] = {
    "grows": (grow, False),
    "shrinks": (lambda path: os.truncate(path, 10), False),
    "is emptied": (lambda path: os.truncate(path, 0), False),
    "is written into": (rewrite, False),
    "is removed": (lambda path: path.unlink(), True),
    "is replaced": (replace, True),
    "goes with its folder": (lambda path: shutil.rmtree(path.parent), True),
}
"""Changes to a file, each with whether the saved content still exists under another name, as a staged file
has it.
"""


def moments(bucket: FolderBucket, folder: Path, change: Callable[[Path], object]) -> Iterator[Counted]:
    """Yield buckets that apply the change just before their n-th operation."""
    for wanted in range(1, 12):
        seen: list[str] = []

        def at(name: str, key: str, wanted: int = wanted, seen: list[str] = seen) -> None:
            seen.append(key)
            if len(seen) == wanted:
                change(folder / "b.bin")

        yield Counted(bucket, before=at)


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_at_any_moment_of_an_upload_is_never_kept_half(
    tmp_path: Path, change: str
) -> None:
    harm, survives = CHANGES[change]
    files = {"a.bin": HALVES, "b.bin": SINGLES, "c.bin": HALVES[::-1], **MARK}
    root = FolderBucket(tmp_path / "root", make=True)
    for number, counted in enumerate(
        moments(root, tmp_path / "0" / "tree" / "checkpoints" / "step_10", harm)
    ):
        shutil.rmtree(tmp_path / "0", ignore_errors=True)
        for manifest in manifests(root):
            root.delete(manifest.key)
        folder = age(save(tmp_path / "0" / "tree", 10, files))
        made = uploader(counted, tmp_path / "0", files=[], now_s=int(time.time()))
        try:
            manifest = made.upload(LocalCheckpoint(10, folder), cancelled=lambda: False)
        except Vanished:
            assert not survives, f"before operation {number + 1}"
            assert manifests(root) == []
        else:
            assert download(root, manifest) == files
