"""TRM's published code restores only weights, so a resumed training equals another one that begins with the
same weights.
"""

from pathlib import Path

import pytest

from prime_train.runs.run import RunState
from prime_train.spec.causes import Cause
from tests.trainers_real.machine_taken_away import Training, differences, launched, uninterrupted

TRAINING = Training(
    {"kind": "trm", "command": "pretrain.py ema=True", "workers": 2}, environment={"TROUBLE": "killed"}
)


@pytest.mark.exhaustive
def test_training_goes_on_with_the_saved_weights_and_its_steps_follow_theirs(tmp_path: Path) -> None:
    with launched(tmp_path / "run", TRAINING) as here:
        here.await_committed(4)
        here.take_machine_away()
        run = here.plane.await_end(here.run_id)
        assert (run.state, [attempt.cause for attempt in run.attempts]) == (
            RunState.SUCCEEDED,
            [Cause.PREEMPTED, Cause.KILLED, Cause.FINISHED],
        )
        assert [attempt.resumed_step for attempt in run.attempts[1:]] == [4, 4]
        assert here.manifests()[0].step == 16
        first = uninterrupted(tmp_path / "first", TRAINING).with_name("weights_4")
        assert differences(here.restored(4), first, tmp_path) == []
        second = uninterrupted(tmp_path / "second", TRAINING, after=first)
        assert differences(here.restored(16), second, tmp_path) == []
