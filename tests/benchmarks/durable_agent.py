"""The uploading half of an agent as a process of its own: it uploads one checkpoint after the other from a
folder, and prints a line for each.
"""

import json
import os
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from prime_train.buckets.open import open_bucket
from prime_train.checkpoints.manifest import Manifest
from tests.agent.checkpoints.saving import NOW_S, uploader

WAITING = "waiting"
"""Name of the folder on the disk with the checkpoints that become complete, in the order of their names."""


@dataclass(frozen=True)
class Upload:
    """The upload of one checkpoint: seconds from its completion to its manifest in the bucket; raw bytes by
    codec; the busy share of all cores.
    """

    took_s: float
    raw: int
    stored: int
    codecs: dict[str, int]
    busy: float


def main() -> None:
    disk, compress = Path(sys.argv[1]), sys.argv[2]
    agent = uploader(open_bucket(os.environ["BENCH_BUCKET"], make=True), disk, files=[], compress=compress)
    (disk / "tree" / "checkpoints").mkdir(parents=True)
    for path in sorted((disk / WAITING).iterdir()):
        path.rename(disk / "tree" / "checkpoints" / path.name)
        psutil.cpu_percent()
        began_s = time.monotonic()
        (local,) = agent.scan(NOW_S)
        manifest = agent.upload(local, cancelled=lambda: False)
        took_s, busy = time.monotonic() - began_s, psutil.cpu_percent() / 100
        agent.committed(manifest, NOW_S)
        print(json.dumps(asdict(_reported(manifest, took_s, busy))), flush=True)
    os._exit(0)  # As the agent ends: without waiting for the threads of its libraries.


def _reported(manifest: Manifest, took_s: float, busy: float) -> Upload:
    chunks = [chunk for file in manifest.files for chunk in file.chunks]
    codecs: Counter[str] = Counter()
    for chunk in chunks:
        codecs[chunk.codec or "off"] += chunk.size
    return Upload(
        took_s, sum(chunk.size for chunk in chunks), sum(chunk.stored for chunk in chunks), dict(codecs), busy
    )


if __name__ == "__main__":
    main()
