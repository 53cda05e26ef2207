"""What goes wrong around a save of Lightning's Trainer ends with the right cause, and loses nothing."""

from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.runs.run import RunState
from prime_train.spec.causes import Cause
from tests.trainers_real.machine_taken_away import Training, launched

pytestmark = pytest.mark.exhaustive

TRAINING = Training({"kind": "lightning", "command": "train_lightning.py {checkpoints}"})


def test_a_script_that_ignores_the_checkpoint_is_stopped_and_the_checkpoint_stays(tmp_path: Path) -> None:
    ignoring = replace(TRAINING, trainer={**TRAINING.trainer, "resume": "--ignored {checkpoint}"})
    with launched(tmp_path / "run", ignoring) as here:
        here.await_committed(4)
        here.take_machine_away()
        run = here.plane.await_end(here.run_id)
        assert (run.state, [attempt.cause for attempt in run.attempts]) == (
            RunState.FAILED,
            [Cause.PREEMPTED, Cause.RESUME_IGNORED],
        )
        assert [(one.step, one.attempt) for one in here.manifests()] == [(4, 1)]
