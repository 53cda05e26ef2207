"""A state that AReaL's recovery cannot read ends with the right cause, before the training that starts over
overwrites anything.
"""

import sys
from pathlib import Path

import pytest

from prime_train.runs.run import RunState
from prime_train.spec.causes import Cause
from tests.trainers_real.machine_taken_away import AREAL_COMMAND, TRAINERS_RL, Training, launched

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.skipif(sys.version_info >= (3, 13), reason="verl and AReaL need a Python below 3.13"),
]

UNREADABLE = Training(
    {"kind": "areal", "command": AREAL_COMMAND}, environment={"TROUBLE": "unreadable"}, programs=TRAINERS_RL
)


def test_a_recovery_that_starts_over_is_stopped_and_the_checkpoint_stays(tmp_path: Path) -> None:
    with launched(tmp_path / "run", UNREADABLE) as here:
        here.await_committed(4)
        here.take_machine_away()
        run = here.plane.await_end(here.run_id)
        assert (run.state, [attempt.cause for attempt in run.attempts]) == (
            RunState.FAILED,
            [Cause.PREEMPTED, Cause.RESUME_IGNORED],
        )
        assert "Resume info not found" in run.attempts[1].detail
        assert [(one.step, one.attempt) for one in here.manifests()] == [(4, 1)]
