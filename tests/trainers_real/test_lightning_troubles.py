"""What goes wrong around a save of Lightning's Trainer ends with the right cause, and loses nothing."""

from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.core.causes import Cause
from prime_train.core.run import RunState
from tests.trainers_real.machine_taken_away import Training, differences, launched, uninterrupted

TRAINING = Training({"kind": "lightning", "command": "train_lightning.py {checkpoints}"})


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return uninterrupted(tmp_path_factory.mktemp("uninterrupted"), TRAINING)


def test_a_file_that_is_half_written_is_never_resumed(tmp_path: Path, expected: Path) -> None:
    with launched(tmp_path / "run", replace(TRAINING, environment={"TROUBLE": "killed"})) as here:
        here.await_committed(4)
        (here.work / "go").touch()
        run = here.plane.await_end(here.run_id)
        assert (run.state, [attempt.cause for attempt in run.attempts]) == (RunState.SUCCEEDED, [Cause.KILLED, Cause.FINISHED])
        assert run.attempts[1].resumed_step == 4
        assert differences(here.restored(12), expected, tmp_path) == []


def test_a_script_that_ignores_the_checkpoint_is_stopped_and_the_checkpoint_stays(tmp_path: Path) -> None:
    ignoring = replace(TRAINING, trainer={**TRAINING.trainer, "resume": "--ignored {checkpoint}"})
    with launched(tmp_path / "run", ignoring) as here:
        here.await_committed(4)
        here.take_machine_away()
        run = here.plane.await_end(here.run_id)
        assert (run.state, [attempt.cause for attempt in run.attempts]) == (RunState.FAILED, [Cause.PREEMPTED, Cause.RESUME_IGNORED])
        assert [(one.step, one.attempt) for one in here.manifests()] == [(4, 1)]
