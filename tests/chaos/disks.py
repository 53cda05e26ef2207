"""Faults of disks: one that is full for a while, and one on which a bit flips."""

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

DISK_BYTES = 5 * 2**28
"""1.25 GiB: as much as the config asks for, and a little more."""
PIECE_BYTES = 2**24


@contextmanager
def small_disk(folder: Path, size_bytes: int = DISK_BYTES) -> Iterator[None]:
    """Let `folder`, which must not exist yet, be a small disk of its own. Where nothing may be mounted it is
    an ordinary folder, and is never full.
    """
    folder.mkdir(mode=0o700)
    mount = shutil.which("mount")
    command = [mount or "", "-t", "tmpfs", "-o", f"size={size_bytes},mode=0700", "tmpfs", str(folder)]
    is_mounted = (
        mount is not None and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )
    try:
        yield
    finally:
        if is_mounted:
            subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=True)


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """Fill the small disk of that folder during the block; nothing happens if the folder is no disk of its
    own.
    """
    filler = folder / ".filler"
    if not os.path.ismount(folder):
        yield
        return
    try:
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(PIECE_BYTES)) == PIECE_BYTES:
                pass
            file.write(bytes(PIECE_BYTES))
        yield
    finally:
        filler.unlink()


def flip_bit(bucket: Path, draw: random.Random) -> None:
    """Flip a bit of a blob of a checkpoint, if there is one: its size and its times stay the same."""
    blobs = sorted(path for path in bucket.glob("runs/*/blobs/**/*") if path.is_file())
    for path in draw.sample(blobs, min(1, len(blobs))):
        with suppress(FileNotFoundError):  # deleted in the meantime
            times = path.stat()
            data = bytearray(path.read_bytes())
            if not data:
                continue
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
            with path.open("r+b") as file:
                file.write(data)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
