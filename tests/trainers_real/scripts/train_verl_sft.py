"""A script of a user with verl's configuration, checkpoint handler and checkpoint manager, in place of its
supervised training, which needs a GPU: `train_verl.py KEY=VALUE ...`.
"""

import os
import random
import signal

import hydra
import numpy as np
import torch
import torch.distributed as dist
from halt import ATTEMPT, TROUBLE, halt_at
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torchdata.stateful_dataloader import StatefulDataLoader
from transformers import GPT2Config, GPT2LMHeadModel
from verl.utils.checkpoint import CheckpointHandler
from verl.utils.checkpoint.fsdp_checkpoint_manager import FSDPCheckpointManager
from verl.utils.config import omega_conf_to_dataclass

ROWS, LENGTH, TOKENS = 96, 12, 64


class Engine(FSDPCheckpointManager):
    """What the handler asks of an engine, each process of which has its own part of the data."""

    def is_mp_src_rank_with_outputs(self):
        return True

    def get_data_parallel_rank(self):
        return self.rank

    def save_checkpoint(self, local_path, **named):
        super().save_checkpoint(local_path, **named)
        if TROUBLE == "killed" and ATTEMPT == 2 and local_path.endswith("global_step_8") and self.rank == 0:
            # Everything is there but the state of the data.
            os.kill(os.getpid(), signal.SIGKILL)


def model_of(mesh):
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
    for layer in (*made.transformer.h, made):
        fully_shard(layer, mesh=mesh)
    return made


def seed_all(seed):
    """Seed every random state that verl saves."""
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)


@hydra.main(config_path="pkg://verl.trainer.config", config_name="sft_trainer_engine", version_base=None)
def main(config):
    dist.init_process_group("gloo")
    rank, of = dist.get_rank(), dist.get_world_size()
    seed_all(config.trainer.seed)
    model = model_of(init_device_mesh("cpu", (of,)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, config.trainer.total_training_steps)
    seed_all(100 + rank)
    drawn = torch.randint(0, TOKENS, (ROWS, LENGTH), generator=torch.Generator().manual_seed(5))
    # An iterator over data draws from the random state that was restored, unless it has one of its own.
    per_step = ROWS // of // config.trainer.total_training_steps
    data = StatefulDataLoader(drawn[rank::of], batch_size=per_step, generator=torch.Generator())
    contents = omega_conf_to_dataclass(config.checkpoint)
    handler = CheckpointHandler(
        Engine(model, optimizer, schedule, checkpoint_config=contents),
        data,
        default_local_dir=config.trainer.default_local_dir,
        max_ckpt_to_keep=config.trainer.max_ckpt_to_keep,
        resume_mode=config.trainer.resume_mode,
        resume_from_path=config.trainer.resume_from_path,
    )
    step = handler.load_checkpoint()
    for rows in data:
        step += 1
        loss = model(input_ids=rows, labels=rows).loss
        loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if rank == 0:
            # The line that its logger for the console writes.
            print(
                f"step:{step} - train/loss:{loss.item()} - train/lr:{schedule.get_last_lr()[0]}", flush=True
            )
        if step % config.trainer.save_freq == 0:
            handler.save_checkpoint(step)
        halt_at(step)
    dist.destroy_process_group()


main()
