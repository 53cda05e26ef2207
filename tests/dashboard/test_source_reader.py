"""Pages do not wait for slow sources, and do not read them more often than worthwhile."""

import threading
from collections.abc import Callable

import pytest

from prime_train.pages.dashboard.source_reader import BackgroundReader, ReadPerRequest
from prime_train.pages.run_page import LogEnd, RunSources
from prime_train.runs.run import RunState
from prime_train.runs.store import RunRecord
from tests import builders as b
from tests.server.calling import await_true
from tests.waiting import HANG_S

HELD = b.record()


class Machine:
    """A source of data. `free`: while cleared, it does not answer."""

    def __init__(self) -> None:
        self.free, self.looks, self.error = threading.Event(), 0, False
        self.free.set()

    def look(self, record: RunRecord) -> RunSources:
        self.looks += 1
        number = self.looks
        assert self.free.wait(HANG_S)
        if self.error:
            raise KeyError("a bug")
        return RunSources(log=LogEnd("trainer.log", f"look {number}"))


def text_of(sources: RunSources | None) -> str:
    return sources.log.text if sources is not None else ""


def test_a_machine_that_does_not_answer_holds_up_no_page() -> None:
    machine = Machine()
    looking = BackgroundReader(machine.look, kept_s=0.0)
    machine.free.clear()
    assert looking.seen(HELD, wait_s=0.0) is None
    assert looking.turn(b.RUN_ID) == 0
    machine.free.set()
    assert text_of(looking.seen(HELD, wait_s=HANG_S)) == "look 1"
    assert looking.turn(b.RUN_ID) == 1
    # What was seen is shown while the next look waits.
    machine.free.clear()
    await_true(lambda: looking.seen(HELD, wait_s=0.0) and machine.looks > 1)
    assert text_of(looking.seen(HELD, wait_s=0.0)) == f"look {machine.looks - 1}"
    machine.free.set()


def test_a_look_is_good_for_a_while_and_longer_for_a_run_at_rest() -> None:
    machine = Machine()
    looking = BackgroundReader(machine.look, kept_s=3600.0)
    assert [text_of(looking.seen(HELD, wait_s=HANG_S)) for _ in range(5)] == ["look 1"] * 5
    at_rest = b.record(b.run(RunState.SUCCEEDED, run_id="over", next_check_s=None))
    assert at_rest.run.is_at_rest
    often = BackgroundReader(machine.look, kept_s=0.0)
    assert {text_of(often.seen(at_rest, wait_s=HANG_S)) for _ in range(5)} == {"look 2"}


def test_a_run_that_has_just_ended_is_looked_at_once_more() -> None:
    machine = Machine()
    looking = BackgroundReader(machine.look, kept_s=0.0)
    assert text_of(looking.seen(HELD, wait_s=HANG_S)) == "look 1"
    ended = b.record(b.run(RunState.SUCCEEDED, version=HELD.run.version + 1, next_check_s=None))
    await_true(lambda: text_of(looking.seen(ended)) == f"look {machine.looks}" and machine.looks > 1)
    looks = machine.looks
    assert {text_of(looking.seen(ended)) for _ in range(5)} == {f"look {looks}"}


def test_only_so_many_runs_are_kept() -> None:
    machine = Machine()
    looking = BackgroundReader(machine.look, kept_s=3600.0)
    runs = [b.record(b.run(RunState.TRAINING, run_id=f"run-{number}")) for number in range(200)]
    for run in runs:
        assert looking.seen(run, wait_s=HANG_S) is not None
    assert sum(looking.turn(run.run.run_id) for run in runs) <= 64
    assert looking.turn("run-199") == 1


@pytest.mark.parametrize("of", [BackgroundReader, ReadPerRequest])
def test_a_bug_is_reported_on_the_page_and_in_the_log(
    of: Callable[..., BackgroundReader], caplog: pytest.LogCaptureFixture
) -> None:
    machine = Machine()
    machine.error = True
    seen = of(machine.look).seen(HELD, wait_s=HANG_S)
    assert seen is not None
    assert "see its log" in seen.notes[0]
    assert "a bug" in caplog.text


def test_where_one_looks_at_once_a_machine_that_does_not_answer_is_left_out() -> None:
    machine = Machine()
    assert text_of(ReadPerRequest(machine.look).seen(HELD)) == "look 1"
    machine.free.clear()
    assert ReadPerRequest(machine.look, limit_s=0.0).seen(HELD) is None
    machine.free.set()
