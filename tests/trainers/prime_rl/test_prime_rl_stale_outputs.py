"""What must be moved out of prime-rl's folder before it is launched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.trainers.prime_rl.stale_outputs import broadcasts_to_remove, to_move_aside


def complete(step: int) -> list[str]:
    folder = f"checkpoints/step_{step}"
    files = [
        f"{folder}/trainer/.metadata",
        f"{folder}/trainer/__0_0.distcp",
        f"{folder}/orchestrator/progress.pt",
    ]
    return [folder, f"{folder}/trainer", f"{folder}/orchestrator", *files]


def sources(listing: list[str], resume_step: int | None) -> list[str]:
    return [move.source for move in to_move_aside(listing, resume_step, attempt=3)]


def test_checkpoints_up_to_the_one_that_is_resumed_stay() -> None:
    assert (
        sources(
            [
                "checkpoints",
                *complete(5),
                *complete(10),
                "metrics.jsonl",
                "logs/attempt_1",
                "configs/trainer.json",
            ],
            10,
        )
        == []
    )


def test_checkpoints_beyond_it_go() -> None:
    assert sources([*complete(10), *complete(15)], 10) == ["checkpoints/step_15"]


def test_halves_go_whatever_their_step() -> None:
    orchestrators = ["checkpoints/step_5", "checkpoints/step_5/orchestrator/progress.pt"]
    trainers = [
        "checkpoints/step_7",
        "checkpoints/step_7/trainer/.metadata",
        "checkpoints/step_12/trainer/__0_0.distcp",
    ]
    assert sources([*complete(10), *orchestrators, *trainers, "checkpoints/step_12"], 10) == [
        "checkpoints/step_12",
        "checkpoints/step_5",
        "checkpoints/step_7",
    ]


@pytest.mark.parametrize("name", ["step_10.tmp", "step_10_2", "step_", "step_x", "step_010"])
def test_names_it_would_misread_go(name: str) -> None:
    listing = [
        *complete(10),
        f"checkpoints/{name}",
        f"rollouts/{name}",
        "checkpoints/.incoming-10",
        "checkpoints/notes",
    ]
    assert sources(listing, 10) == [f"checkpoints/{name}", f"rollouts/{name}"]


def test_broadcasts_go_as_a_whole_and_rollouts_are_left_to_it() -> None:
    listing = [
        *complete(10),
        "broadcasts",
        "broadcasts/step_9",
        "broadcasts/step_9/STABLE",
        "rollouts/step_11",
        "rollouts/step_4",
    ]
    assert sources(listing, 10) == ["broadcasts"]


def test_the_way_to_the_logs_of_a_dead_launch_goes_and_the_logs_stay() -> None:
    assert sources([*complete(10), "logs/attempt_1/trainer.log", "logs/latest"], 10) == ["logs/latest"]


def test_the_checkpoint_that_is_resumed_is_never_moved() -> None:
    assert sources(["checkpoints/step_10"], 10) == []


def test_without_anything_to_resume_all_of_an_earlier_run_goes() -> None:
    listing = [
        "configs",
        "configs/rl.toml",
        "rl.sbatch",
        "job_7.log",
        *complete(5),
        "metrics.jsonl",
        "logs/attempt_1",
        ".aside",
    ]
    assert sources(listing, None) == [".aside", "checkpoints", "logs", "metrics.jsonl"]
    assert sources([], None) == []


NAMES = st.sampled_from(
    [
        "checkpoints",
        "broadcasts",
        "rollouts",
        "logs",
        "step_3",
        "step_10.tmp",
        "step_1_2",
        "trainer",
        ".metadata",
        "x",
    ]
)


@given(
    st.lists(st.lists(NAMES, min_size=1, max_size=4).map("/".join), max_size=12),
    st.none() | st.integers(1, 12),
)
def test_new_names_never_look_like_steps_and_never_meet(listing: list[str], step: int | None) -> None:
    moves = to_move_aside(listing, step, attempt=3)
    targets = [move.target for move in moves]
    assert len(set(targets)) == len(targets)
    assert all(target.startswith("../.aside-e3/") for target in targets)
    assert not any(part.startswith("step_") for target in targets for part in target.split("/"))


def test_only_the_newest_broadcasts_are_needed() -> None:
    names = ["step_8", "step_9", "step_5", "step_10", "step_20", "step_x", "STABLE"]
    assert broadcasts_to_remove(names, 10) == ("step_5", "step_8")
    assert broadcasts_to_remove(["step_9", "step_10"], 10) == ()
