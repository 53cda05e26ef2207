"""A trainer's save in the manner of the demo's trainer, and helpers for tests of saves."""

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from prime_agent.checkpoints.uploader import Uploader
from prime_train.buckets.keys import blob_key, blob_prefix, manifest_prefix
from prime_train.buckets.port import Bucket
from prime_train.checkpoints.chunks import fetch
from prime_train.checkpoints.manifest import Manifest, ManifestFile, newest_complete
from prime_train.runs.resume_point import ResumePoint
from prime_train.spec.spec import RunSpec
from tests.agent.checkpoints.formats import tensors, zipped
from tests.builders import RUN_ID, spec

NOW_S = 2_000_000_000
"""The agent's time, long after anything that the tests write, so that nothing in the bucket counts as
recently written.
"""

DCP = Path(__file__).parents[2] / "data" / "dcp" / "step_10"
WITH_SENTINEL = {"sentinel": "COMPLETE", "files": ["weights.npz", "state.json"]}


def contents(step: int) -> dict[str, bytes]:
    """Return the files of one checkpoint in the order in which they are written. `base` is the same in every
    step; the sentinel comes last.
    """
    return {
        "base/frozen.safetensors": tensors(b"frozen" * 3000),
        "weights.npz": zipped(f"weights {step} ".encode() * 200),
        "optimizer.pt": zipped(f"moments {step} ".encode() * 200),
        "state.json": json.dumps({"step": step, "seeds": [1, {"next": step}]}).encode() + b"\n",
        "COMPLETE": f"{step}\n".encode(),
    }


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def save(work: Path, step: int, files: Mapping[str, bytes] | None = None) -> Path:
    """Write checkpoint `step` into the working tree, file by file."""
    return write(work / "checkpoints" / f"step_{step}", contents(step) if files is None else files)


def save_dcp(work: Path, step: int) -> Path:
    """Write a real distributed checkpoint of two ranks, its metadata last."""
    folder = work / "checkpoints" / f"step_{step}"
    shutil.copytree(DCP, folder)
    for moment, path in enumerate(sorted(folder.rglob("*"), key=lambda path: path.name == ".metadata")):
        os.utime(path, (1_000_000 + moment, 1_000_000 + moment))
    return folder


def uploader(
    bucket: Bucket,
    disk: Path,
    *,
    attempt: int = 1,
    known: ResumePoint | None = None,
    now_s: int = NOW_S,
    **checkpoints: Any,
) -> Uploader:
    return uploader_of(
        spec(checkpoints=WITH_SENTINEL | checkpoints),
        bucket,
        disk,
        attempt=attempt,
        known=known,
        clock=lambda: now_s,
    )


def uploader_of(made: RunSpec, bucket: Bucket, disk: Path, **given: Any) -> Uploader:
    """Return the uploader of a run with this spec. `given`: what differs from that of a first attempt."""
    usual: dict[str, Any] = {
        "attempt": 1,
        "known": None,
        "clock": lambda: NOW_S,
        "monotonic_s": time.monotonic,
    }
    return Uploader(
        bucket=bucket, spec=made, run_id=RUN_ID, work=disk / "tree", stage=disk / "stage", **(usual | given)
    )


def ship(made: Uploader) -> Manifest:
    """Scan, upload and commit everything that is waiting."""
    (local,) = made.scan(NOW_S)
    manifest = made.upload(local, cancelled=lambda: False)
    made.committed(manifest, NOW_S)
    return manifest


def point_of(manifest: Manifest) -> ResumePoint:
    return ResumePoint(step=manifest.step, attempt=manifest.attempt, key=manifest.key)


def manifests(bucket: Bucket) -> list[Manifest]:
    stats = list(bucket.list(manifest_prefix(RUN_ID)))
    return [Manifest.model_validate_json(content.data) for stat in stats if (content := bucket.get(stat.key))]


def blob_sizes(bucket: Bucket) -> dict[str, int]:
    return {stat.key: stat.size for stat in bucket.list(blob_prefix(RUN_ID))}


def newest(bucket: Bucket) -> Manifest | None:
    """Return the checkpoint that the control plane would resume from."""
    return newest_complete(manifests(bucket), blob_sizes(bucket))


def download(bucket: Bucket, manifest: Manifest) -> dict[str, bytes]:
    """Return the content of every file of the manifest as the bucket has it."""
    return {
        file.path: b"".join(bytes(fetch(bucket, manifest.run, chunk)) for chunk in file.chunks)
        for file in manifest.files
    }


def key_of(file: ManifestFile) -> str:
    """Return the key of a file's only blob."""
    (chunk,) = file.chunks
    return blob_key(RUN_ID, chunk.digest, chunk.codec)


def on_disk(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def cuts(files: Mapping[str, bytes]) -> Iterator[dict[str, bytes]]:
    """Yield every state in which a save of these files, in their order, can be interrupted: at each byte near
    the ends, and at some in between.
    """
    done: dict[str, bytes] = {}
    for name, data in files.items():
        yield dict(done)
        ends = {
            *range(min(40, len(data))),
            *range(max(0, len(data) - 40), len(data)),
            *range(0, len(data), 997),
        }
        for length in sorted(ends):
            yield {**done, name: data[:length]}
        done[name] = data
