"""Which runs a filter by state, name, tag and age matches."""

from dataclasses import replace

import pytest

from prime_train.errors import UsageError
from prime_train.runs.filter import RunFilter, matching
from prime_train.runs.run import RunState
from prime_train.status.status import statuses
from prime_train.stores.memory import MemoryStore
from tests.builders import T0_S, run, spec

RUNS = (
    replace(
        run(RunState.TRAINING),
        run_id="qwen-sft-x4k2p",
        spec=spec(name="qwen-sft", tags=("paper", "ablation")),
        created_s=T0_S,
    ),
    replace(
        run(RunState.QUEUED),
        run_id="qwen-rl-aaaaa",
        spec=spec(name="qwen-rl", tags=("paper",)),
        created_s=T0_S - 86400,
    ),
    replace(
        run(RunState.FAILED),
        run_id="llama-sft-bbbbb",
        spec=spec(name="llama-sft"),
        created_s=T0_S - 3 * 86400,
    ),
)


def chosen(**wanted: object) -> list[str]:
    return [one.run_id.rpartition("-")[0] for one in matching(RUNS, RunFilter(**wanted), T0_S)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, ["qwen-sft", "qwen-rl", "llama-sft"]),
        ({"states": ("training",)}, ["qwen-sft"]),
        ({"states": ("failed", "queued")}, ["qwen-rl", "llama-sft"]),
        ({"states": ("active",)}, ["qwen-sft", "qwen-rl"]),
        ({"states": ("ended",)}, ["llama-sft"]),
        ({"name": "sft"}, ["qwen-sft", "llama-sft"]),
        ({"name": "qwen-*"}, ["qwen-sft", "qwen-rl"]),
        ({"name": "*-sft"}, ["qwen-sft", "llama-sft"]),
        ({"name": "sft*"}, []),
        ({"name": "QWEN*"}, []),
        ({"name": "*-x4k2?"}, ["qwen-sft"]),
        ({"tags": ("paper",)}, ["qwen-sft", "qwen-rl"]),
        ({"tags": ("paper", "ablation")}, ["qwen-sft"]),
        ({"tags": ("pap",)}, []),
        ({"since_s": 86400}, ["qwen-sft", "qwen-rl"]),
        ({"since_s": 86399}, ["qwen-sft"]),
        ({"states": ("active",), "tags": ("paper",), "name": "rl", "since_s": 2 * 86400}, ["qwen-rl"]),
    ],
)
def test_every_part_of_a_choice_has_to_hold(wanted: dict[str, object], expected: list[str]) -> None:
    assert chosen(**wanted) == expected


def test_a_word_that_is_no_state_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="'running' is not a run state") as caught:
        chosen(states=("running",))
    assert caught.value.fix == f"use one of {', '.join(state.value for state in RunState)}, active, ended"


def test_what_a_limit_leaves_out_is_counted_and_the_newest_stay() -> None:
    store = MemoryStore(lambda: T0_S)
    for one in RUNS:
        assert store.create(one)
    found = statuses(store, RunFilter(name="sft"), runs_max=1)
    assert ([one.run for one in found.runs], found.left_out) == (["qwen-sft-x4k2p"], 1)
    assert found.runs[0].row()["tags"] == ("paper", "ablation")
    assert statuses(store).left_out == 0
