"""Two hundred machines die at some byte of an upload or of a restore: nothing partial is ever resumed,
nothing committed is lost, no blob is leaked.

A machine is a process that is killed for good after a number of bytes has passed between it and the bucket.
After that either a new agent continues on the same disk, or a new machine does, and long afterwards a
clean-up follows.
"""

import json
import os
import random
import shutil
import signal
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from prime_train.buckets.keys import blob_prefix
from prime_train.buckets.open import open_bucket
from prime_train.buckets.port import Bucket
from prime_train.checkpoints.catalog import Catalog, Reader, point_of
from prime_train.checkpoints.manifest import Manifest
from prime_train.checkpoints.prune import carry_out, plan
from prime_train.checkpoints.restore import restore
from prime_train.checkpoints.retention import RetentionPolicy
from prime_train.runs.resume_point import BLOB_GRACE_S, ResumePoint
from tests.agent.checkpoints.saving import on_disk, write
from tests.buckets import keys_for, url_of
from tests.checkpoints.killing import COMMITTED, WAITING, Driver, Job
from tests.exhaustive import some_of
from tests.fakes.faulty_proxy import FaultyProxy
from tests.fakes.s3_servers import S3Server, minio_program

kind = "minio" if minio_program() else "folder"
UPLOAD_KILLS, RESTORE_KILLS = (5, 12) if kind == "minio" else (3, 7)
"""Number of deaths in one test; there are four tests of each kind, so 200 in all on minio, and a few more
with a large file. A folder bucket is slow, because every rename is made durable.
"""

SHARED, OWN, FILE_BYTES_MAX = 6, 6, 512 * 2**10
"""Files that are equal in both steps, and files that each step has of its own."""

IN_FLIGHT = 12
LARGE_BYTES = 40 * 2**20
STEPS = (10, 20)
NUMBERS = count(1)
Files = Mapping[str, bytes]


def tree(chance: random.Random, large: bool) -> dict[int, Files]:
    """Return what the trainer saves at each step: about 3 MiB in 13 files, or with one more file of three
    chunks.
    """
    shared = {f"base/{n:02}.bin": chance.randbytes(chance.randint(1, FILE_BYTES_MAX)) for n in range(SHARED)}
    if large:
        shared["base/large.bin"] = chance.randbytes(LARGE_BYTES)
    own = {
        step: {f"{n:02}.bin": chance.randbytes(chance.randint(1, FILE_BYTES_MAX)) for n in range(OWN)}
        for step in STEPS
    }
    return {step: {**shared, **own[step], "COMPLETE": str(step).encode()} for step in STEPS}


@dataclass
class Field:
    """The environment in which machines die: a bucket as seen by the test and by them, and the counter of
    their bytes.
    """

    driver: Driver
    bucket: Bucket
    url: str
    env: Mapping[str, str] = field(default_factory=dict)
    proxy: FaultyProxy | None = None

    def live(
        self,
        what: str,
        run: str,
        disk: Path,
        *,
        kill_at: int | None = None,
        attempt: int = 1,
        point: ResumePoint | None = None,
    ) -> int:
        """Run a machine that is killed after this many bytes, and return its exit code."""
        job = Job(
            what, self.url, run, str(disk), attempt, point.model_dump() if point else None, env=self.env
        )
        if self.proxy is None:
            return self.driver.begin(Job(**{**vars(job), "left": kill_at})).wait()
        self.proxy.forget()
        pid: Future[int] = Future()
        if kill_at is not None:
            self.proxy.end_after(kill_at, lambda: os.kill(pid.result(), signal.SIGKILL))
        life = self.driver.begin(job)
        pid.set_result(life.pid)
        return life.wait()

    def moved(self) -> int | None:
        """Return the bytes of all bodies since the last machine began, as far as they are counted."""
        return (
            sum(each.request_bytes + each.response_bytes for each in self.proxy.exchanges())
            if self.proxy
            else None
        )

    def put(self) -> set[str]:
        """Return the blobs whose upload was confirmed to the last machine."""
        return (
            {each.target for each in self.proxy.exchanges(method="PUT", path="/blobs/") if each.status == 200}
            if self.proxy
            else set()
        )

    def asked_to_put(self) -> set[str]:
        return (
            {each.target for each in self.proxy.exchanges(method="PUT", path="/blobs/")}
            if self.proxy
            else set()
        )

    def catalog(self, run: str) -> Catalog:
        return Reader(self.bucket, run).catalog()


