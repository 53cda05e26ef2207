"""Training that goes on from the bucket on another machine ends with the very state of training that was never interrupted."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from prime_train.core.causes import Cause
from prime_train.core.run import RunState
from tests.trainers_real.machine_taken_away import HF_ARGUMENTS, TITAN_ARGUMENTS, Training, differences, launched, uninterrupted

RESUME = "--resume {checkpoint}"
GRPO = f"{HF_ARGUMENTS} --num_generations 4 --max_completion_length 8 --bf16 False --gradient_checkpointing False"

TRAININGS = {
    "DDP": Training(
        {"kind": "torchrun", "command": "train_ddp.py {checkpoints}", "workers": 2, "resume": RESUME},
        {"sentinel": "DONE", "files": ["state.pt", "rng_0.pt", "rng_1.pt"]},
    ),
    "FSDP2 and DCP": Training(
        {"kind": "torchrun", "command": "train_fsdp.py {checkpoints}", "workers": 2, "resume": RESUME}, {"sentinel": ".metadata"}
    ),
    "Trainer": Training({"kind": "hf", "command": f"train_hf.py {HF_ARGUMENTS}"}),
    "Trainer in two processes": Training({"kind": "hf", "command": f"train_hf.py {HF_ARGUMENTS}", "workers": 2}),
    "LoRA": Training({"kind": "hf", "command": f"train_hf.py --lora True {HF_ARGUMENTS}"}),
    "Lightning": Training({"kind": "lightning", "command": "train_lightning.py {checkpoints}"}),
    "Lightning in two processes": Training({"kind": "lightning", "command": "train_lightning.py {checkpoints}", "workers": 2}),
    "torchtitan": Training({"kind": "torchtitan", "command": f"train_titan.py {TITAN_ARGUMENTS}", "workers": 2}),
    "GRPO": Training({"kind": "hf", "command": f"train_grpo.py {GRPO}"}),
}


@pytest.mark.parametrize("name", TRAININGS)
def test_the_final_state_is_that_of_an_uninterrupted_training(tmp_path: Path, name: str) -> None:
    training = TRAININGS[name]
    with ThreadPoolExecutor(1) as pool, launched(tmp_path / "run", training) as here:
        expected = pool.submit(uninterrupted, tmp_path / "uninterrupted", training)
        here.await_committed(4)
        here.take_machine_away()
        run = here.plane.await_end(here.run_id)
        assert (run.state, [attempt.cause for attempt in run.attempts]) == (RunState.SUCCEEDED, [Cause.PREEMPTED, Cause.FINISHED])
        assert run.attempts[1].resumed_step == 4
        last = here.manifests()[0]
        assert last.step == training.steps
        assert last.loss is not None
        assert differences(here.restored(training.steps), expected.result(), tmp_path) == []
