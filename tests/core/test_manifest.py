"""What a checkpoint consists of, where the next attempt resumes, and what retention may delete."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from prime_train.buckets.keys import blob_key, manifest_key
from prime_train.checkpoints.manifest import (
    CHUNK_BYTES,
    Chunk,
    Manifest,
    ManifestFile,
    choose_resume,
    chunk_sizes,
    missing_blobs,
    newest_complete,
    unreferenced,
)
from prime_train.runs.resume_point import ResumePoint
from tests.builders import digest, stored_file
from tests.core.given import PROPERTY

RUN = "tiny-1"
DIGESTS = [digest(n) for n in range(4)]
FILES = st.lists(
    st.builds(stored_file, st.sampled_from(["a", "b", "c/d"]), st.integers(0, 3)),
    max_size=3,
    unique_by=lambda file: file.path,
).map(tuple)
MANIFESTS = st.lists(
    st.builds(
        Manifest,
        run=st.just(RUN),
        attempt=st.integers(1, 3),
        step=st.integers(0, 6),
        created_s=st.just(0),
        folder=st.just("step"),
        files=FILES,
    ),
    max_size=8,
    unique_by=lambda m: (m.step, m.attempt),
)
SIZES = st.dictionaries(
    st.sampled_from([blob_key(RUN, digest) for digest in DIGESTS]), st.sampled_from([4, 5])
)
POINTS = st.one_of(
    st.none(),
    st.builds(
        lambda step, attempt: ResumePoint(step=step, attempt=attempt, key=manifest_key(RUN, step, attempt)),
        st.integers(0, 6),
        st.integers(1, 3),
    ),
)


def a_file(path: str = "weights", digest: int = 0, size: int = 5) -> ManifestFile:
    return stored_file(path, digest, size)


def manifest(step: int, attempt: int = 1, files: tuple[ManifestFile, ...] = (), **changes: Any) -> Manifest:
    fields: dict[str, Any] = {
        "run": RUN,
        "attempt": attempt,
        "step": step,
        "created_s": 0,
        "folder": f"step_{step}",
        "files": files,
    }
    return Manifest(**(fields | changes))


def stored(*files: ManifestFile) -> dict[str, int]:
    return {blob_key(RUN, chunk.digest): chunk.stored for file in files for chunk in file.chunks}


def chosen(
    manifests: list[Manifest], *, attempt: int = 1, previous: ResumePoint | None = None
) -> tuple[int, int] | None:
    point = choose_resume(manifests, {}, attempt=attempt, previous=previous)
    return (point.step, point.attempt) if point else None


def point(step: int, attempt: int) -> ResumePoint:
    return ResumePoint(step=step, attempt=attempt, key=manifest_key(RUN, step, attempt))


# ------------------------------------------------------------------------------------------------------------
# complete


def test_a_checkpoint_is_complete_when_every_blob_is_there_with_its_size() -> None:
    full = manifest(1, files=(a_file("a", 0), a_file("b", 1)))
    assert missing_blobs(full, stored(a_file(digest=0), a_file(digest=1))) == ()


@pytest.mark.parametrize(
    "sizes",
    [{}, {blob_key(RUN, DIGESTS[0]): 4}, {blob_key("other", DIGESTS[0]): 5}, {blob_key(RUN, DIGESTS[1]): 5}],
)
def test_a_checkpoint_with_a_blob_absent_or_cut_short_is_not_complete(sizes: Mapping[str, int]) -> None:
    assert missing_blobs(manifest(1, files=(a_file(),)), sizes) == (blob_key(RUN, DIGESTS[0]),)


@PROPERTY
@given(manifests=MANIFESTS, sizes=SIZES)
def test_the_newest_complete_checkpoint_is_complete_and_none_that_is_newer_is(
    manifests: list[Manifest], sizes: dict[str, int]
) -> None:
    def is_complete(m: Manifest) -> bool:
        return all(sizes.get(blob_key(RUN, file.chunks[0].digest)) == file.size for file in m.files)

    newest = newest_complete(manifests, sizes)
    complete = sorted((m.step, m.attempt) for m in manifests if is_complete(m))
    assert (newest and (newest.step, newest.attempt)) == (complete[-1] if complete else None)


def test_a_manifest_that_gives_one_content_two_sizes_is_never_complete() -> None:
    with pytest.raises(ValidationError, match="two sizes"):
        manifest(1, files=(a_file("a", size=4), a_file("b", size=5)))


@pytest.mark.parametrize(
    ("size", "chunks"),
    [
        (0, ()),
        (1, (1,)),
        (CHUNK_BYTES, (CHUNK_BYTES,)),
        (CHUNK_BYTES + 1, (CHUNK_BYTES, 1)),
        (3 * CHUNK_BYTES, (CHUNK_BYTES,) * 3),
    ],
)
def test_a_file_is_cut_into_complete_chunks_and_a_rest(size: int, chunks: tuple[int, ...]) -> None:
    assert chunk_sizes(size) == chunks


def test_a_file_whose_chunks_are_not_the_file_is_refused() -> None:
    with pytest.raises(ValidationError, match="but the sizes of its 1 chunks do not add up to that"):
        ManifestFile(path="a", size=6, chunks=stored_file(size=5).chunks)


# ------------------------------------------------------------------------------------------------------------
# resume


def test_the_next_attempt_resumes_from_the_newest_complete_checkpoint_of_the_last() -> None:
    assert chosen([manifest(10), manifest(20), manifest(15)]) == (20, 1)


def test_a_checkpoint_cut_off_at_any_blob_is_never_resumed_from() -> None:
    cut = manifest(20, files=(a_file("a", 0), a_file("b", 1)))
    picked = choose_resume([manifest(10), cut], stored(a_file(digest=0)), attempt=1, previous=None)
    assert picked == manifest(10).point


def test_whatever_an_attempt_before_the_last_writes_later_is_never_looked_at() -> None:
    assert chosen([manifest(90, attempt=1), manifest(20, attempt=2)], attempt=2, previous=point(10, 1)) == (
        20,
        2,
    )


def test_an_attempt_that_saved_nothing_hands_on_what_it_had_itself_resumed_from() -> None:
    assert chosen([manifest(30, attempt=1)], attempt=2, previous=point(10, 1)) == (10, 1)


def test_a_run_without_any_checkpoint_starts_from_the_beginning() -> None:
    assert chosen([]) is None


def test_a_checkpoint_at_step_0_can_be_resumed_from() -> None:
    assert chosen([manifest(0)]) == (0, 1)


def test_of_the_same_step_the_last_attempts_own_checkpoint_is_taken() -> None:
    assert chosen([manifest(10, attempt=2)], attempt=2, previous=point(10, 1)) == (10, 2)


@PROPERTY
@given(manifests=MANIFESTS, sizes=SIZES, attempt=st.integers(1, 3), previous=POINTS)
def test_the_resume_point_never_goes_back_and_ignores_other_attempts(
    manifests: list[Manifest], sizes: dict[str, int], attempt: int, previous: ResumePoint | None
) -> None:
    picked = choose_resume(manifests, sizes, attempt=attempt, previous=previous)
    if previous is not None:
        assert picked is not None
        assert picked.step >= previous.step
    if picked is not None and picked != previous:
        assert picked.attempt == attempt
        assert [m for m in manifests if m.key == picked.key and not missing_blobs(m, sizes)]


# ------------------------------------------------------------------------------------------------------------
# unreferenced


@PROPERTY
@given(
    manifests=MANIFESTS,
    ages=st.dictionaries(st.sampled_from([blob_key(RUN, d) for d in DIGESTS]), st.integers(0, 200)),
)
def test_a_blob_that_a_manifest_lists_is_never_unreferenced(
    manifests: list[Manifest], ages: dict[str, int]
) -> None:
    free = unreferenced(ages, manifests, now_s=10_000, grace_s=100)
    assert not set(free) & {key for m in manifests for key in m.blobs()}


@pytest.mark.parametrize(("age_s", "goes"), [(99, False), (100, True), (101, True)])
def test_a_blob_nobody_lists_goes_once_it_is_older_than_any_upload_under_way(age_s: int, goes: bool) -> None:
    key = blob_key(RUN, DIGESTS[0])
    assert unreferenced({key: 1000 - age_s}, [], now_s=1000, grace_s=100) == ((key,) if goes else ())


# ------------------------------------------------------------------------------------------------------------
# values


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../b", "a/..", "a\0b", "a\\b", "..", "/"])
def test_a_path_that_leaves_the_checkpoint_is_refused(path: str) -> None:
    with pytest.raises(ValidationError, match="not a relative path"):
        a_file(path)
    with pytest.raises(ValidationError, match="not a relative path"):
        manifest(1, folder=path)


@pytest.mark.parametrize("name", ["x" * 256, "/".join("a" * 65), "ü" * 128])
def test_a_file_that_no_disk_would_take_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match=r"255 bytes|64 folders"):
        a_file(name)


@pytest.mark.parametrize("name", ["-rf", "a/-x", "a\tb", ".hidden"])
def test_no_checkpoint_is_lost_for_the_unusual_name_of_a_file_in_it(name: str) -> None:
    assert a_file(name).path == name


@pytest.mark.parametrize(
    "name", [".git", ".ssh", "-rf", "..", "a/b", ".bashrc", "a\nb", "a\x1b[2Jb", "a\u202eb", "a\x7f"]
)
def test_a_folder_that_means_something_to_somebody_else_is_refused(name: str) -> None:
    with pytest.raises(
        ValidationError, match=r"(?s)the folder .* (dot|dash|relative path|not the name|control character)"
    ):
        manifest(1, folder=name)


@pytest.mark.parametrize("name", ["step_1", "checkpoint-1", "epoch=1-step=2.ckpt", "Größe 1", "モデル_1"])
def test_a_folder_of_any_ordinary_name_is_taken(name: str) -> None:
    assert manifest(1, folder=name).folder == name


@pytest.mark.parametrize(
    "paths", [("a/b", "a//b"), ("a/b", "a/./b"), ("a", "a/"), (".",), ("./",), ("a", "a/b")]
)
def test_no_two_files_of_a_manifest_lie_in_the_same_place(paths: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError):
        manifest(1, files=tuple(a_file(path) for path in paths))


def test_a_file_listed_twice_is_refused() -> None:
    with pytest.raises(ValidationError, match="listed twice"):
        manifest(1, files=(a_file("a", 0), a_file("a", 1)))


@pytest.mark.parametrize("digest", ["", "md5", "blake3-xyz", "blake3-" + "0" * 64 + "\n", "../" + "0" * 64])
def test_a_digest_that_is_none_is_refused(digest: str) -> None:
    with pytest.raises(ValidationError):
        Chunk(digest=digest, size=1, stored=1)


@PROPERTY
@given(manifests=MANIFESTS)
def test_a_manifest_is_read_back_as_it_was_written(manifests: list[Manifest]) -> None:
    assert [Manifest.model_validate_json(m.model_dump_json()) for m in manifests] == manifests


@PROPERTY
@given(cut=st.integers(0, 10_000))
def test_a_manifest_cut_off_at_any_byte_is_no_manifest(cut: int) -> None:
    data = manifest(1, files=(a_file("a", 0), a_file("b", 1))).model_dump_json().encode()
    with pytest.raises(ValidationError):
        Manifest.model_validate_json(data[: cut % len(data)])
