"""What lies in and near the checkpoint folder, on a real disk: every way in which no checkpoint comes to be
has its words.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prime_agent.checkpoints.promise import Seen, text_of
from prime_agent.checkpoints.surroundings import Surroundings
from prime_agent.checkpoints.uploader import Uploader
from prime_train.buckets.folder import FolderBucket
from prime_train.checkpoints.manifest import FILES_MAX
from prime_train.spec.spec import RunSpec
from prime_train.trainers.of_spec import trainer_for
from tests.agent.checkpoints.saving import NOW_S, contents, save, uploader, write
from tests.builders import spec

CHECKPOINTS: dict[str, Any] = {"sentinel": "COMPLETE", "every_steps": 10}
WANTED: RunSpec = spec(checkpoints=CHECKPOINTS)


@pytest.fixture
def bucket(tmp_path: Path) -> FolderBucket:
    return FolderBucket(tmp_path / "bucket", make=True)


def observer(work: Path, *outputs: str) -> Surroundings:
    work.mkdir(parents=True, exist_ok=True)
    trainer = trainer_for(WANTED)
    made = Surroundings(
        work, WANTED.checkpoints.folder, step_of=lambda name: trainer.step_of(WANTED, name), outputs=outputs
    )
    made.disregard_present()
    return made


def look(made: Surroundings, shipping: Uploader, *, above: int = 0) -> Seen:
    assert not shipping.scan(NOW_S)
    return made.look(
        shipping.units(), shipping.refusals(NOW_S, above=above), above=above, deep=True, at_once=True
    )


OUTSIDE = Path(__file__).parent
"""A folder that is not the machine's: links that stay on the machine are followed."""


def linked(work: Path, step: int) -> None:
    folder = save(work, step)
    folder.rename(folder.with_name(f"moved-{step}"))
    folder.symlink_to(OUTSIDE)


def with_linked_folder(work: Path, step: int) -> None:
    (save(work, step) / "tokenizer").symlink_to(OUTSIDE)


def without_sentinel(work: Path, step: int) -> None:
    (save(work, step) / "COMPLETE").unlink()


def damaged(work: Path, step: int) -> None:
    save(work, step, contents(step) | {"model.safetensors": b"\xff" * 64})


def elsewhere(work: Path, step: int) -> None:
    write(work / "elsewhere" / f"step_{step}", contents(step))


def padded(work: Path, step: int) -> None:
    write(work / "checkpoints" / f"ckpt-{step:06}", contents(step))


def single_file(work: Path, step: int) -> None:
    write(work / "checkpoints", {f"ckpt-{step:06}.pt": b"weights"})


WAYS: dict[str, tuple[Callable[[Path, int], None], str]] = {
    "a step's folder is a link": (linked, "step_20 is a link to a folder outside the machine's folder"),
    "a link to a folder inside": (with_linked_folder, "step_20/tokenizer is a link to a folder outside"),
    "no sentinel": (without_sentinel, "step_20 has no COMPLETE (checkpoints.sentinel)"),
    "invalid safetensors": (
        damaged,
        "step_20 is not uploaded: model.safetensors: is truncated in its header",
    ),
    "another folder": (
        elsewhere,
        "no file was written in checkpoints/; 2 in elsewhere/ look like checkpoints, the newest is step_20",
    ),
    "another pattern": (
        padded,
        "2 entries in checkpoints/, none matches step_{step}; the newest is ckpt-000020",
    ),
    "single files": (
        single_file,
        "2 entries in checkpoints/, none matches step_{step}; the newest is ckpt-000020.pt",
    ),
}


@pytest.mark.parametrize(("way", "words"), WAYS.values(), ids=WAYS)
def test_each_way_in_which_no_checkpoint_comes_to_be_is_named_with_an_example(
    way: Callable[[Path, int], None], words: str, tmp_path: Path, bucket: FolderBucket
) -> None:
    work, shipping = tmp_path / "tree", uploader(bucket, tmp_path, **CHECKPOINTS)
    made = observer(work)
    for step in (10, 20):
        way(work, step)
        for number, path in enumerate(sorted((work / "checkpoints").glob("*"))):
            os.utime(path, (1_000_000 + number, 1_000_000 + number), follow_symlinks=False)
    seen = look(made, shipping)
    assert seen.begun >= 2
    assert words in text_of(WANTED, seen, good_step=0, reached=40)


