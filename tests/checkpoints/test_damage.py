"""Damage in the bucket: a damaged blob or manifest is found, named and never loaded; an older checkpoint
takes its place.
"""

import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from prime_train.buckets.folder import FolderBucket
from prime_train.buckets.keys import blob_key
from prime_train.checkpoints.catalog import Reader
from prime_train.checkpoints.chunks import Damaged, fetch
from prime_train.checkpoints.hashing import digest_of
from prime_train.checkpoints.manifest import CHUNK_BYTES, Manifest
from prime_train.checkpoints.restore import CheckpointDamaged, RestoreFailed, older, restore
from prime_train.checkpoints.verify import verify
from prime_train.spec.choices import Compress
from tests.agent.buckets import Counted
from tests.agent.checkpoints.saving import (
    NOW_S,
    contents,
    download,
    key_of,
    on_disk,
    point_of,
    save,
    ship,
    uploader,
)
from tests.builders import RUN_ID, digest

WEIGHTS = b"".join(struct.pack("<f", n / 7) for n in range(150))
HARMLESS_BITS_MAX = 8
"""Number of bits in a zstd header that have no meaning, so that flipping them does no harm."""

SMALL = {
    "weights.bin": WEIGHTS,
    "other.bin": WEIGHTS[::-1],
    "text": b"lorem ipsum " * 20,
    "COMPLETE": b"10\n",
}


@pytest.fixture
def bucket(tmp_path: Path) -> FolderBucket:
    return FolderBucket(tmp_path / "bucket", make=True)


def shipped(
    bucket: FolderBucket, disk: Path, files: Mapping[str, bytes], compress: Compress = Compress.OFF
) -> Manifest:
    save(disk / "tree", 10, files)
    return ship(uploader(bucket, disk, compress=compress, files=[]))


def lies_at(tmp_path: Path, manifest: Manifest, path: str, index: int = 0) -> Path:
    chunk = next(file for file in manifest.files if file.path == path).chunks[index]
    return tmp_path / "bucket" / blob_key(RUN_ID, chunk.digest, chunk.codec)


def found_everywhere(bucket: FolderBucket, manifest: Manifest, into: Path) -> set[str]:
    """Return what `verify` names. Restore names it too, and leaves nothing in the trainer's folder."""
    named = {violation.path for violation in verify(bucket, manifest)}
    if named:
        with pytest.raises(CheckpointDamaged) as refusal:
            restore(bucket, RUN_ID, point_of(manifest), into)
        assert all(name in str(refusal.value) for name in named)
        assert not into.exists() or not list(into.iterdir())
    return named


# ---------------------------------------------------------------- blobs


@pytest.mark.parametrize("compress", [Compress.OFF, Compress.ZSTD, Compress.BYTES2, Compress.BYTES4])
def test_any_flipped_byte_of_any_blob_is_found_and_named(
    bucket: FolderBucket, tmp_path: Path, compress: Compress
) -> None:
    manifest = shipped(bucket, tmp_path, SMALL, compress)
    for number, file in enumerate(manifest.files):
        path = tmp_path / "bucket" / key_of(file)
        complete = path.read_bytes()
        for at in range(len(complete)):
            path.write_bytes(complete[:at] + bytes([complete[at] ^ 0xFF]) + complete[at + 1 :])
            with pytest.raises(Damaged):
                fetch(bucket, RUN_ID, file.chunks[0])
        assert found_everywhere(bucket, manifest, tmp_path / f"into-{number}" / "checkpoints") == {file.path}
        path.write_bytes(complete)
    assert verify(bucket, manifest) == []


