"""What `status` shows of a machine's GPUs."""

import io
import json
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from prime_train.runs.run import RunState
from prime_train.runs.store import RunRecord
from prime_train.runs.wire import Gpus
from prime_train.status.run_status import RunFacts, status_of
from prime_train.terminal.tables import one_run
from tests import builders as b

EIGHT = {"count": 8, "util_low_pct": 35.2, "util_high_pct": 98.0, "hottest_c": 74, "power_w": 4200.4}
TOLD_S = 1000


def record(**figures: Any) -> RunRecord:
    """Return a run whose last heartbeat, at `TOLD_S`, reported these figures."""
    return b.record(heartbeat=b.heartbeat(gpus=Gpus(**figures)), heartbeat_s=TOLD_S)


def shown(found: RunRecord, now_s: int) -> str:
    text = io.StringIO()
    Console(file=text, width=200).print(one_run(status_of(RunFacts(found, now_s)), []))
    return next(
        (
            line.split("GPUs", 1)[1].strip()
            for line in text.getvalue().splitlines()
            if line.startswith("GPUs")
        ),
        "",
    )


@pytest.mark.parametrize(
    ("figures", "line"),
    [
        (EIGHT, "8, 35 to 98 % busy, hottest 74 C, 4200 W"),
        ({"count": 1, "util_low_pct": 90.0, "util_high_pct": 90.0}, "1, 90 % busy"),
        ({"count": 2, "idle": 1, "util_low_pct": 0.0, "util_high_pct": 7.0}, "2, 0 to 7 % busy, 1 idle"),
        ({"count": 2}, "2"),
        (
            {"count": 2, "age_s": 300, "note": "the GPU driver hangs"},
            "2, 5 min 30 s ago; the GPU driver hangs",
        ),
        ({"note": "NVML: Driver Not Loaded"}, "NVML: Driver Not Loaded"),
    ],
)
def test_one_line_tells_of_all_gpus(figures: dict[str, Any], line: str) -> None:
    assert shown(record(**figures), TOLD_S + 30) == line


def test_the_mean_and_the_memory_of_all_gpus_are_shown() -> None:
    found = b.record(
        heartbeat=b.heartbeat(
            gpus=Gpus(count=8, util_low_pct=35.2, util_high_pct=98.0),
            gpu_util_pct=66.5,
            gpu_mem_mib=320_000.0,
        ),
        heartbeat_s=TOLD_S,
    )
    assert shown(found, TOLD_S) == "8, 35 to 98 % busy, 66 % on average, 312.5 GiB in use"


def test_json_has_each_figure_and_their_age() -> None:
    row = json.loads(json.dumps(status_of(RunFacts(record(**EIGHT, age_s=5), TOLD_S + 30)).row()))["gpus"]
    assert row == {**EIGHT, "idle": 0, "util_mean_pct": None, "memory_bytes": None, "age_s": 35, "note": ""}


def test_without_gpus_before_a_heartbeat_and_after_the_end_there_is_no_line() -> None:
    over = record(**EIGHT)
    for found in (b.record(), b.record(heartbeat=None), replace(over, run=b.run(RunState.SUCCEEDED))):
        assert shown(found, TOLD_S) == ""
        assert status_of(RunFacts(found, TOLD_S)).gpus is None
