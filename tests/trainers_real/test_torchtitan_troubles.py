"""What goes wrong around a save of torchtitan's checkpointer ends with the right cause, and loses nothing."""

from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.runs.run import RunState
from prime_train.spec.causes import Cause
from tests.trainers_real.machine_taken_away import TITAN_ARGUMENTS, Training, launched

pytestmark = pytest.mark.exhaustive

TRAINING = Training({"kind": "torchtitan", "command": f"train_titan.py {TITAN_ARGUMENTS}", "workers": 2})


def test_a_script_that_loads_no_checkpoint_is_stopped_before_its_first_step(tmp_path: Path) -> None:
    ignoring = replace(
        TRAINING, trainer={**TRAINING.trainer, "resume": "--checkpoint.load_step {step} --ignore"}
    )
    with launched(tmp_path / "run", ignoring) as here:
        here.await_committed(4)
        here.take_machine_away()
        run = here.plane.await_end(here.run_id)
        assert (run.state, [attempt.cause for attempt in run.attempts]) == (
            RunState.FAILED,
            [Cause.PREEMPTED, Cause.RESUME_IGNORED],
        )
        assert "Training starts at step 1" in run.attempts[1].detail
        assert [(one.step, one.attempt) for one in here.manifests()] == [(4, 1)]
