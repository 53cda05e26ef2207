"""The speed of the disk and of downloads from the bucket: measured on real ones, and what a run requires of
them.
"""

import logging
import os
import threading
from pathlib import Path

import pytest

from prime_agent.before_training.speeds import (
    Measured,
    read_speed,
    slow_disk,
    slow_download,
    wanted_download_mb_per_s,
    wanted_write_mb_per_s,
    write_speed,
)
from prime_train.buckets.keys import manifest_key
from prime_train.buckets.open import open_bucket
from prime_train.checkpoints.chunks import places
from prime_train.checkpoints.restore import read_manifest
from prime_train.runs.resume_point import ResumePoint
from prime_train.spec.causes import Cause
from prime_train.spec.spec import HardwareSpec
from tests.agent.attempts import RUN_ID, attempt, demo_spec

POINT = ResumePoint(step=4, attempt=1, key=manifest_key(RUN_ID, 4, 1))
FASTEST = 100_000
"""MB/s that no disk and no network reaches."""


@pytest.mark.parametrize(
    ("hardware", "disk", "download"),
    [
        (HardwareSpec(provider="prime", disk_gib=60), 50, 10),
        (HardwareSpec(provider="prime", disk_gib=10), 0, 10),
        (HardwareSpec(provider="local", disk_gib=60), 0, 0),
        (HardwareSpec(provider="local", disk_gib=1, disk_mb_per_s_min=7, download_mb_per_s_min=3), 7, 3),
        (HardwareSpec(provider="prime", disk_gib=60, disk_mb_per_s_min=0, download_mb_per_s_min=0), 0, 0),
    ],
)
def test_a_rented_machine_has_to_be_fast_unless_the_config_says_otherwise(
    hardware: HardwareSpec, disk: int, download: int
) -> None:
    assert (wanted_write_mb_per_s(hardware), wanted_download_mb_per_s(hardware)) == (disk, download)


def test_the_disk_is_written_to_and_nothing_is_left_on_it(tmp_path: Path) -> None:
    measured = write_speed(tmp_path, sample_bytes=2**20)
    assert (measured.size, measured.cut_off, measured.mb_per_s > 0) == (2**20, False, True)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_takes_writes_and_never_finishes_them_ends_the_measurement_at_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = threading.Event()
    monkeypatch.setattr(os, "fsync", lambda file: hangs.wait())
    measured = write_speed(tmp_path, sample_bytes=2**20, limit_s=0.01)
    hangs.set()
    assert (measured.size, measured.cut_off) == (0, True)


def test_a_disk_that_cannot_be_written_is_an_error_and_not_a_slow_disk(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        write_speed(tmp_path / "none")


def test_a_disk_that_is_too_slow_ends_the_attempt_before_anything_is_set_up(tmp_path: Path) -> None:
    with attempt(
        tmp_path, demo_spec("--steps 4", hardware={"disk_mb_per_s_min": FASTEST}, setup=["touch set-up"])
    ) as here:
        assert here.wait() == 0
        (last,) = here.plane.exits
        assert last.exit is not None
        assert last.exit.cause is Cause.SLOW_DISK
        assert last.exit.detail.startswith("the disk writes ")
        assert last.exit.detail.endswith(
            "; hardware.disk_mb_per_s_min is 100000, so checkpoints would take too long"
        )
        assert not (here.disk / "work" / "set-up").exists()


@pytest.fixture(scope="module")
def bucket_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the bucket of an attempt that has saved step 4."""
    folder = tmp_path_factory.mktemp("saved")
    with attempt(folder, demo_spec("--steps 4 --save-every 4")) as here:
        assert here.wait() == 0
    return folder


def test_a_checkpoint_that_arrives_too_slowly_ends_the_attempt_before_the_restore(
    bucket_folder: Path,
) -> None:
    wanted = demo_spec("--steps 8 --save-every 4", hardware={"download_mb_per_s_min": FASTEST})
    with attempt(bucket_folder, wanted, resume=POINT, attempt=2) as here:
        assert here.wait() == 0
        (last,) = here.plane.exits
        assert last.exit is not None
        assert last.exit.cause is Cause.SLOW_DOWNLOAD
        assert "the checkpoint of step 4 arrives from the bucket at " in last.exit.detail
        assert "hardware.download_mb_per_s_min is 100000" in last.exit.detail


def test_a_small_checkpoint_is_not_judged_by_default_and_a_missing_one_is_left_to_the_restore(
    bucket_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bucket = open_bucket((bucket_folder / "bucket").as_uri())
    assert slow_download(HardwareSpec(provider="prime"), bucket, RUN_ID, POINT) == ""
    missing = ResumePoint(step=9, attempt=1, key=manifest_key(RUN_ID, 9, 1))
    with caplog.at_level(logging.WARNING):
        assert slow_download(HardwareSpec(provider="prime"), bucket, RUN_ID, missing) == ""
    assert "the speed of downloads was not measured: there is no manifest" in caplog.text


def test_every_chunk_of_the_sample_is_fetched(bucket_folder: Path) -> None:
    bucket = open_bucket((bucket_folder / "bucket").as_uri())
    sample = list(places(read_manifest(bucket, RUN_ID, POINT)))
    measured = read_speed(bucket, RUN_ID, sample)
    assert (measured.size, measured.cut_off) == (sum(place.chunk.stored for place in sample), False)


def test_a_fast_enough_disk_has_no_fault(tmp_path: Path) -> None:
    assert slow_disk(HardwareSpec(disk_mb_per_s_min=0), tmp_path) == ""


def test_speeds_are_told_with_what_was_measured() -> None:
    assert str(Measured(256 * 10**6, 2.0)) == "128 MB/s (256 MB in 2.0 s)"
    assert str(Measured(10**6, 10.0)) == "0.1 MB/s (1 MB in 10.0 s)"
