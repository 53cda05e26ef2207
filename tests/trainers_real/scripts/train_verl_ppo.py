"""A script of a user with the configuration, the saving and the resuming of verl's trainer for reinforcement
learning, and with its checkpoint manager; its rollouts and its engine need a GPU, and are left out:
`train_verl_ppo.py KEY=VALUE ...`.
"""

import os
import random
import signal
from pathlib import Path

import hydra
import numpy as np
import torch
import torch.distributed as dist
from halt import ATTEMPT, TROUBLE, halt_at
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torchdata.stateful_dataloader import StatefulDataLoader
from transformers import GPT2Config, GPT2LMHeadModel
from verl.trainer.ppo.ray_trainer import RayPPOTrainer
from verl.utils.checkpoint.fsdp_checkpoint_manager import FSDPCheckpointManager
from verl.utils.config import omega_conf_to_dataclass

LENGTH, TOKENS = 12, 64


class Trainer(RayPPOTrainer):
    """verl's trainer without Ray: its workers are in this process."""

    def __init__(self, config, workers, data):
        self.config, self.actor_rollout_wg, self.train_dataloader = config, workers, data
        self.use_critic, self.global_steps = False, 0


class Workers(FSDPCheckpointManager):
    def save_checkpoint(self, local_path, *arguments, **named):
        super().save_checkpoint(local_path, *arguments, **named)
        if TROUBLE == "killed" and ATTEMPT == 2 and Path(local_path).parent.name == "global_step_8":
            # What is missing is the state of the data.
            os.kill(os.getpid(), signal.SIGKILL)


def model_of():
    made = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=TOKENS,
            n_positions=LENGTH,
            n_embd=16,
            n_layer=2,
            n_head=2,
            bos_token_id=0,
            eos_token_id=0,
        )
    )
    mesh = init_device_mesh("cpu", (1,))
    for layer in (*made.transformer.h, made):
        fully_shard(layer, mesh=mesh)
    return made


def seed_all(seed):
    """Seed every random state that verl saves."""
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)


@hydra.main(config_path="pkg://verl.trainer.config", config_name="ppo_trainer", version_base=None)
def main(config):
    steps = config.trainer.total_training_steps
    dist.init_process_group("gloo", init_method=f"file://{Path('ranks').absolute()}", rank=0, world_size=1)
    seed_all(7)
    model = model_of()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, steps)
    drawn = torch.randint(0, TOKENS, (4 * (steps + 1), LENGTH), generator=torch.Generator().manual_seed(5))
    # An iterator over data draws from the random state that was restored, unless it has one of its own.
    data = StatefulDataLoader(drawn, batch_size=4, generator=torch.Generator())
    contents = omega_conf_to_dataclass(config.actor_rollout_ref.actor.checkpoint)
    trainer = Trainer(config, Workers(model, optimizer, schedule, checkpoint_config=contents), data)
    trainer._load_checkpoint()
    for rows in data:
        if trainer.global_steps == steps:
            break
        trainer.global_steps += 1
        loss = model(input_ids=rows, labels=rows).loss
        loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        # The line that its logger for the console writes.
        print(
            f"step:{trainer.global_steps} - actor/pg_loss:{loss.item()} - critic/score/mean:0.5", flush=True
        )
        if trainer.global_steps % config.trainer.save_freq == 0:
            trainer._save_checkpoint()
        halt_at(trainer.global_steps)
    dist.destroy_process_group()


main()
