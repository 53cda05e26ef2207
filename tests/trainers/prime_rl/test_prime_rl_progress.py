"""Progress of prime-rl, from its metrics and its console."""

import json

from hypothesis import given
from hypothesis import strategies as st

from prime_train.trainers.of_spec import Progress, trainer_for
from prime_train.trainers.prime_rl.progress import PrimeRlReader, merged
from tests.trainers.prime_rl.prime_rl_spec import prime_rl_spec


def row(step: int, **figures: object) -> str:
    return json.dumps(
        {"step": step, "time": 1.5, **{name.replace("__", "/"): value for name, value in figures.items()}}
    )


def read(*lines: str) -> list[Progress]:
    made = prime_rl_spec()
    reader = trainer_for(made).reader(made)
    return [found for line in lines if (found := reader.read(line)) is not None]


def test_only_what_the_trainer_has_made_is_progress() -> None:
    assert (
        read(
            row(8, reward__all__mean=0.5, progress__samples=128),
            row(8, perf__mfu=0.3),
            row(8, time__step=1.0),
        )
        == []
    )
    assert read(row(8, loss__mean=0.25)) == [Progress(8, 0.25)]


def test_a_reward_waits_for_the_step_it_belongs_to() -> None:
    ahead, further = row(7, reward__all__mean=0.5), row(8, reward__all__mean=0.75)
    assert read(ahead, further, row(7, loss__mean=0.25)) == [Progress(7, 0.25, 0.5)]
    assert read(row(7, loss__mean=0.25), row(7, reward__mean=0.5)) == [
        Progress(7, 0.25),
        Progress(7, None, 0.5),
    ]


def test_several_rows_of_a_step_tell_of_one_step() -> None:
    found = read(row(3, optim__lr=1e-6), row(3, loss__mean=0.5), row(3, time__step=2.0))
    assert {made.step for made in found} == {3}
    assert found[-1].loss == 0.5


def test_a_loss_that_is_no_number_is_left_out_of_its_row_and_the_step_still_counts() -> None:
    assert read(row(3, optim__lr=1e-6)) == [Progress(3)]


def test_the_trainers_line_on_the_console_is_progress_and_the_orchestrators_is_not() -> None:
    line = (
        "\x1b[32m12:00:01 SUCCESS\x1b[0m Step 7 |   1.00s | Loss 0.2500 | Entropy 0.3 | LR 1.00e-06 | "
        "Throughput 10 tokens/s"
    )
    ahead = "12:00:00 SUCCESS Step 7 | Time: 1.00s | Reward: 0.5000 | Throughput: 10.0 tokens/s"
    assert read(ahead) == []
    assert read(ahead, line) == [Progress(7, 0.25, 0.5)]
    assert read("DEBUG Micro Step 3/8 | Loss 0.1 | Entropy 0.2", "DEBUG Starting training step 7") == []
    assert read("SUCCESS Step 7 | 1s | Loss nan | LR 1e-6") == [Progress(7)]


def test_a_json_log_says_the_same() -> None:
    assert read(json.dumps({"level": "SUCCESS", "message": "Step 7 | 1.0s | Loss 0.2500 | LR 1e-6"})) == [
        Progress(7, 0.25)
    ]
    assert read(json.dumps({"message": {"a": 1}}), "{", '{"message": 3}') == []


@given(st.lists(st.text(max_size=60), max_size=5))
def test_any_line_may_stand_there(lines: list[str]) -> None:
    reader = PrimeRlReader()
    for line in lines:
        reader.read(line)


def test_rewards_nobody_asks_for_do_not_pile_up() -> None:
    reader = PrimeRlReader()
    for step in range(1000):
        reader.read(row(step, reward__all__mean=0.5))
    assert reader.read(row(3, loss__mean=0.25)) == Progress(3, 0.25)
    assert reader.read(row(999, loss__mean=0.25)) == Progress(999, 0.25, 0.5)


def test_rows_of_both_components_and_of_two_launches_are_one_row_a_step_and_the_last_counts() -> None:
    first = [row(1, loss__mean=0.9), row(1, reward__all__mean=0.1), row(2, loss__mean=0.8)]
    again = [row(2, loss__mean=0.7), "cut off {", row(3, loss__mean=0.6)]
    rows = merged([*first, *again])
    assert list(rows) == [1, 2, 3]
    assert (rows[1]["loss/mean"], rows[1]["reward/all/mean"]) == (0.9, 0.1)
    assert rows[2]["loss/mean"] == 0.7
