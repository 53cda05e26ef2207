"""Training that goes on from the bucket on another machine ends with the very state of training that was
never interrupted.

The first machine is taken away in mid-training. With `KILLED`, the trainer on the second one is killed in the
middle of a save, and what it leaves is half a checkpoint.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from prime_train.runs.run import RunState
from prime_train.spec.causes import Cause
from tests.trainers_real.machine_taken_away import (
    AREAL_COMMAND,
    HF_ARGUMENTS,
    TITAN_ARGUMENTS,
    TRAINERS_RL,
    Training,
    differences,
    launched,
    uninterrupted,
)

RESUME = "--resume {checkpoint}"
GRPO = (
    f"{HF_ARGUMENTS} --num_generations 4 --max_completion_length 8 --bf16 False "
    "--gradient_checkpointing False"
)
KILLED = {"TROUBLE": "killed"}
VERL = "trainer.save_freq=4 trainer.total_training_steps=12"
WRITTEN_AGAIN = "Trainer"
"""The training whose first checkpoint is written again during its upload, which is slow."""
SLOW = {"upload_mb_per_s_max": 0.02, "compress": "off"}

TRAININGS = {
    "DDP": Training(
        {"kind": "torchrun", "command": "train_ddp.py {checkpoints}", "workers": 2, "resume": RESUME},
        {"sentinel": "DONE", "files": ["state.pt", "rng_0.pt", "rng_1.pt"]},
    ),
    WRITTEN_AGAIN: Training(
        {"kind": "hf", "command": f"train_hf.py {HF_ARGUMENTS}"}, SLOW, environment=KILLED
    ),
    "Lightning": Training({"kind": "lightning", "command": "train_lightning.py {checkpoints}"}),
    "torchtitan": Training({"kind": "torchtitan", "command": f"train_titan.py {TITAN_ARGUMENTS}"}),
    "verl": Training({"kind": "verl", "command": f"python3 train_verl_ppo.py {VERL}"}, programs=TRAINERS_RL),
    "AReaL": Training({"kind": "areal", "command": AREAL_COMMAND}, environment=KILLED, programs=TRAINERS_RL),
}
MORE = {
    "FSDP2 and DCP": Training(
        {"kind": "torchrun", "command": "train_fsdp.py {checkpoints}", "workers": 2, "resume": RESUME},
        {"sentinel": ".metadata"},
    ),
    "Trainer in two processes": Training(
        {"kind": "hf", "command": f"train_hf.py {HF_ARGUMENTS}", "workers": 2}
    ),
    "LoRA": Training({"kind": "hf", "command": f"train_hf.py --lora True {HF_ARGUMENTS}"}),
    "GRPO": Training({"kind": "hf", "command": f"train_grpo.py {GRPO}"}),
    "Lightning, killed in a save": Training(
        {"kind": "lightning", "command": "train_lightning.py {checkpoints}"}, environment=KILLED
    ),
    "Lightning in two processes": Training(
        {"kind": "lightning", "command": "train_lightning.py {checkpoints}", "workers": 2}
    ),
    "torchtitan in two processes": Training(
        {"kind": "torchtitan", "command": f"train_titan.py {TITAN_ARGUMENTS}", "workers": 2},
        environment=KILLED,
    ),
    "verl's supervised training in two processes": Training(
        {
            "kind": "verl",
            "command": "python3 -m torch.distributed.run --standalone --nproc-per-node 2 train_verl_sft.py "
            f"{VERL}",
        },
        environment=KILLED,
        programs=TRAINERS_RL,
    ),
}


OLD_PYTHON = pytest.mark.skipif(sys.version_info >= (3, 13), reason="verl and AReaL need a Python below 3.13")


def marks_of(name: str) -> list[pytest.MarkDecorator]:
    exhaustive = [pytest.mark.exhaustive] if name in MORE else []
    return [*exhaustive, OLD_PYTHON] if (TRAININGS | MORE)[name].programs == TRAINERS_RL else exhaustive


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks_of(name)) for name in TRAININGS | MORE])
def test_the_final_state_is_that_of_an_uninterrupted_training(tmp_path: Path, name: str) -> None:
    training = (TRAININGS | MORE)[name]
    is_killed = training.environment == KILLED
    with ThreadPoolExecutor(1) as pool, launched(tmp_path / "run", training) as here:
        uninterrupted_last = pool.submit(uninterrupted, tmp_path / "uninterrupted", training)
        here.await_committed(4)
        first = here.restored(4) if name == WRITTEN_AGAIN else None
        here.take_machine_away()
        run = here.plane.await_end(here.run_id)
        causes = (
            [Cause.PREEMPTED, Cause.KILLED, Cause.FINISHED]
            if is_killed
            else [Cause.PREEMPTED, Cause.FINISHED]
        )
        assert (run.state, [attempt.cause for attempt in run.attempts]) == (RunState.SUCCEEDED, causes)
        assert [attempt.resumed_step for attempt in run.attempts[1:]] == [4] * (len(causes) - 1)
        last, expected = here.manifests()[0], uninterrupted_last.result()
        assert last.step == training.steps
        # AReaL logs a reward, and no loss by a name that is always the same.
        assert last.loss is not None or last.reward is not None
        assert differences(here.restored(training.steps), expected, tmp_path) == []
        if first is not None:
            assert differences(first, expected.with_name("checkpoint-4"), tmp_path) == []
