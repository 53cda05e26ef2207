"""Files that each process writes: a missing one is seen by the names of the others."""

import pytest

from prime_train.checkpoints.ranks import missing_rank, missing_state

STATES = [f"global_step10/bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt" for rank in range(4)]
MODEL = "global_step10/mp_rank_00_model_states.pt"


@pytest.mark.parametrize(
    ("paths", "workers", "missing"),
    [
        (["rank_0.pt", "rank_1.pt"], None, None),
        (["rank_0.pt", "rank_2.pt"], None, "rank_1.pt"),
        (["rank_1.pt", "rank_2.pt"], None, None),
        (["shard-rank00002.bin", "shard-rank00003.bin"], None, "shard-rank00000.bin"),
        (["rank_0.pt", "rank_1.pt"], 4, "rank_2.pt"),
        (["rank_0.pt"], 4, None),
        (["rng_rank_3.pt"], None, None),
        (
            ["actor/model_world_size_4_rank_0.pt", "actor/model_world_size_4_rank_1.pt"],
            None,
            "actor/model_world_size_4_rank_2.pt",
        ),
        (
            ["model-00001-of-00003.safetensors", "model-00003-of-00003.safetensors"],
            None,
            "model-00002-of-00003.safetensors",
        ),
        (["model-00000-of-00002.bin", "model-00001-of-00002.bin"], None, None),
        (["frank_0.pt", "frank_2.pt"], None, None),
        (["step_10-of-999999.pt"], None, None),
    ],
)
def test_a_gap_in_the_files_of_processes_is_seen(
    paths: list[str], workers: int | None, missing: str | None
) -> None:
    assert missing_rank(paths, workers=workers) == missing


def test_deepspeed_has_one_state_a_process_and_a_model_for_each_part() -> None:
    assert missing_state([*STATES, MODEL]) is None
    assert missing_state([*STATES[:2], STATES[3], MODEL]) == STATES[2]
    assert missing_state([*STATES]) == MODEL
    assert missing_state([*STATES[:3], MODEL], workers=4) == STATES[3]
    assert missing_state([MODEL]) is None
    two = [path.replace("mp_rank_00", "mp_rank_01") for path in [*STATES[:3], MODEL]]
    assert missing_state([*STATES, MODEL, *two]) == STATES[3].replace("mp_rank_00", "mp_rank_01")
