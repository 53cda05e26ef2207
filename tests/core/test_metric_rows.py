"""Metrics as an agent stores them, read back."""

import pytest

from prime_train.outputs.metric_rows import MetricRow, metric_rows


def test_columns_that_come_later_are_read_and_empty_cells_left_out() -> None:
    lines = ["step,time_s,loss,reward", "1,10.5,0.5,", "step,time_s,loss,reward,lr", '2,11,0.25,1,"1e-3"']
    assert list(metric_rows(lines)) == [
        MetricRow(1, 10.5, {"loss": 0.5}),
        MetricRow(2, 11.0, {"loss": 0.25, "reward": 1.0, "lr": 0.001}),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "1",
        "x,1,1",
        "-1,1,1",
        "1e3,1,1",
        f"{10**20},1,1",
        "1,never,1",
        "1,nan,1",
        "--- only the first bytes are stored",
        '1,1,"un"closed"',
    ],
)
def test_a_row_that_is_not_understood_is_left_out(line: str) -> None:
    rows = list(metric_rows(["1,2,3", "step,time_s,loss", line, "7,1,0.5"]))
    assert [row.step for row in rows][-1] == 7
    assert len(rows) == 1 or rows[0].values == {}


def test_figures_that_are_not_finite_are_named_without_a_value() -> None:
    assert list(metric_rows(["step,time_s,loss,lr", "1,1,inf,2"])) == [
        MetricRow(1, 1.0, {"lr": 2.0}, ("loss",))
    ]
    assert list(metric_rows(["step,time_s,loss", "1,nan,2"])) == []
