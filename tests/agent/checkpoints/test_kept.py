"""Which checkpoints an attempt leaves in the bucket when it cleans up after a commit."""

import json
from pathlib import Path

import pytest

from prime_agent.checkpoints.local_disk_cleanup import free_disk_space
from prime_agent.checkpoints.units import Units
from prime_agent.checkpoints.uploader import Uploader
from prime_agent.trainer.step_metrics import Metrics
from prime_train.buckets.folder import FolderBucket
from prime_train.buckets.keys import mark_key
from prime_train.spec.checkpoint_names import CheckpointNames
from tests.agent.checkpoints.formats import tensors, zipped
from tests.agent.checkpoints.saving import NOW_S, manifests, save, ship, uploader, uploader_of, write
from tests.builders import RUN_ID, spec

LOST = Metrics(finite=False, not_finite_since=16)


@pytest.fixture
def bucket(tmp_path: Path) -> FolderBucket:
    return FolderBucket(tmp_path / "bucket", make=True)


def steps(bucket: FolderBucket) -> list[int]:
    return sorted(manifest.step for manifest in manifests(bucket))


def of_transformers(bucket: FolderBucket, disk: Path) -> Uploader:
    made = spec(
        trainer={"kind": "hf", "command": "train.py --output_dir {checkpoints}"}, checkpoints={"keep": 1}
    )
    return uploader_of(made, bucket, disk)


def save_as_transformers(work: Path, step: int, *, best: int) -> None:
    state = {"global_step": step, "best_model_checkpoint": f"checkpoints/checkpoint-{best}"}
    parts = {
        name: zipped(f"{name} {step}".encode()) for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth")
    }
    files = {
        "model.safetensors": tensors(f"weights {step}".encode() * 9),
        **parts,
        "trainer_state.json": json.dumps(state).encode(),
    }
    write(work / "checkpoints" / f"checkpoint-{step}", files)


def test_with_keep_1_the_trainers_best_and_its_last_checkpoint_are_both_kept(
    bucket: FolderBucket, tmp_path: Path
) -> None:
    made = of_transformers(bucket, tmp_path)
    for step, best in ((5, 5), (10, 5), (15, 5)):
        save_as_transformers(tmp_path / "tree", step, best=best)
        assert ship(made).best_step == best
    assert steps(bucket) == [5, 15]
    save_as_transformers(tmp_path / "tree", 20, best=20)
    ship(made)
    assert steps(bucket) == [20]


def test_the_trainers_best_checkpoint_that_was_passed_over_is_uploaded_after_the_newest(
    bucket: FolderBucket, tmp_path: Path
) -> None:
    made = of_transformers(bucket, tmp_path)
    for step in (5, 10, 15):
        save_as_transformers(tmp_path / "tree", step, best=5)
    assert ship(made).step == 15
    (left,) = made.scan(NOW_S)
    assert (left.step, left.is_again, made.owes_best) == (5, True, True)
    made.committed(made.upload(left, cancelled=lambda: False), NOW_S)
    assert (steps(bucket), made.owes_best, made.scan(NOW_S)) == ([5, 15], False, [])


def test_a_full_disk_keeps_the_best_checkpoint_until_it_is_uploaded(
    bucket: FolderBucket, tmp_path: Path
) -> None:
    made, tree = of_transformers(bucket, tmp_path), tmp_path / "tree"
    for step in (5, 10, 15):
        save_as_transformers(tree, step, best=5)
    ship(made)

    def removed() -> list[int]:
        units = Units(CheckpointNames("checkpoint-{step}", folder="checkpoints"), tree)
        return free_disk_space(
            units=units,
            committed_step=15,
            keep_newest=1,
            max_disk_gib=1e-12,
            disk_path=tmp_path,
            share_max=1.0,
            owed=made.owed_steps,
        )

    assert removed() == [10]
    (left,) = made.scan(NOW_S)
    made.committed(made.upload(left, cancelled=lambda: False), NOW_S)
    assert removed() == [5]


def test_a_best_checkpoint_from_before_a_resume_or_that_is_gone_is_not_waited_for(
    bucket: FolderBucket, tmp_path: Path
) -> None:
    made = of_transformers(bucket, tmp_path)
    save_as_transformers(tmp_path / "tree", 15, best=10)
    ship(made)
    assert (made.owes_best, made.scan(NOW_S)) == (True, [])


def test_checkpoints_that_are_saved_after_the_loss_was_lost_push_out_none_from_before(
    bucket: FolderBucket, tmp_path: Path
) -> None:
    made = uploader(bucket, tmp_path, keep=2)
    for step in (5, 10, 15, 20, 25, 30):
        save(tmp_path / "tree", step)
        (local,) = made.scan(NOW_S)
        manifest = made.upload(
            local, cancelled=lambda: False, metrics=Metrics(loss=1.0, finite=True) if step < 16 else LOST
        )
        made.committed(manifest, NOW_S)
    assert steps(bucket) == [10, 15, 30]
    newest = max(manifests(bucket), key=lambda manifest: manifest.step)
    assert (newest.finite, newest.not_finite_since) == (False, 16)


def test_a_proven_checkpoint_is_kept_until_a_newer_one_is_proven(
    bucket: FolderBucket, tmp_path: Path
) -> None:
    made = uploader(bucket, tmp_path, keep=1)
    save(tmp_path / "tree", 5)
    ship(made)
    bucket.put(mark_key(RUN_ID, 5, 1, "proven"), b"")
    for step in (10, 15):
        save(tmp_path / "tree", step)
        ship(made)
    assert steps(bucket) == [5, 15]
    bucket.put(mark_key(RUN_ID, 15, 1, "proven"), b"")
    save(tmp_path / "tree", 20)
    ship(made)
    assert steps(bucket) == [15, 20]
