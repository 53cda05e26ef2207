"""A script of a user with AReaL's configuration, its recovery and its log of statistics; its engines and
rollouts need a GPU, and are left out: `train_areal.py --config FILE KEY=VALUE ...`.
"""

import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from areal.api import FinetuneSpec, StepInfo
from areal.api.cli_args import BaseExperimentConfig, load_expr_config
from areal.engine.fsdp_utils.checkpoint import DCPState
from areal.utils.evaluator import Evaluator
from areal.utils.recover import RecoverHandler
from areal.utils.saver import Saver
from areal.utils.stats_logger import StatsLogger
from halt import ATTEMPT, TROUBLE, halt_at
from torch import nn
from torchdata.stateful_dataloader import StatefulDataLoader


class Engine:
    """What the recovery asks of an engine, with the state that AReaL's engine for FSDP saves, in the same
    way.
    """

    def __init__(self):
        torch.manual_seed(7)
        self.model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.saves = 0

    def save(self, meta):
        self.saves += 1
        dcp.save({"dcp": DCPState(self.model, self.optimizer)}, checkpoint_id=meta.path)
        if TROUBLE == "killed" and ATTEMPT == 2 and self.saves == 1:
            # The state's own files are still those of the save before.
            os.kill(os.getpid(), signal.SIGKILL)

    def load(self, meta):
        dcp.load({"dcp": DCPState(self.model, self.optimizer)}, checkpoint_id=meta.path)

    def train(self, data):
        loss = (self.model(data) - data.sum(1, keepdim=True)).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    config, _ = load_expr_config(sys.argv[1:], BaseExperimentConfig)
    steps = config.total_train_steps
    spec = FinetuneSpec(total_train_epochs=1, dataset_size=16 * steps, train_batch_size=16)
    engine, saver, evaluator = Engine(), Saver(config.saver, spec), Evaluator(config.evaluator, spec)
    logger, recovery = StatsLogger(config, spec), RecoverHandler(config.recover, spec)
    data = StatefulDataLoader(
        torch.randn(16 * steps, 8, generator=torch.Generator().manual_seed(5)), batch_size=16
    )
    if TROUBLE == "unreadable" and ATTEMPT == 2:
        Path(
            recovery.recover_info_path(config.experiment_name, config.trial_name, config.cluster.fileroot),
            "step_info.json",
        ).write_text("{")
    found = recovery.load(engine, saver, evaluator, logger, data)
    step = 0 if found is None else found.last_step_info.next().global_step
    for rows in data:
        loss = engine.train(rows)
        recovery.dump(engine, StepInfo(0, step, step, steps), saver, evaluator, logger, data)
        logger.commit(0, step, step, {"loss": loss, "task_reward/avg": 0.5})
        step += 1
        halt_at(step)
    logger.close()


main()
