"""Names of checkpoint folders, and when one is complete."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.spec.spec import RunSpec
from prime_train.trainers.of_spec import FileInfo, trainer_for
from tests.builders import spec

NOW_S = 10_000


def checkpointing(**changes: object) -> RunSpec:
    return spec(checkpoints=changes)


def step_of(pattern: str, name: str) -> int | None:
    made = checkpointing(pattern=pattern)
    return trainer_for(made).step_of(made, name)


def complete(made: RunSpec, *files: tuple[str, float], now_s: int = NOW_S) -> bool:
    return trainer_for(made).is_complete(
        made, [FileInfo(path, 10, mtime_s) for path, mtime_s in files], now_s
    )


@pytest.mark.parametrize(
    "name",
    [
        "step_10.bak",
        "old-step_10",
        "step_",
        "step_-1",
        "step_1e3",
        "step_10 ",
        " step_10",
        "Step_10",
        "step_10\n",
        "step_١٢",
        "",
    ],
)
def test_only_the_exact_name_has_a_step(name: str) -> None:
    assert step_of("step_{step}", name) is None


def test_names_with_a_tail_or_leading_zeros_follow_their_pattern() -> None:
    assert step_of("step_{step}", "step_10") == 10
    assert step_of("step_{step}", "step_0") == 0
    assert step_of("step_{step}", "step_010") == 10
    assert step_of("ckpt-{step}.dir", "ckpt-7.dir") == 7
    assert step_of("ckpt-{step}.dir", "ckpt-7xdir") is None
    assert step_of("iter_{step:07d}", "iter_0000120") == 120
    assert step_of("iter_{step:07d}", "iter_120") is None
    assert step_of("{step}of{step}", "12of12") == 12
    assert step_of("{step}of{step}", "12of13") is None


def test_a_step_the_bucket_has_no_name_for_is_none() -> None:
    assert step_of("step_{step}", "step_999999999999") == 999_999_999_999
    assert step_of("step_{step}", "step_1000000000000") is None


@given(
    step=st.integers(0, 10**12 - 1),
    pattern=st.sampled_from(["step_{step}", "{step}", "a{step}.b", "{step:06d}-x", "{{{step}}}"]),
)
def test_a_folder_is_found_by_the_name_it_was_given(step: int, pattern: str) -> None:
    made = checkpointing(pattern=pattern)
    trainer = trainer_for(made)
    assert trainer.step_of(made, trainer.folder_of(made, step)) == step


@given(st.text(max_size=30))
def test_any_name_may_lie_in_the_folder(name: str) -> None:
    step = step_of("step_{step}", name)
    assert step is None or name == f"step_{step}"


def test_a_sentinel_file_written_last_completes_a_checkpoint_at_once() -> None:
    made = checkpointing(sentinel="DONE")
    assert complete(made, ("weights", 9_998.5), ("DONE", 9_999.0))
    assert complete(made, ("weights", 9_999.0), ("DONE", 9_999.0))
    assert not complete(made, ("weights", 9_998.5))
    assert not complete(made, ("weights", 9_998.5), ("sub/DONE", 9_999.0))


def test_a_file_newer_than_the_sentinel_is_waited_for() -> None:
    made = checkpointing(sentinel="DONE", settled_s=30)
    assert not complete(made, ("DONE", 9_990.0), ("late", 9_990.5))
    assert complete(made, ("DONE", 9_969.0), ("late", 9_970.0))


def test_the_sentinel_of_an_earlier_save_in_place_proves_nothing() -> None:
    made = checkpointing(sentinel="DONE", in_place=True, settled_s=30)
    assert not complete(made, ("DONE", 1_000.0), ("weights", 1_000.5))
    assert complete(made, ("weights", 9_999.0), ("DONE", 9_999.5))


def test_without_a_sentinel_a_checkpoint_has_to_settle() -> None:
    made = checkpointing(settled_s=30)
    assert not complete(made, ("a", 1_000.0), ("b", 9_971.0))
    assert complete(made, ("a", 1_000.0), ("b", 9_970.0))
    assert not complete(made, ("a", 20_000.0))


def test_an_empty_folder_is_no_checkpoint() -> None:
    assert not complete(checkpointing(settled_s=1))


def test_required_files_have_to_be_there() -> None:
    made = checkpointing(sentinel="DONE", files=["weights", "sub/rng"])
    assert not complete(made, ("weights", 1.0), ("DONE", 2.0))
    assert complete(made, ("weights", 1.0), ("sub/rng", 1.0), ("DONE", 2.0))


def test_a_distributed_checkpoint_needs_metadata_no_older_than_its_shards() -> None:
    made = checkpointing(settled_s=1)
    shards = (("trainer/__0_0.distcp", 500.0), ("trainer/__1_0.distcp", 500.5))
    assert not complete(made, *shards)
    assert not complete(made, *shards, ("trainer/.metadata", 500.25))
    assert not complete(made, *shards, (".metadata", 501.0))
    assert complete(made, *shards, ("trainer/.metadata", 500.5))
    assert not complete(made, *shards, ("trainer/.metadata", 501.0), ("critic/__0_0.distcp", 400.0))
