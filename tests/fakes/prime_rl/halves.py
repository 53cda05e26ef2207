"""The two halves of a checkpoint, each written and read by its own component."""

import json
import shutil
import zipfile
from pathlib import Path

from tests.fakes.prime_rl.folder import steps

DCP = Path(__file__).resolve().parents[2] / "data" / "dcp" / "step_10" / "trainer"
"""Folder of a real distributed checkpoint of two ranks."""


def save_trainer(checkpoints: Path, step: int) -> None:
    """Write the shards, and their metadata once all are written."""
    folder = checkpoints / f"step_{step}" / "trainer"
    folder.mkdir(parents=True, exist_ok=True)
    for shard in sorted(DCP.glob("*.distcp")):
        (folder / shard.name).write_bytes(shard.read_bytes() + step.to_bytes(8, "little"))
    (folder / ".metadata").write_bytes((DCP / ".metadata").read_bytes())


def save_shards(checkpoints: Path, step: int) -> None:
    """Write what an interrupted save leaves: one rank's shard, no metadata."""
    save_trainer(checkpoints, step)
    (checkpoints / f"step_{step}" / "trainer" / ".metadata").unlink()
    (checkpoints / f"step_{step}" / "trainer" / "__1_0.distcp").unlink()


def save_orchestrator(checkpoints: Path, step: int) -> None:
    """Write one file, replaced atomically."""
    folder = checkpoints / f"step_{step}" / "orchestrator"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "progress.pt.new.tmp", "w") as archive:
        archive.writestr("progress.json", json.dumps({"step": step}))
    (folder / "progress.pt.new.tmp").replace(folder / "progress.pt")


def load(checkpoints: Path, step: int) -> None:
    """Read both halves, as the two components do. Raises FileNotFoundError."""
    trainer, shipped = (
        checkpoints / f"step_{step}" / "trainer",
        checkpoints / f"step_{step}" / "orchestrator" / "progress.pt",
    )
    if not (trainer / ".metadata").exists():
        raise FileNotFoundError(f"Checkpoint not found at {trainer}")
    if not shipped.exists():
        raise FileNotFoundError(f"Orchestrator checkpoint not found at {shipped}")
    with zipfile.ZipFile(shipped) as archive:
        assert json.loads(archive.read("progress.json")) == {"step": step}


def keep_last(checkpoints: Path, count: int) -> None:
    """Delete complete folders of old steps, even if they are being read."""
    for step in steps(checkpoints)[:-count]:
        shutil.rmtree(checkpoints / f"step_{step}", ignore_errors=True)
