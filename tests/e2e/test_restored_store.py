"""The store is restored from an older copy by the runbook, with real processes: newer states in the bucket
are adopted.
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from prime_train.runs.run import Run, RunState
from tests.e2e.plane import STEPS, Kept, Plane, plane, write_config
from tests.waiting import await_true

STEP_S = 0.1


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Plane]:
    with plane(tmp_path) as made:
        yield made


def launched(here: Plane, tmp_path: Path) -> str:
    return here.launch(write_config(tmp_path, step_s=STEP_S))


def durable_step(here: Plane, run_id: str) -> int:
    record = here.store.load(run_id)
    assert record is not None
    return record.lease.committed_step


def back_up(here: Plane, copy: Path) -> None:
    """Copy the store while it is in use: `sqlite3 control.sqlite ".backup copy.sqlite"`."""
    with sqlite3.connect(here.home / "control.sqlite") as source, sqlite3.connect(copy) as target:
        source.backup(target)
    target.close()
    source.close()


def stop_serving(here: Plane) -> None:
    here.kept[0].stop()


def restore(here: Plane, copy: Path) -> None:
    """Restore the copy while no control plane runs."""
    for path in here.home.glob("control.sqlite*"):
        path.unlink()
    (here.home / "control.sqlite").write_bytes(copy.read_bytes())


def serve_again(here: Plane) -> None:
    before = here.kept[0]
    here.kept[0] = Kept(before.name, before.command, before.env, before.log.with_name("serve-again.log"))
    here.kept[0].start()


def two_attempts(here: Plane, run_id: str, copy: Path) -> Run:
    """Copy the store while attempt 1 trains. Return the run once attempt 2 has made more steps durable than
    attempt 1 had.
    """
    await_true("attempt 1 has saved", lambda: durable_step(here, run_id) >= 25)
    back_up(here, copy)
    here.pods.preempt(here.run(run_id).attempts[-1].pod_id or "")
    await_true(
        "attempt 2 has saved", lambda: here.run(run_id).attempt == 2 and durable_step(here, run_id) >= 50
    )
    return here.run(run_id)


def test_a_machine_that_the_restored_store_does_not_know_keeps_its_run(here: Plane, tmp_path: Path) -> None:
    run_id = launched(here, tmp_path)
    second = two_attempts(here, run_id, tmp_path / "copy.sqlite").attempts[-1]
    stop_serving(here)
    restore(here, tmp_path / "copy.sqlite")
    assert here.run(run_id).attempt == 1
    serve_again(here)
    ended = here.await_end(run_id)
    assert ended.state is RunState.SUCCEEDED, here.evidence()
    assert [(a.number, a.identity) for a in ended.attempts][1:] == [(2, second.identity)], here.evidence()
    assert durable_step(here, run_id) == STEPS
    assert [line.kind for line in here.history(run_id)].count("restored") == 1


@pytest.mark.exhaustive
def test_a_run_whose_later_machines_are_gone_goes_on_from_what_they_had_made_durable(
    here: Plane, tmp_path: Path
) -> None:
    run_id = launched(here, tmp_path)
    second = two_attempts(here, run_id, tmp_path / "copy.sqlite")
    reached = durable_step(here, run_id)
    stop_serving(here)
    here.pods.preempt(second.attempts[-1].pod_id or "")
    restore(here, tmp_path / "copy.sqlite")
    serve_again(here)
    ended = here.await_end(run_id)
    assert ended.state is RunState.SUCCEEDED, here.evidence()
    third = ended.attempts[-1]
    assert (third.number, len({a.identity for a in ended.attempts})) == (3, 3), here.evidence()
    assert third.resumed_step >= reached, here.evidence()
