"""A script of a user with torchtitan's configuration and checkpointer, in place of its training module, which
needs a GPU.
"""

import os
import shutil
import signal
import sys
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from halt import ATTEMPT, TROUBLE, halt_at
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torchtitan.components.checkpointer import CheckpointManager
from torchtitan.components.optimizer import LRSchedulersContainer, OptimizersContainer, default_adamw
from torchtitan.config import ConfigManager, TrainingConfig
from torchtitan.tools.logging import init_logger, logger
from torchtitan.tools.utils import Color


class Checkpointer(CheckpointManager):
    """torchtitan's checkpointer, to which something happens; $TROUBLE says what."""

    def dcp_save(self, state_dict, checkpoint_id, *arguments, **named):
        if ATTEMPT == 2 and TROUBLE == "killed" and checkpoint_id.endswith("step-8") and dist.get_rank() == 0:
            # What a save leaves that ends before its metadata are written. The other process may have made
            # the folder already.
            complete, without = checkpoint_id.replace("step-8", "step-4"), shutil.ignore_patterns(".metadata")
            shutil.copytree(complete, checkpoint_id, ignore=without, dirs_exist_ok=True)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().dcp_save(state_dict, checkpoint_id, *arguments, **named)


@dataclass
class Config:
    """The sections of torchtitan's configuration that this script reads."""

    dump_folder: str = "outputs"
    hf_assets_path: str = "."
    training: TrainingConfig = field(default_factory=TrainingConfig)
    optimizer: OptimizersContainer.Config = field(default_factory=lambda: default_adamw(lr=1e-2))
    lr_scheduler: LRSchedulersContainer.Config = field(default_factory=LRSchedulersContainer.Config)
    checkpoint: CheckpointManager.Config = field(default_factory=CheckpointManager.Config)


def tiny():
    """What `--config tiny` of `--module train_titan` stands for."""
    return Config()


class Data:
    """A data loader that saves its position."""

    def __init__(self, rank):
        self.rank, self.position = rank, 0

    def batch(self):
        self.position += 1
        drawn = torch.randn(16, 8, generator=torch.Generator().manual_seed(1000 * self.position + self.rank))
        return drawn, drawn.sum(1, keepdim=True)

    def state_dict(self):
        return {"position": self.position}

    def load_state_dict(self, saved):
        self.position = saved["position"]


class Trainer:
    """What torchtitan's own trainer saves beside the model: the step."""

    def __init__(self):
        self.step = 0

    def state_dict(self):
        return {"step": torch.tensor(self.step, dtype=torch.int32)}

    def load_state_dict(self, saved):
        self.step = int(saved["step"])


def main():
    init_logger()
    arguments = [word for word in sys.argv[1:] if word != "--ignore"]
    config = ConfigManager().parse_args(arguments)
    dist.init_process_group("gloo")
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    optimizers = config.optimizer.build(model_parts=[model])
    schedulers = config.lr_scheduler.build(optimizers=optimizers, training_steps=config.training.steps)
    data, trainer = Data(dist.get_rank()), Trainer()
    checkpointer = Checkpointer(
        config.checkpoint,
        dataloader=data,
        model_parts=[model],
        optimizers=optimizers,
        lr_schedulers=schedulers,
        states={"train_state": trainer},
        sd_adapter=None,
        base_folder=config.dump_folder,
    )
    if "--ignore" not in sys.argv:
        checkpointer.load(step=config.checkpoint.load_step)
    logger.info(f"Training starts at step {trainer.step + 1}")
    color = Color()
    while trainer.step < config.training.steps:
        trainer.step += 1
        drawn, wanted = data.batch()
        loss = (model(drawn) - wanted).square().mean()
        optimizers.zero_grad()
        loss.backward()
        optimizers.step()
        schedulers.step()
        if dist.get_rank() == 0:
            logger.info(
                f"{color.red}step: {trainer.step:2}  {color.green}loss: {loss.item():8.5f}  "
                f"{color.orange}grad_norm: {0:7.4f}"
            )
        checkpointer.save(trainer.step, last_step=trainer.step == config.training.steps)
        halt_at(trainer.step)
    checkpointer.close()
    dist.destroy_process_group()
    logger.info("Training completed")


if __name__ == "__main__":
    main()
