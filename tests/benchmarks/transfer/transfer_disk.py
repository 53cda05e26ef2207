"""The environment of measured transfers: files to send, space for what is received, and a server."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.buckets import BUCKET
from tests.fakes.certificates import make_certificate
from tests.fakes.s3_servers import LOOPBACK, Place, S3Server, minio

MIB = 2**20
SPARE_BYTES = 5 * 2**30


@dataclass(frozen=True)
class Load:
    """What is sent: this many files of that size."""

    count: int
    size: int

    @property
    def total(self) -> int:
        return self.count * self.size

    def __str__(self) -> str:
        return f"{self.total / MIB:,.0f} MiB in {self.count:,} files"


@contextmanager
def room_for(size: int) -> Iterator[Path]:
    """Return a folder with this much space, in memory if possible, because the tools are compared and not the
    disk.
    """
    shm = Path("/dev/shm")
    free = min(shutil.disk_usage(shm).free, psutil.virtual_memory().available) if shm.is_dir() else 0
    inside = shm if free > size + SPARE_BYTES else None
    with tempfile.TemporaryDirectory(prefix="transfer-", dir=inside) as name:
        yield Path(name)


@contextmanager
def server_on(room: Path, place: Place = LOOPBACK) -> Iterator[S3Server]:
    with minio(room / "server", make_certificate(room / "certificate", place.host), place) as server:
        server.create_bucket(BUCKET)
        yield server


def fill(folder: Path, load: Load) -> None:
    folder.mkdir(parents=True)
    for number in range(load.count):
        with (folder / f"shard_{number:05}.bin").open("wb") as file:
            for at in range(0, load.size, MIB):
                file.write(os.urandom(min(MIB, load.size - at)))
    (folder / "COMPLETE").write_bytes(b"1\n")
