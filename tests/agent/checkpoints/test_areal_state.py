"""AReaL's single state on its way to the bucket and back: half written, and overwritten in place while a copy
of it is uploaded.

The files are made here in the order in which AReaL writes them; its engines need a GPU.
"""

import json
import os
import pickle
import subprocess
import time
from pathlib import Path

import pytest

from prime_agent.checkpoints.uploader import Uploader
from prime_agent.trainer.stale_outputs import move_aside
from prime_train.buckets.folder import FolderBucket
from prime_train.checkpoints.restore import restore
from prime_train.runs.resume_point import ResumePoint
from prime_train.trainers.of_spec import trainer_for
from tests.agent.checkpoints.saving import DCP, NOW_S, download, manifests, on_disk, point_of
from tests.builders import RUN_ID, spec

SPEC = spec(name="tiny", trainer={"kind": "areal", "command": "true"}, checkpoints={})
STATE = "checkpoints/areal/checkpoints/areal/tiny/run"
JSONS = ("step_info", "saver_info", "evaluator_info", "stats_logger_info", "checkpoint_info")
WRITES = 3 + len(JSONS) + 1
"""The files that a save writes: two shards with their metadata, and the information on the step."""


def save(work: Path, step: int, *, writes: int = WRITES) -> None:
    """Write the state of a step in place, or only its first files; what the previous save wrote remains of
    the others.
    """
    engine, info = work / STATE / "default/recover_checkpoint", work / STATE / "recover_info"
    shards = sorted(DCP.rglob("*.distcp"))
    (metadata,) = DCP.rglob(".metadata")
    made = [
        *((engine / shard.name, shard.read_bytes()) for shard in shards),
        (engine / ".metadata", metadata.read_bytes()),
    ]
    made += [
        (info / f"{name}.json", json.dumps({"global_step": step - 1}, indent=4).encode()) for name in JSONS
    ]
    made.append((info / "dataloader_info.pkl", pickle.dumps({"step": step})))
    assert len(made) == WRITES
    for at, (path, data) in enumerate(made[:writes]):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("r+b" if path.exists() else "wb") as file:
            file.truncate(0)
            file.write(data)
        os.utime(path, (1_000_000 + 100 * step + at, 1_000_000 + 100 * step + at))


def uploader(
    bucket: FolderBucket, disk: Path, *, attempt: int = 1, known: ResumePoint | None = None
) -> Uploader:
    return Uploader(
        bucket=bucket,
        spec=SPEC,
        run_id=RUN_ID,
        attempt=attempt,
        work=disk / "tree",
        stage=disk / "stage",
        known=known,
        clock=lambda: NOW_S,
        monotonic_s=time.monotonic,
    )


@pytest.fixture
def bucket(tmp_path: Path) -> FolderBucket:
    return FolderBucket(tmp_path / "bucket", make=True)


@pytest.mark.parametrize("writes", range(WRITES))
def test_a_state_that_is_half_overwritten_is_never_uploaded_and_the_copy_of_the_one_before_stays(
    tmp_path: Path, bucket: FolderBucket, writes: int
) -> None:
    made, work = uploader(bucket, tmp_path), tmp_path / "tree"
    save(work, 10)
    (first,) = made.scan(NOW_S)
    before = on_disk(work / STATE)
    save(work, 20, writes=writes)
    assert [local.step for local in made.scan(NOW_S)] == [10]
    manifest = made.upload(first, cancelled=lambda: False)
    assert download(bucket, manifest) == before


def test_a_state_that_is_overwritten_during_the_upload_of_its_copy_does_not_change_it(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    made, work = uploader(bucket, tmp_path), tmp_path / "tree"
    save(work, 10)
    (first,) = made.scan(NOW_S)
    before = on_disk(work / STATE)
    overwritten: list[int] = []

    def overwrite() -> bool:
        if not overwritten:
            overwritten.append(20)
            save(work, 20)
        return False

    manifest = made.upload(first, cancelled=overwrite)
    assert overwritten == [20]
    assert download(bucket, manifest) == before
    made.committed(manifest, NOW_S)
    (second,) = made.scan(NOW_S)
    made.committed(made.upload(second, cancelled=lambda: False), NOW_S)
    assert sorted(one.step for one in manifests(bucket)) == [10, 20]


def test_another_machine_finds_the_state_where_areal_looks_for_it(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    made, work = uploader(bucket, tmp_path), tmp_path / "tree"
    save(work, 10)
    expected = on_disk(work / STATE)
    manifest = made.upload(made.scan(NOW_S)[0], cancelled=lambda: False)
    other = tmp_path / "other"
    save(other / "tree", 3)
    folder = restore(bucket, RUN_ID, point_of(manifest), other / "tree/checkpoints")
    trainer = trainer_for(SPEC)
    stale = trainer.stale_outputs(SPEC)
    assert stale is not None
    assert move_aside(other / "tree", stale, 10, attempt=2) == ("checkpoints",)
    again = uploader(bucket, other, attempt=2, known=point_of(manifest))
    again.disregard_present()
    command = trainer.command(
        SPEC, checkpoints=str(other / "tree/checkpoints"), resume_step=10, resume_folder=str(folder)
    )
    subprocess.run(command, shell=True, check=True, timeout=60)
    assert on_disk(other / "tree" / STATE) == expected
    assert again.scan(NOW_S) == []
    save(other / "tree", 20)
    assert [local.step for local in again.scan(NOW_S)] == [20]