LAUNCHES: dict[str, tuple[str, str, str]] = {
    "versions": ("logs/version_*/checkpoints", "logs/version_0/checkpoints", "logs/version_1/checkpoints"),
    "numbered": ("runs/exp*/weights", "runs/exp/weights", "runs/exp2/weights"),
    "dated": ("out/*", "out/2026-01-01", "out/2026-01-02"),
}


@pytest.mark.parametrize(("folder", "former", "present"), LAUNCHES.values(), ids=LAUNCHES)
def test_entries_of_the_new_launchs_folder_that_match_nothing_are_named_with_that_folder(
    folder: str, former: str, present: str, tmp_path: Path, bucket: FolderBucket
) -> None:
    work = tmp_path / "tree"
    checkpoints: dict[str, Any] = {"folder": folder, "pattern": "step_{step}.pt", "every_steps": 10}
    wanted, shipping = spec(checkpoints=checkpoints), uploader(bucket, tmp_path, **checkpoints)
    trainer = trainer_for(wanted)
    made = Surroundings(work, folder, step_of=lambda name: trainer.step_of(wanted, name), outputs=())
    # restored, or packed with the working tree
    write(work / former, {"ckpt-000010.pt": b"former", "step_10.pt": b"former"})
    made.disregard_present()
    assert made.look(frozenset(), (), above=10, deep=False, at_once=True).is_empty
    write(work / present, {"ckpt-000020.pt": b"20", "ckpt-000030.pt": b"30"})
    for number, path in enumerate(sorted((work / present).iterdir())):
        os.utime(path, (2e9 + number, 2e9 + number))
    for deep in (False, True):
        seen = made.look(shipping.units(), (), above=10, deep=deep, at_once=True)
        assert (seen.begun, seen.elsewhere) == (2, None)
        text = text_of(wanted, seen, good_step=10, reached=40)
        assert text.startswith(
            f"2 entries in {present}/, none matches step_{{step}}.pt; the newest is ckpt-000030.pt"
        ), text


def test_the_files_of_a_checkpoint_are_no_strangers(tmp_path: Path, bucket: FolderBucket) -> None:
    checkpoints: dict[str, Any] = {
        "folder": "runs/exp*",
        "pattern": "last.pt",
        "also": ["ema.pt"],
        "every_steps": 10,
    }
    wanted, shipping = spec(checkpoints=checkpoints), uploader(bucket, tmp_path, **checkpoints)
    trainer = trainer_for(wanted)
    made = Surroundings(
        tmp_path / "tree", "runs/exp*", step_of=lambda name: trainer.step_of(wanted, name), outputs=()
    )
    made.disregard_present()
    write(tmp_path / "tree" / "runs/exp2", {"last.pt": b"1", "ema.pt": b"1"})
    assert made.look(shipping.units(), (), above=0, deep=True, at_once=True).is_empty


def test_a_checkpoint_of_too_many_files_is_named(
    tmp_path: Path, bucket: FolderBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prime_agent.checkpoints.listing.FILES_MAX", 3)
    made = observer(tmp_path / "tree")
    save(tmp_path / "tree", 10)
    text = text_of(WANTED, look(made, uploader(bucket, tmp_path, **CHECKPOINTS)), good_step=0, reached=40)
    assert "step_10 is not uploaded: step_10 has more than" in text
    assert FILES_MAX > 3


def test_nothing_at_all_is_seen_as_nothing(tmp_path: Path, bucket: FolderBucket) -> None:
    assert look(observer(tmp_path / "tree"), uploader(bucket, tmp_path, **CHECKPOINTS)).is_empty


def test_what_was_there_before_the_trainer_and_what_is_an_output_is_left_out(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    work = tmp_path / "tree"
    for step in (10, 20):
        elsewhere(work, step)
        padded(work, step)
    made = observer(work, "models/**")
    write(work / "models", {"model-10.pt": b"1", "model-20.pt": b"2"})
    write(work / "data", {"shard-00001.bin.txt": b"1"})
    assert look(made, uploader(bucket, tmp_path, **CHECKPOINTS)).is_empty


def test_a_name_with_control_characters_has_no_effect(tmp_path: Path, bucket: FolderBucket) -> None:
    made = observer(tmp_path / "tree")
    write(tmp_path / "tree" / "checkpoints", {"ckpt-\x1b[2J-10.pt": b"1"})
    text = text_of(WANTED, look(made, uploader(bucket, tmp_path, **CHECKPOINTS)), good_step=0, reached=40)
    assert "\x1b" not in text
    assert "\\x1b[2J" in text
