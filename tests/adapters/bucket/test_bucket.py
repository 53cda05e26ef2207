"""Behaviour that only the folder bucket has: URLs, refusals of the file system, leftovers of dead writers,
and its appearance to people.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from prime_train.buckets.folder import TEMP_AGE_S_MAX, FolderBucket
from prime_train.buckets.identity import OtherBucket, mark_of, marked
from prime_train.buckets.keys import MARK_KEY
from prime_train.buckets.open import open_bucket
from prime_train.errors import PermanentError, TemporaryError
from tests.waiting import HANG_S

FILL = """
import sys
from pathlib import Path
from prime_train.buckets.folder import FolderBucket
from prime_train.errors import TemporaryError
bucket = FolderBucket(Path("small"), make=True)
bucket.put("before", b"whole")
for write in (
    lambda: bucket.put("large", b"x" * 2_000_000),
    lambda: bucket.put_file("large", Path(sys.argv[1])),
    lambda: bucket.put_if("before", b"x" * 2_000_000, tag=bucket.get("before").tag),
    lambda: FolderBucket(Path("large"), make=True).get_file("large", Path("small/restored")),
):
    try:
        write()
    except TemporaryError as error:
        print(error)
print([stat.key for stat in bucket.list("")], bucket.get("before").data, sorted(p.name for p in Path("small").iterdir()))
bucket.put("after", b"x" * 100_000)
"""


def temps(bucket: Path) -> list[str]:
    return sorted(path.name for path in (bucket / ".tmp").iterdir() if not path.name.startswith("lock-"))


def test_a_file_url_opens_the_folder_it_names(tmp_path: Path) -> None:
    folder = tmp_path / "with space and ü"
    open_bucket(folder.as_uri(), make=True).put("a", b"x")
    open_bucket(f"file://localhost{folder.as_uri()[7:]}", make=True).put("b", b"x")
    assert (folder / "a").read_bytes() + (folder / "b").read_bytes() == b"xx"


@pytest.mark.parametrize("url", ["azure://bucket/runs", "gopher://x", "/srv/bucket", ""])
def test_an_unknown_scheme_is_named_with_those_that_are_known(url: str) -> None:
    with pytest.raises(
        PermanentError,
        match=rf"'{url.partition('://')[0] if '://' in url else ''}' is not known; known: file",
    ):
        open_bucket(url, make=True)


@pytest.mark.parametrize("url", ["file://elsewhere/srv", "file:relative/path", "file://"])
def test_a_file_url_must_name_a_folder_of_this_machine(url: str) -> None:
    with pytest.raises(PermanentError, match="absolute"):
        open_bucket(url, make=True)


def test_objects_lie_where_a_person_would_look(tmp_path: Path) -> None:
    FolderBucket(tmp_path, make=True).put("runs/a/latest.json", b"{}")
    assert (tmp_path / "runs" / "a" / "latest.json").read_bytes() == b"{}"
    assert temps(tmp_path) == []


def test_deleting_the_last_object_takes_its_folders_along(tmp_path: Path) -> None:
    bucket = FolderBucket(tmp_path, make=True)
    for key in ("runs/a/blobs/x", "runs/b"):
        bucket.put(key, b"")
    bucket.delete("runs/a/blobs/x")
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["b"]
    bucket.put("runs/a", b"now an object")
    assert (tmp_path / "runs" / "a").is_file()


def test_a_key_cannot_lie_under_another(tmp_path: Path) -> None:
    bucket = FolderBucket(tmp_path, make=True)
    bucket.put("a/b", b"1")
    refused: list[Callable[[], object]] = [
        lambda: bucket.put("a", b"2"),
        lambda: bucket.put("a/b/c", b"2"),
        lambda: bucket.put_if("a", b"2", tag=None),
    ]
    for write in refused:
        with pytest.raises(PermanentError, match=str(tmp_path / "a")):
            write()
    assert [stat.key for stat in bucket.list("")] == ["a/b"]
    assert temps(tmp_path) == []


def test_a_part_longer_than_a_file_name_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(PermanentError, match="too long"):
        FolderBucket(tmp_path, make=True).put("x" * 300, b"")
    assert temps(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(PermanentError, match=str(tmp_path / "file" / "bucket")):
        FolderBucket(tmp_path / "file" / "bucket", make=True)


def test_a_bucket_whose_folder_went_away_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    bucket = FolderBucket(tmp_path / "mounted", make=True)
    bucket.put("runs/a/latest.json", b"{}")
    (tmp_path / "mounted").rename(tmp_path / "elsewhere")
    asks: list[Callable[[], object]] = [
        lambda: bucket.get("runs/a/latest.json"),
        lambda: bucket.stat("runs/a/latest.json"),
        lambda: bucket.get_file("runs/a/latest.json", tmp_path / "x"),
        lambda: list(bucket.list("runs/a/")),
        lambda: bucket.put("runs/a/latest.json", b"{}"),
        lambda: bucket.put_if("runs/a/latest.json", b"{}", tag=None),
        lambda: bucket.delete("runs/a/latest.json"),
    ]
    for ask in asks:
        with pytest.raises(TemporaryError, match="mounted"):
            ask()
    assert not (tmp_path / "mounted").exists()


def test_a_known_bucket_whose_disk_is_not_mounted_is_refused_and_nothing_is_written_beside_it(
    tmp_path: Path,
) -> None:
    """The folder on which the disk is mounted exists even without the disk."""
    mark = marked(FolderBucket(tmp_path / "mounted", make=True))
    bucket = FolderBucket(tmp_path / "mounted", mark=mark)
    bucket.put("runs/a/latest.json", b"{}")
    (tmp_path / "mounted").rename(tmp_path / "elsewhere")
    (tmp_path / "mounted").mkdir()
    asks: list[Callable[[], object]] = [
        lambda: bucket.get("runs/a/latest.json"),
        lambda: bucket.stat("runs/a/latest.json"),
        lambda: list(bucket.list("runs/a/")),
        lambda: bucket.put("runs/a/latest.json", b"{}"),
        lambda: bucket.put_if("runs/a/latest.json", b"{}", tag=None),
        lambda: bucket.put_file("runs/a/latest.json", Path(__file__)),
        lambda: bucket.delete("runs/a/latest.json"),
    ]
    for ask in asks:
        with pytest.raises(
            OtherBucket, match=f"mounted lacks its identity file.*{mark}.*check that its disk is mounted"
        ):
            ask()
    assert list((tmp_path / "mounted").iterdir()) == []
    (tmp_path / "mounted").rmdir()
    (tmp_path / "elsewhere").rename(tmp_path / "mounted")
    content = bucket.get("runs/a/latest.json")
    assert content is not None
    assert content.data == b"{}"


def test_another_bucket_at_the_address_of_a_known_one_is_refused(tmp_path: Path) -> None:
    mark, theirs = (marked(FolderBucket(tmp_path / name, make=True)) for name in ("ours", "theirs"))
    assert mark != theirs
    with pytest.raises(OtherBucket, match=f"is another bucket \\({theirs}\\)"):
        FolderBucket(tmp_path / "theirs", mark=mark).put("a", b"x")


def test_opening_a_folder_that_is_not_there_makes_none(tmp_path: Path) -> None:
    bucket = open_bucket((tmp_path / "bucket").as_uri())
    with pytest.raises(OtherBucket, match="does not exist"):
        bucket.put("a", b"x")
    assert list(tmp_path.iterdir()) == []


def test_a_bucket_is_marked_once_whoever_comes_first(tmp_path: Path) -> None:
    bucket = FolderBucket(tmp_path, make=True)
    assert marked(bucket) == marked(FolderBucket(tmp_path)) == mark_of(bucket)
    bucket.put(MARK_KEY, b"{}")
    with pytest.raises(PermanentError, match="is not an identity file"):
        marked(bucket)


def test_a_full_disk_is_temporary_named_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    FolderBucket(tmp_path / "large", make=True).put("large", b"x" * 2_000_000)
    mount = 'mount -t tmpfs -o size=512k tmpfs small && exec "$@"'
    command = [
        "unshare",
        "-Urm",
        "sh",
        "-c",
        mount,
        "sh",
        sys.executable,
        "-c",
        FILL,
        str(tmp_path / "large" / "large"),
    ]
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare, to mount a small disk")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=HANG_S, check=False)
    if "unshare:" in done.stderr or "mount:" in done.stderr:
        pytest.skip("may not mount a small disk here")
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "small/large: No space left on device",
        "small/large: No space left on device",
        "small/before: No space left on device",
        "small/restored: No space left on device",
        "['before'] b'whole' ['.tmp', 'before']",
    ]


def test_what_dead_writers_left_is_swept_when_it_is_old(tmp_path: Path) -> None:
    FolderBucket(tmp_path, make=True)
    for name, age_s in (
        ("old", TEMP_AGE_S_MAX + 60),
        ("young", TEMP_AGE_S_MAX - 60),
        ("lock-007", TEMP_AGE_S_MAX + 60),
    ):
        (tmp_path / ".tmp" / name).write_bytes(b"half")
        os.utime(tmp_path / ".tmp" / name, (time.time() - age_s,) * 2)
    bucket = FolderBucket(tmp_path, make=True)
    bucket.put("a", b"x")
    assert temps(tmp_path) == ["young"]
    assert (tmp_path / ".tmp" / "lock-007").exists()
    assert [stat.key for stat in bucket.list("")] == ["a"]


def test_strange_things_in_the_folder_are_no_objects(tmp_path: Path) -> None:
    bucket = FolderBucket(tmp_path, make=True)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    (tmp_path / "folder").mkdir()
    for key in ("fifo", "nowhere", "folder"):
        assert bucket.get(key) is None
        assert bucket.stat(key) is None
    assert list(bucket.list("")) == []


def test_a_reader_waits_for_no_lock(tmp_path: Path) -> None:
    bucket = FolderBucket(tmp_path, make=True)
    bucket.put("a", b"x")
    with ExitStack() as held:
        for path in (tmp_path / ".tmp").glob("lock-*"):
            fcntl.flock(held.enter_context(path.open("rb")), fcntl.LOCK_EX)
        assert bucket.get("a") is not None
        assert bucket.stat("a") is not None
        assert bucket.get_file("a", tmp_path / "b")
        assert [stat.key for stat in bucket.list("")] == ["a", "b"]
