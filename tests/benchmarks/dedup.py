"""Content that does not change: a run like LoRA, with a frozen base and an adapter that every step changes,
and the bytes sent for each checkpoint.
"""

import os
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from prime_train.buckets.open import open_bucket
from prime_train.buckets.port import Bucket
from tests.agent.checkpoints.formats import tensors
from tests.agent.checkpoints.saving import save, ship, uploader

MIB = 2**20
BASE_MIB = 512
ADAPTER_MIB = 8
STEPS = 3
SHARE_MAX_PCT = 5


def main(quick: bool = False) -> None:
    base_mib = BASE_MIB // 4 if quick else BASE_MIB
    table = Table("checkpoint", "MiB of the checkpoint", "MiB new in the bucket", "share %")
    with tempfile.TemporaryDirectory() as name:
        disk = Path(name)
        for step, (size, new) in enumerate(_ship_steps(disk, base_mib), 1):
            table.add_row(str(step), f"{size / MIB:.1f}", f"{new / MIB:.1f}", f"{100 * new / size:.2f}")
            if step > 1 and 100 * new > SHARE_MAX_PCT * size:
                raise RuntimeError(
                    f"checkpoint {step} sent {100 * new / size:.1f} % of its bytes, more than {SHARE_MAX_PCT}"
                )
    Console().print(table)
    Console().print("counted in the bucket, manifests included; random numbers, which nothing compresses")


def _ship_steps(disk: Path, base_mib: int) -> list[tuple[int, int]]:
    """Return for each checkpoint its bytes, and the bytes that were not in the bucket before."""
    frozen = tensors(os.urandom(base_mib * MIB))
    adapter_mib = ADAPTER_MIB * base_mib // BASE_MIB
    (disk / "bucket").mkdir()
    bucket = open_bucket((disk / "bucket").as_uri(), make=True)
    agent, rows, before = uploader(bucket, disk, files=[]), [], 0
    for step in range(1, STEPS + 1):
        adapter = tensors(os.urandom(adapter_mib * MIB))
        save(
            disk / "tree",
            step,
            {"base.safetensors": frozen, "adapter.safetensors": adapter, "COMPLETE": b"1\n"},
        )
        size = ship(agent).size
        after = _stored(bucket)
        rows.append((size, after - before))
        before = after
    return rows


def _stored(bucket: Bucket) -> int:
    return sum(stat.size for stat in bucket.list(""))


if __name__ == "__main__":
    main()
