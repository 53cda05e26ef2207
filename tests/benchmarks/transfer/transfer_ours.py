"""prime-train's side of the transfers, as a process of its own: one checkpoint up, as the agent sends it, or
down, as a machine restores it.
"""

import argparse
import os
from pathlib import Path

from prime_train.buckets.keys import manifest_key
from prime_train.buckets.open import open_bucket
from prime_train.runs.resume_point import ResumePoint
from tests.builders import RUN_ID

STEP = 1


def up(url: str, disk: Path) -> None:
    """Upload the content of `disk` as step 1: scanned, hashed, sent, looked up in the bucket's list, and then
    listed in a manifest.
    """
    from tests.agent.checkpoints.saving import NOW_S, uploader

    made = uploader(open_bucket(url, make=True), disk, files=[])
    (local,) = made.scan(NOW_S)
    made.upload(local, cancelled=lambda: False)


def down(url: str, into: Path) -> None:
    """Download the checkpoint. Every chunk is compared with its hash before the checkpoint's folder
    appears.
    """
    from prime_train.checkpoints.restore import restore

    restore(
        open_bucket(url, make=True),
        RUN_ID,
        ResumePoint(step=STEP, attempt=1, key=manifest_key(RUN_ID, STEP, 1)),
        into,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("way", choices=("up", "down"))
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    (up if options.way == "up" else down)(os.environ["BENCH_BUCKET"], options.folder)


if __name__ == "__main__":
    main()
