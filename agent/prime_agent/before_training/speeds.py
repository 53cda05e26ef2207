"""Measures how fast the machine's disk writes, and how fast the checkpoint to restore arrives from the
bucket.

Both measurements read or write a sample, and end after a time limit whatever the disk or the network does: a
call that does not return is left to its own thread, and the speed is that of what was done until then.
"""

import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, takewhile
from pathlib import Path

from prime_train.buckets.port import Bucket
from prime_train.checkpoints.chunks import ChunkPosition, Damaged, fetch, places
from prime_train.checkpoints.manifest import Manifest
from prime_train.checkpoints.parallel import in_parallel
from prime_train.checkpoints.restore import CheckpointDamaged, read_manifest
from prime_train.errors import ExternalError
from prime_train.providers.kinds import allowed_providers, is_own_machine
from prime_train.runs.resume_point import ResumePoint
from prime_train.spec.spec import HardwareSpec

SAMPLE_BYTES = 256 * 2**20
MEASURE_S_MAX = 60.0
"""Seconds for the sample; at the lowest speeds that are required by default it takes half of that."""
PIECE_BYTES = 8 * 2**20

DISK_MB_PER_S = 50
"""Required by default: less than a hard disk writes. A checkpoint of 50 GB then takes a quarter of an
hour.
"""
DISK_GIB_MEASURED = 20
"""Size of the requested disk from which on the speed is required by default; a run that needs less writes
little.
"""
DOWNLOAD_MB_PER_S = 10
"""Required by default: a tenth of a network of 1 Gbit/s, the least that machines for rent have. A restore of
50 GB then takes 80 min.
"""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Measured:
    """What was done in a measurement. `cut_off`: the time limit ended it."""

    size: int
    took_s: float
    cut_off: bool = False

    @property
    def mb_per_s(self) -> float:
        return self.size / 1e6 / max(self.took_s, 1e-6)

    def __str__(self) -> str:
        return (
            f"{self.mb_per_s:.{0 if self.mb_per_s >= 10 else 1}f} MB/s ({self.size / 1e6:.0f} MB "
            "in "
            f"{self.took_s:.1f} s)"
        )


def wanted_write_mb_per_s(hardware: HardwareSpec) -> int:
    """Return the speed that the disk needs; 0 for no requirement, as on a person's own machine."""
    if hardware.disk_mb_per_s_min is not None:
        return hardware.disk_mb_per_s_min
    return (
        0
        if is_own_machine(allowed_providers(hardware)) or hardware.disk_gib < DISK_GIB_MEASURED
        else DISK_MB_PER_S
    )


def wanted_download_mb_per_s(hardware: HardwareSpec) -> int:
    """Return the speed at which a checkpoint must arrive; 0 for no requirement, as on a person's own
    machine.
    """
    if hardware.download_mb_per_s_min is not None:
        return hardware.download_mb_per_s_min
    return 0 if is_own_machine(allowed_providers(hardware)) else DOWNLOAD_MB_PER_S


def slow_disk(hardware: HardwareSpec, folder: Path) -> str:
    """Return why the disk of `folder` is too slow for the run; "" if it is not, or if no speed is required.
    Raises OSError.
    """
    wanted = wanted_write_mb_per_s(hardware)
    if not wanted:
        return ""
    measured = write_speed(folder)
    _log.info("the disk writes %s", measured)
    if measured.mb_per_s >= wanted:
        return ""
    return (
        f"the disk writes {measured}; hardware.disk_mb_per_s_min is {wanted}, so checkpoints would "
        "take too long"
    )


def slow_download(hardware: HardwareSpec, bucket: Bucket, run_id: str, point: ResumePoint) -> str:
    """Return why the checkpoint `point` arrives too slowly from the bucket; "" if it does not, or if nothing
    can be said.

    A checkpoint that is smaller than the sample is not judged by default. One that cannot be read is left to
    the restore, which tries again or falls back on an older one.
    """
    wanted = wanted_download_mb_per_s(hardware)
    if not wanted:
        return ""
    try:
        manifest = read_manifest(bucket, run_id, point)
        sample = _sample(manifest)
        if (
            sum(place.chunk.stored for place in sample) < SAMPLE_BYTES
            and hardware.download_mb_per_s_min is None
        ):
            return ""
        measured = read_speed(bucket, manifest.holder, sample)
    except (ExternalError, CheckpointDamaged, Damaged) as error:
        _log.warning("the speed of downloads was not measured: %s", error)
        return ""
    _log.info("the checkpoint of step %d arrives at %s", point.step, measured)
    if measured.mb_per_s >= wanted:
        return ""
    return (
        f"the checkpoint of step {point.step} arrives from the bucket at {measured}; "
        f"hardware.download_mb_per_s_min is {wanted}, "
        "so restoring it would take too long"
    )


def write_speed(
    folder: Path, *, sample_bytes: int = SAMPLE_BYTES, limit_s: float = MEASURE_S_MAX
) -> Measured:
    """Write `sample_bytes` to a file without a name, so that nothing is left of it, and return how fast that
    was. Raises OSError.
    """

    def write(meter: "_Meter") -> None:
        # neither zeros, which some disks do not store, nor what compresses
        piece = os.urandom(min(PIECE_BYTES, sample_bytes))
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            while meter.size < sample_bytes and not meter.stopped:
                left = memoryview(piece)
                while left:
                    left = left[file.write(left) :]
                os.fsync(file.fileno())
                meter.add(len(piece))

    return _measured(write, limit_s)


def read_speed(
    bucket: Bucket, holder: str, sample: list[ChunkPosition], *, limit_s: float = MEASURE_S_MAX
) -> Measured:
    """Fetch the chunks of the sample as a restore does, and return how fast they arrived. `holder`: the run
    that holds them. Raises Damaged and the bucket's errors.
    """

    def read(meter: "_Meter") -> None:
        def one(place: ChunkPosition) -> None:
            if not meter.stopped:
                fetch(bucket, holder, place.chunk)
                meter.add(place.chunk.stored)

        in_parallel(one, sample)

    return _measured(read, limit_s)


def _sample(manifest: Manifest) -> list[ChunkPosition]:
    """Return the first chunks of the checkpoint that together have the size of the sample, each content
    once.
    """
    once = list({place.chunk.digest: place for place in places(manifest)}.values())
    before = accumulate((place.chunk.stored for place in once), initial=0)
    return [
        place for place, _ in takewhile(lambda pair: pair[1] < SAMPLE_BYTES, zip(once, before, strict=False))
    ]


class _Meter:
    """Counts what was done, from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.size = 0
        self.stopped = False
        self.failure: BaseException | None = None

    def add(self, size: int) -> None:
        with self._lock:
            self.size += size


def _measured(work: Callable[[_Meter], None], limit_s: float) -> Measured:
    """Run the work in a thread, for `limit_s` seconds at most. Raises what it raises."""
    meter = _Meter()

    def run() -> None:
        try:
            work(meter)
        except BaseException as error:
            meter.failure = error

    thread = threading.Thread(target=run, name="measuring", daemon=True)
    began_s = time.monotonic()
    thread.start()
    thread.join(limit_s)
    cut_off = thread.is_alive()
    meter.stopped = True
    if meter.failure is not None:
        raise meter.failure
    return Measured(meter.size, time.monotonic() - began_s, cut_off)