@pytest.fixture(scope="module")
def ground(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    with Driver() as driver:
        if kind == "folder":
            url = tmp_path_factory.mktemp("bucket").as_uri()
            yield Field(driver, open_bucket(url, make=True), url)
            return
        server: S3Server = request.getfixturevalue("minio")
        with FaultyProxy(server.url) as proxy:
            direct = open_bucket(url_of(server, "kills"), keys_for(server), make=True)
            yield Field(driver, direct, url_of(server.through(proxy.url), "kills"), keys_for(server), proxy)


def prepare(disk: Path, steps: Mapping[int, Files]) -> Path:
    (disk / WAITING).mkdir(parents=True)
    for step, files in steps.items():
        write(disk / WAITING / f"step_{step}", files)
    return disk


def newest(catalog: Catalog) -> Manifest | None:
    return next(iter(catalog.complete()), None)


def came_back(ground: Field, manifest: Manifest, into: Path) -> Files:
    return on_disk(restore(ground.bucket, manifest.run, point_of(manifest), into))


def leaked(ground: Field, run: str) -> set[str]:
    """Run a clean-up so late that no upload can be in progress, and return the remaining blobs that no
    checkpoint needs.
    """
    catalog = ground.catalog(run)
    carry_out(
        ground.bucket,
        plan(
            catalog,
            RetentionPolicy(keep=1),
            committed_step=STEPS[-1],
            now_s=int(time.time()) + 2 * BLOB_GRACE_S,
        ),
        remove=ground.bucket.delete,
    )
    left = ground.catalog(run)
    return {stat.key for stat in ground.bucket.list(blob_prefix(run))} - {
        key for manifest in left.manifests for key in manifest.blobs()
    }


def upload_size(ground: Field, steps: Mapping[int, Files], disk: Path) -> int:
    """Return the bytes that a machine transfers without being killed."""
    assert ground.live("upload", f"whole-{next(NUMBERS)}", prepare(disk, steps)) == 0
    return (
        ground.moved()
        or len({data for files in steps.values() for data in files.values()}) * FILE_BYTES_MAX // 2
    )


def killed_in_an_upload(
    ground: Field, steps: Mapping[int, Files], disk: Path, kill_at: int, *, fresh: bool
) -> None:
    run = f"upload-{next(NUMBERS)}"
    code = ground.live("upload", run, prepare(disk, steps), kill_at=kill_at)
    assert code in (0, -signal.SIGKILL)
    before = ground.put()
    committed = int((disk / COMMITTED).read_text() or 0) if (disk / COMMITTED).exists() else 0

    catalog = ground.catalog(run)
    assert not catalog.unread
    assert all(not catalog.missing(manifest) for manifest in catalog.manifests), (
        "a manifest lists what is not there"
    )
    found = newest(catalog)
    assert (found.step if found else 0) >= committed, "a committed step is lost"
    if found is not None:
        assert came_back(ground, found, disk / "seen") == steps[found.step]

    point = point_of(found) if found else None
    if fresh:
        disk, attempt = (
            prepare(
                disk / "next",
                {step: files for step, files in steps.items() if found is None or step > found.step},
            ),
            2,
        )
    else:
        attempt, point = 1, None
    assert ground.live("upload", run, disk, attempt=attempt, point=point) == 0
    if code != 0:
        assert not before & ground.asked_to_put(), "sent again, though it had arrived"
    catalog = ground.catalog(run)
    last = newest(catalog)
    assert last is not None
    assert last.step == STEPS[-1]
    assert came_back(ground, last, disk / "again") == steps[last.step]
    assert leaked(ground, run) == set()


@pytest.mark.parametrize("fresh", [False, True], ids=["same-disk", "fresh-machine"])
@pytest.mark.parametrize("seed", some_of([1, 2], one_in=2))
def test_a_machine_killed_at_any_byte_of_an_upload_leaves_the_truth(
    ground: Field, tmp_path: Path, seed: int, fresh: bool
) -> None:
    chance = random.Random(seed)
    steps = tree(chance, large=False)
    size = upload_size(ground, steps, tmp_path / "whole")
    for number in range(UPLOAD_KILLS):
        kill_at = chance.randint(1, size)
        try:
            killed_in_an_upload(ground, steps, tmp_path / str(number), kill_at, fresh=fresh)
        except AssertionError as error:
            raise AssertionError(
                f"seed {seed}, kill {number} at byte {kill_at} of {size}: {error}"
            ) from error
        shutil.rmtree(tmp_path / str(number))


@pytest.mark.exhaustive
def test_a_machine_killed_within_a_large_file_sends_only_the_rest(ground: Field, tmp_path: Path) -> None:
    chance = random.Random(5)
    first = tree(chance, large=True)[10]
    steps = {10: first, 20: {**first, "COMPLETE": b"20"}}
    for number, kill_at in enumerate([3 * 2**20, LARGE_BYTES // 2, LARGE_BYTES]):
        killed_in_an_upload(ground, steps, tmp_path / str(number), kill_at, fresh=bool(number % 2))


def killed_in_a_restore(ground: Field, manifest: Manifest, wanted: Files, disk: Path, kill_at: int) -> None:
    into, point = disk / "tree" / "checkpoints", point_of(manifest)
    code = ground.live("download", manifest.run, disk, kill_at=kill_at, point=point)
    assert code in (0, -signal.SIGKILL)
    first = ground.moved()
    there = sorted(path.name for path in into.iterdir()) if into.exists() else []
    assert there in ([], [manifest.folder])
    if there:
        assert on_disk(into / manifest.folder) == wanted, "the trainer would load a part of it"

    assert ground.live("download", manifest.run, disk, point=point) == 0
    assert on_disk(into / manifest.folder) == wanted
    assert [path.name for path in (disk / "tree").iterdir()] == ["checkpoints"], "a draft was left"
    second = ground.moved()
    if first is not None and second is not None:
        largest = max(chunk.size for file in manifest.files for chunk in file.chunks)
        listing = 3 * len(json.dumps(manifest.model_dump(mode="json")))
        assert first + second <= manifest.size + IN_FLIGHT * largest + listing, (
            "fetched again, though it was there"
        )


@pytest.mark.parametrize(
    ("seed", "large", "kills"),
    some_of([*((seed, False, RESTORE_KILLS) for seed in (11, 12, 13, 14)), (15, True, 4)], one_in=4),
)
def test_a_machine_killed_at_any_byte_of_a_restore_shows_no_part_of_it(
    ground: Field, tmp_path: Path, seed: int, large: bool, kills: int
) -> None:
    chance = random.Random(seed)
    wanted = tree(chance, large=large)[10]
    run = f"restore-{next(NUMBERS)}"
    assert ground.live("upload", run, prepare(tmp_path / "from", {10: wanted})) == 0
    manifest = newest(ground.catalog(run))
    assert manifest is not None
    for number in range(kills):
        kill_at = chance.randint(1, manifest.size)
        try:
            killed_in_a_restore(ground, manifest, wanted, tmp_path / str(number), kill_at)
        except AssertionError as error:
            raise AssertionError(
                f"seed {seed}, kill {number} at byte {kill_at} of {manifest.size}: {error}"
            ) from error
        shutil.rmtree(tmp_path / str(number))
