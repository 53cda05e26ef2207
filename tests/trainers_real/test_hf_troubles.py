"""What goes wrong around a save of the real Trainer ends with the right cause, and the run with the state of
an uninterrupted training.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.runs.run import RunState
from prime_train.spec.causes import Cause
from tests.trainers_real.machine_taken_away import (
    HF_ARGUMENTS,
    Training,
    differences,
    launched,
    uninterrupted,
)

pytestmark = pytest.mark.exhaustive

TRAINING = Training({"kind": "hf", "command": f"train_hf.py {HF_ARGUMENTS}"})


def test_a_script_that_ignores_the_checkpoint_is_stopped_and_the_checkpoint_stays(tmp_path: Path) -> None:
    ignoring = replace(TRAINING, trainer={**TRAINING.trainer, "resume": "--ddp_timeout 1801"})
    with launched(tmp_path / "run", ignoring) as here:
        here.await_committed(4)
        here.take_machine_away()
        run = here.plane.await_end(here.run_id)
        assert (run.state, [attempt.cause for attempt in run.attempts]) == (
            RunState.FAILED,
            [Cause.PREEMPTED, Cause.RESUME_IGNORED],
        )
        assert "the first step after a resume from step 4 was step" in run.attempts[1].detail
        assert [(one.step, one.attempt) for one in here.manifests()] == [(4, 1)]


def test_a_machine_that_is_taken_with_notice_saves_first(tmp_path: Path) -> None:
    command = f"{TRAINING.trainer['command']} --enable_jit_checkpoint True"
    saving = replace(
        TRAINING,
        trainer={**TRAINING.trainer, "command": command, "stop_s": 60},
        environment={"TROUBLE": "slow"},
    )
    with launched(tmp_path / "run", saving) as here:
        here.await_committed(4)
        (here.work / "go").touch()
        here.take_machine_away(notice_s=60)
        run = here.plane.await_end(here.run_id)
        assert (run.state, [attempt.cause for attempt in run.attempts]) == (
            RunState.SUCCEEDED,
            [Cause.PREEMPTED, Cause.FINISHED],
        )
        assert run.attempts[1].resumed_step > 6
        assert (
            differences(here.restored(12), uninterrupted(tmp_path / "uninterrupted", TRAINING), tmp_path)
            == []
        )