@pytest.mark.parametrize("compress", [Compress.OFF, Compress.ZSTD, Compress.BYTES2, Compress.BYTES4])
def test_any_flipped_bit_of_a_blob_is_found_or_does_no_harm(
    bucket: FolderBucket, tmp_path: Path, compress: Compress
) -> None:
    manifest = shipped(bucket, tmp_path, {"weights.bin": WEIGHTS[:64], "COMPLETE": b"10\n"}, compress)
    path = lies_at(tmp_path, manifest, "weights.bin")
    (chunk,) = next(file for file in manifest.files if file.path == "weights.bin").chunks
    complete, harmless = path.read_bytes(), 0
    for bit in range(8 * len(complete)):
        path.write_bytes(
            complete[: bit // 8] + bytes([complete[bit // 8] ^ 1 << bit % 8]) + complete[bit // 8 + 1 :]
        )
        try:
            assert fetch(bucket, RUN_ID, chunk) == WEIGHTS[:64], f"bit {bit}"
            harmless += 1
        except Damaged:
            continue
    assert harmless <= HARMLESS_BITS_MAX


HARMS: Mapping[str, Callable[[bytes], bytes | None]] = {
    "missing": lambda data: None,
    "empty": lambda data: b"",
    "one byte": lambda data: data[:1],
    "cut": lambda data: data[:-1],
    "grown": lambda data: data + b"\0",
    "twice": lambda data: data + data,
    "zeros": lambda data: bytes(len(data)),
    "turned round": lambda data: data[::-1],
}


@pytest.mark.parametrize("compress", [Compress.OFF, Compress.ZSTD, Compress.BYTES2, Compress.BYTES4])
@pytest.mark.parametrize("harm", HARMS)
def test_a_blob_that_is_not_what_was_sent_is_found_and_named(
    bucket: FolderBucket, tmp_path: Path, harm: str, compress: Compress
) -> None:
    manifest = shipped(bucket, tmp_path, SMALL, compress)
    path = lies_at(tmp_path, manifest, "weights.bin")
    data = HARMS[harm](path.read_bytes())
    path.unlink() if data is None else path.write_bytes(data)
    assert found_everywhere(bucket, manifest, tmp_path / "into") == {"weights.bin"}


def test_blobs_that_were_swapped_are_both_found(bucket: FolderBucket, tmp_path: Path) -> None:
    manifest = shipped(bucket, tmp_path, SMALL)
    one, two = (lies_at(tmp_path, manifest, path) for path in ("weights.bin", "other.bin"))
    assert one.stat().st_size == two.stat().st_size
    one.rename(tmp_path / "kept")
    two.rename(one)
    (tmp_path / "kept").rename(two)
    assert found_everywhere(bucket, manifest, tmp_path / "into") == {"weights.bin", "other.bin"}


def test_of_a_large_file_the_damaged_chunk_is_named_and_the_others_are_not_fetched_twice(
    bucket: FolderBucket, tmp_path: Path
) -> None:
    large = b"a" * CHUNK_BYTES + b"b" * CHUNK_BYTES + b"c" * 1000
    manifest = shipped(bucket, tmp_path, {"large.bin": large, "COMPLETE": b"10\n"})
    path = lies_at(tmp_path, manifest, "large.bin", 1)
    path.write_bytes(b"b" * (CHUNK_BYTES - 1) + b"B")
    assert found_everywhere(bucket, manifest, tmp_path / "into") == {"large.bin (chunk 2 of 3)"}
    path.write_bytes(b"b" * CHUNK_BYTES)
    counted = Counted(bucket)
    assert on_disk(restore(counted, RUN_ID, point_of(manifest), tmp_path / "into"))["large.bin"] == large
    assert counted.operations == 2, "the manifest and the one chunk"


# ---------------------------------------------------------------- manifests

Forged = Callable[[dict[str, Any]], object]


def first(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the first file of the manifest, which is forged and has one chunk."""
    file: dict[str, Any] = manifest["files"][0]
    return file


FORGERIES: Mapping[str, Forged] = {
    "another run": lambda m: m.update(run="another-1"),
    "another step": lambda m: m.update(step=11),
    "another attempt": lambda m: m.update(attempt=2),
    "no attempt": lambda m: m.pop("attempt"),
    "a step without end": lambda m: m.update(step=10**400),
    "a negative step": lambda m: m.update(step=-1),
    "a moment without end": lambda m: m.update(created_s=10**30),
    "another version": lambda m: m.update(version=2),
    "an unknown field": lambda m: m.update(more=1),
    "an unknown field of a file": lambda m: first(m).update(mode=0o777),
    "an unknown field of a chunk": lambda m: first(m)["chunks"][0].update(offset=0),
    "no files": lambda m: m.pop("files"),
    "files of another kind": lambda m: m.update(files={"a": 1}),
    "a folder above": lambda m: m.update(folder=".."),
    "a folder of the system": lambda m: m.update(folder="/tmp/x"),
    "a folder in a folder": lambda m: m.update(folder="a/b"),
    "no folder": lambda m: m.update(folder=""),
    "a path above": lambda m: first(m).update(path="../../escaped"),
    "a path of the system": lambda m: first(m).update(path="/tmp/escaped"),
    "a path that goes up": lambda m: first(m).update(path="a/../../escaped"),
    "a path of another system": lambda m: first(m).update(path="a\\b"),
    "a path with an end in it": lambda m: first(m).update(path="a\0b"),
    "no path": lambda m: first(m).update(path=""),
    "a path too long": lambda m: first(m).update(path="x" * 5000),
    "a path twice": lambda m: m["files"].append(first(m)),
    "a file that is a folder": lambda m: m["files"].append({**first(m), "path": f"{first(m)['path']}/more"}),
    "a longer file": lambda m: first(m).update(size=first(m)["size"] + 1),
    "a shorter file": lambda m: first(m).update(size=first(m)["size"] - 1),
    "an empty file": lambda m: first(m).update(size=0),
    "a negative file": lambda m: first(m).update(size=-1),
    "a file larger than any disk": lambda m: first(m).update(size=10**18),
    "a file without end": lambda m: first(m).update(size=10**400),
    "a time without end": lambda m: first(m).update(mtime_s=10**30),
    "no chunks": lambda m: first(m).update(chunks=[]),
    "a chunk more": lambda m: first(m)["chunks"].append(first(m)["chunks"][0]),
    "a longer chunk": lambda m: (
        first(m).update(size=first(m)["size"] + 1),
        first(m)["chunks"][0].update(size=first(m)["size"]),
    ),
    "a chunk without end": lambda m: first(m)["chunks"][0].update(size=10**400),
    "a chunk stored without end": lambda m: first(m)["chunks"][0].update(stored=10**400),
    "a chunk stored in nothing": lambda m: first(m)["chunks"][0].update(stored=0),
    "a chunk stored in more": lambda m: first(m)["chunks"][0].update(
        stored=first(m)["chunks"][0]["stored"] + 1
    ),
    "an unknown codec": lambda m: first(m)["chunks"][0].update(codec="lzma"),
    "another codec": lambda m: first(m)["chunks"][0].update(codec="zstd"),
    "a codec that is a path": lambda m: first(m)["chunks"][0].update(codec="/../../x"),
    "a digest of nothing": lambda m: first(m)["chunks"][0].update(digest=digest(1)),
    "a digest of another kind": lambda m: first(m)["chunks"][0].update(digest="md5-" + "0" * 32),
    "a digest that is a path": lambda m: first(m)["chunks"][0].update(digest="../../spec.json"),
    "a digest of another content": lambda m: first(m)["chunks"][0].update(digest=digest_of(b"another")),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_manifest_is_refused_and_shows_nothing(
    bucket: FolderBucket, tmp_path: Path, forgery: str
) -> None:
    manifest = shipped(bucket, tmp_path, SMALL)
    bucket.put(blob_key(RUN_ID, digest_of(b"another")), WEIGHTS)
    forged = manifest.model_dump(mode="json")
    FORGERIES[forgery](forged)
    bucket.put(manifest.key, json.dumps(forged).encode())
    into = tmp_path / "far" / "below" / "into"
    with pytest.raises(RestoreFailed, match=r"manifest|damaged|cannot be written"):
        restore(bucket, RUN_ID, point_of(manifest), into)
    assert not into.exists() or not list(into.iterdir())
    assert not list(tmp_path.rglob("escaped"))
    listed = [(m.step, m.attempt) for m in Reader(bucket, RUN_ID).catalog().manifests]
    assert listed in ([], [(10, 1)]), "it passes for another checkpoint"


@pytest.mark.parametrize(
    "data",
    [b"", b"null", b"[]", b"{", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 50_000, b"1" * 100_000, b"\0" * 1000],
    ids=["empty", "null", "list", "cut", "no text", "deep list", "deep", "a number", "zeros"],
)
def test_what_is_no_manifest_at_all_is_refused(bucket: FolderBucket, tmp_path: Path, data: bytes) -> None:
    manifest = shipped(bucket, tmp_path, SMALL)
    bucket.put(manifest.key, data)
    with pytest.raises(CheckpointDamaged, match="cannot be read"):
        restore(bucket, RUN_ID, point_of(manifest), tmp_path / "into")
    assert Reader(bucket, RUN_ID).catalog().unread == (manifest.key,)


# ---------------------------------------------------------------- what takes its place


def test_a_damaged_checkpoint_gives_way_to_the_newest_complete_one_and_is_sent_anew(
    bucket: FolderBucket, tmp_path: Path
) -> None:
    made = uploader(bucket, tmp_path, keep=9, compress="off")
    manifests = {}
    for step in (10, 20, 30, 40):
        save(tmp_path / "tree", step)
        manifests[step] = ship(made)
    lies_at(tmp_path, manifests[40], "weights.npz").write_bytes(
        bytes(lies_at(tmp_path, manifests[40], "weights.npz").stat().st_size)
    )
    lies_at(tmp_path, manifests[30], "state.json").unlink()
    lies_at(tmp_path, manifests[20], "optimizer.pt").write_bytes(
        b"\0" * lies_at(tmp_path, manifests[20], "optimizer.pt").stat().st_size
    )

    into, damaged = tmp_path / "next" / "tree" / "checkpoints", set[str]()
    with pytest.raises(CheckpointDamaged, match=r"step 40 .* weights\.npz") as newest:
        restore(bucket, RUN_ID, point_of(manifests[40]), into)
    damaged |= newest.value.digests
    others = [
        one.point for one in older(Reader(bucket, RUN_ID).catalog(), point_of(manifests[40]), attempt=2)
    ]
    assert [point.step for point in others] == [20, 10], "30 is not complete, and is not tried"
    with pytest.raises(CheckpointDamaged, match=r"step 20 .* optimizer\.pt") as second:
        restore(bucket, RUN_ID, others[0], into)
    damaged |= second.value.digests
    assert on_disk(restore(bucket, RUN_ID, others[1], into)) == contents(10)

    counted = Counted(bucket)
    again = uploader(
        counted, tmp_path / "next", attempt=2, known=point_of(manifests[40]), keep=9, compress="off"
    )
    again.fell_back(others[1], damaged)
    for step in (20, 30, 40):
        save(tmp_path / "next" / "tree", step)
        assert download(bucket, ship(again)) == contents(step)
    assert all(verify(bucket, manifest) == [] for manifest in manifests.values()), (
        "the same content heals the old ones too"
    )
    for step, path in ((20, "optimizer.pt"), (30, "state.json"), (40, "weights.npz")):
        assert key_of(next(file for file in manifests[step].files if file.path == path)) in counted.keys_put
    assert (
        key_of(next(file for file in manifests[10].files if file.path.startswith("base/")))
        not in counted.keys_put
    )


def test_a_chunk_that_several_files_share_is_damaged_in_all_of_them(
    bucket: FolderBucket, tmp_path: Path
) -> None:
    manifest = shipped(
        bucket, tmp_path, {"a.bin": WEIGHTS, "b/c.bin": WEIGHTS, "d.bin": b"d", "COMPLETE": b"10\n"}
    )
    lies_at(tmp_path, manifest, "a.bin").unlink()
    assert found_everywhere(bucket, manifest, tmp_path / "into") == {"a.bin", "b/c.bin"}
    again = uploader(bucket, tmp_path, attempt=2, files=[])
    assert again.scan(NOW_S), "a new attempt would not send it again"
    ship(again)
    assert verify(bucket, manifest) == []
