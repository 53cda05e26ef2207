"""One machine's numbers, however absurd, hide no run from people: they are shown, or not known."""

import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from prime_train.pages.run_page import run_page_html
from prime_train.pages.run_sources import page_of
from prime_train.runs.run import Lease, RunState
from prime_train.runs.store import RunRecord
from prime_train.runs.wire import INTEGER_MAX, READING_MAX, SECONDS_MAX, Gpus, Heartbeat, Saves, Traffic
from prime_train.status.run_status import RunFacts, status_of
from prime_train.stores.memory import MemoryStore
from tests import builders as b

LEAST = 5e-324
ABSURD: tuple[dict[str, Any], ...] = (
    {"gpu_mem_mib": 1e308, "gpus": Gpus(count=1)},
    {
        "gpu_mem_mib": READING_MAX,
        "gpus": Gpus(count=INTEGER_MAX, idle=INTEGER_MAX, hottest_c=-INTEGER_MAX, power_w=-1e308),
    },
    {"gpu_util_pct": -1e308, "disk_free_gib": -1e308, "disk_full_s": INTEGER_MAX},
    {"saves": Saves(interval_s=LEAST, durable_after_s=float(SECONDS_MAX), stall_s=float(SECONDS_MAX))},
    {
        "saves": Saves(
            interval_s=LEAST,
            durable_after_s=LEAST,
            upload_s=LEAST,
            sent_bytes=INTEGER_MAX,
            size_bytes=INTEGER_MAX,
        )
    },
    {"timed_steps": INTEGER_MAX, "timed_s": LEAST, "timed_spread_s": 1e9, "step_slow_s": LEAST},
    {"traffic": Traffic(down_bytes=INTEGER_MAX, up_bytes=INTEGER_MAX, seconds=0)},
    {"loss": 1e308, "reward": -1e308, "learning_rate": LEAST},
)


def record(**said: Any) -> RunRecord:
    run = b.run(
        RunState.TRAINING, attempt=1, attempts=(b.new_attempt(first_heartbeat_s=b.T0_S, first_step_s=b.T0_S),)
    )
    heartbeat = Heartbeat.model_validate_json(b.heartbeat(**said).model_dump_json())
    return RunRecord(run, replace(Lease(b.RUN_ID, 1, True), heartbeat=heartbeat, heartbeat_s=b.T0_S + 60))


@pytest.mark.parametrize("said", ABSURD, ids=" ".join)
def test_a_runs_status_and_page_are_made_whatever_its_machine_reports(said: dict[str, Any]) -> None:
    found = record(**said)
    assert json.dumps(asdict(status_of(RunFacts(found, b.T0_S + 90))), default=str, allow_nan=False)
    store = MemoryStore()
    store.create(found.run)
    assert b.RUN_ID in run_page_html(page_of(store, found, None))


@pytest.mark.parametrize("name", ["gpu_util_pct", "gpu_mem_mib", "disk_free_gib"])
def test_a_reading_that_no_machine_can_have_is_not_known(name: str) -> None:
    said = json.loads(b.heartbeat().model_dump_json(exclude_defaults=True))
    for value, read in ((1e308, None), (-1e308, None), (READING_MAX, READING_MAX), (12.5, 12.5)):
        assert getattr(Heartbeat.model_validate(said | {name: value}), name) == read
