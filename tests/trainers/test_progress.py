"""Progress parsed from real lines, and from arbitrary text."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.trainers.of_spec import LineReader, Progress, trainer_for
from tests.builders import spec

TITAN = r"step: +(?P<step>[\d,]+) +loss: +(?P<loss>\S+)"
KINDS: list[dict[str, Any]] = [
    {},
    {"kind": "csv"},
    {"kind": "regex", "pattern": r"step=(?P<step>\S+)(?: loss=(?P<loss>\S+))?"},
]


def reader(**progress: Any) -> LineReader:
    made = spec(trainer={"command": "x", "progress": progress})
    return trainer_for(made).reader(made)


def test_a_json_line_tells_step_loss_and_reward() -> None:
    assert reader().read('{"step": 12, "loss": 1.5, "reward": 0, "lr": 0.1}\n') == Progress(12, 1.5, 0.0)
    assert reader(step="global_step", loss="train/loss").read(
        '{"global_step": 3, "train/loss": "2.5"}'
    ) == Progress(3, 2.5)


def test_colours_and_launchers_prefixes_do_not_hide_a_line() -> None:
    assert reader().read('\x1b[32m[default0]:\x1b[0m{"step": 12}\x1b[0m') == Progress(12)
    assert reader().read('[rank3]: {"step": 12}') == Progress(12)


def test_csv_rows_follow_their_header() -> None:
    csv = reader(kind="csv")
    assert csv.read("10,2.5,0.1,1000") is None
    assert csv.read("step,loss,lr,toks_per_s") is None
    assert csv.read("10,2.5,0.1,1000") == Progress(10, 2.5)
    assert csv.read("11,2.4") is None
    assert csv.read("saving checkpoint, please wait, all, of you") is None


def test_a_restarted_trainer_may_write_another_header() -> None:
    csv = reader(kind="csv")
    for line in ("step,loss", "1,2.5", "step,loss"):
        csv.read(line)
    assert csv.read("2,2.25") == Progress(2, 2.25)
    csv.read("reward, step ,loss")
    assert csv.read("0.5, 3, 2") == Progress(3, 2.0, 0.5)


def test_a_regular_expression_finds_the_step_in_a_real_log_line() -> None:
    line = (
        "[titan] 2026-08-21 10:00:00,123 - root - INFO - \x1b[31mstep: 1,210  \x1b[32mloss:  8.14231  "
        "\x1b[33mmemory:  0.51GiB(0.54%)  \x1b[34mtps: 12,345\x1b[39m"
    )
    assert reader(kind="regex", pattern=TITAN).read(line) == Progress(1210, 8.14231)
    assert reader(kind="regex", pattern=TITAN).read("loading dataset") is None


def test_of_a_progress_bar_the_last_state_counts() -> None:
    bar = " 1%| | 10/500 [00:01<1:00]\r 2%| | 11/500 [00:02<0:59]"
    assert reader(kind="regex", pattern=r"(?P<step>\d+)/500 \[").read(bar) == Progress(11)


@pytest.mark.parametrize(
    "step",
    [
        "NaN",
        "-1",
        "1e300",
        "Infinity",
        "1.5",
        "true",
        "null",
        '"twelve"',
        "[]",
        "{}",
        "1000000000000",
        "9" * 5000,
        '"' + "9" * 5000 + '"',
    ],
)
def test_what_is_no_step_is_refused(step: str) -> None:
    assert reader().read(f'{{"step": {step}, "loss": 1}}') is None


@pytest.mark.parametrize(
    "step", ["nan", "-1", "1e300", "inf", "1.5", "", "twelve", "1000000000000", "9" * 5000]
)
def test_what_is_no_step_is_refused_in_csv_and_in_a_match(step: str) -> None:
    csv = reader(kind="csv")
    csv.read("step,loss")
    assert csv.read(f"{step},1") is None
    assert reader(**KINDS[2]).read(f"step={step} loss=1") is None


def test_a_loss_that_is_no_number_leaves_the_step() -> None:
    assert reader().read('{"step": 5, "loss": NaN, "reward": "none"}') == Progress(5)


@pytest.mark.parametrize("kind", KINDS)
@given(
    lines=st.lists(
        st.text(max_size=60)
        | st.sampled_from(["step,loss", "step=3", '{"step":4}', "7,1", "[" * 9000, "{" * 9000, '"']),
        max_size=8,
    )
)
def test_whatever_is_written_nothing_is_raised(kind: dict[str, Any], lines: list[str]) -> None:
    found = reader(**kind)
    for line in lines:
        progress = found.read(line)
        assert progress is None or 0 <= progress.step < 10**12


@given(step=st.integers(0, 10**12 - 1), loss=st.floats(allow_nan=False, allow_infinity=False))
def test_a_true_step_is_never_lost(step: int, loss: float) -> None:
    csv = reader(kind="csv")
    csv.read("step,loss")
    assert reader().read(json.dumps({"step": step, "loss": loss})) == Progress(step, loss)
    assert csv.read(f"{step},{loss!r}") == Progress(step, loss)


@pytest.mark.parametrize(
    "value", ["NaN", "nan", "Infinity", "-Infinity", "inf", "-inf", '"nan"', '"-inf"', "1e999"]
)
def test_a_loss_that_is_not_finite_is_seen_however_it_is_written_in_json(value: str) -> None:
    row = reader().read(f'{{"step": 16, "loss": {value}, "lr": 0.1}}')
    assert row == Progress(16)
    assert row is not None
    assert "loss" in row.not_finite
    assert row.others["lr"] == 0.1


@pytest.mark.parametrize("value", ["nan", "NaN", "inf", "-inf", "Infinity"])
def test_a_loss_that_is_not_finite_is_seen_in_csv_and_by_a_pattern(value: str) -> None:
    csv, regex = reader(kind="csv"), reader(kind="regex", pattern=r"step=(?P<step>\d+) loss=(?P<loss>\S+)")
    csv.read("step,loss")
    for row in (csv.read(f"16,{value}"), regex.read(f"step=16 loss={value}")):
        assert row is not None
        assert (row.step, row.loss, row.not_finite) == (16, None, frozenset({"loss"}))


def test_a_loss_of_0_beside_a_gradient_that_is_not_finite_is_none() -> None:
    row = reader(grad_norm="gnorm").read('{"step": 16, "loss": 0.0, "gnorm": NaN}')
    assert row is not None
    assert (row.loss, row.not_finite) == (None, frozenset({"loss", "gnorm"}))
    fine = reader(grad_norm="gnorm").read('{"step": 16, "loss": 0.0, "gnorm": 0.5}')
    assert fine is not None
    assert (fine.loss, fine.grad_norm) == (0.0, 0.5)
    skipped = reader().read('{"step": 3, "loss": 2.0, "grad_norm": Infinity}')  # a step that the scaler skips
    assert skipped is not None
    assert skipped.loss == 2.0


def test_the_learning_rate_is_read_under_its_configured_name() -> None:
    row = reader(learning_rate="lr").read('{"step": 16, "loss": 1, "lr": 0.25}')
    assert row is not None
    assert (row.learning_rate, row.others["lr"]) == (0.25, 0.25)


def test_words_in_a_text_are_not_taken_for_numbers() -> None:
    assert reader().read('{"step": 16, "note": "nan, inf", "loss": 2}') == Progress(16, 2.0)
    assert reader().read('{"step": 16, "note": nan inf}') is None
