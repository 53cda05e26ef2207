"""A script of a user that trains with Lightning: `train_lightning.py OUT [--ckpt_path FILE]`."""

import argparse
import os
import signal
from pathlib import Path

import lightning
import torch
from halt import ATTEMPT, TROUBLE, halt_at
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

STEPS, EVERY = 12, 4


class Halt(Callback):
    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        halt_at(trainer.global_step)


class Saver(ModelCheckpoint):
    """The callback that saves, to which something happens; $TROUBLE says what."""

    def _save_checkpoint(self, trainer, filepath):
        super()._save_checkpoint(trainer, filepath)
        if ATTEMPT == 2 and TROUBLE == "killed" and trainer.global_step == 8:
            # What a save that is not atomic leaves: a file without its end.
            os.truncate(filepath, Path(filepath).stat().st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))

    def training_step(self, batch, batch_idx):
        data, wanted = batch
        loss = (self.net(data) - wanted).square().mean()
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, STEPS)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("out", type=Path)
    asked.add_argument("--ckpt_path")
    asked.add_argument("--ignored")
    given = asked.parse_args()
    torch.manual_seed(7)
    drawn = torch.randn(EVERY * 16, 8, generator=torch.Generator().manual_seed(5))
    # An epoch ends with each save: Lightning begins an epoch's data anew.
    data = DataLoader(
        TensorDataset(drawn, drawn.sum(1, keepdim=True)),
        batch_size=16 // int(os.environ.get("WORLD_SIZE", "1")),
    )
    saver = Saver(dirpath=given.out, every_n_train_steps=EVERY, save_top_k=2, monitor="step", mode="max")
    trainer = lightning.Trainer(
        max_steps=STEPS,
        accelerator="cpu",
        devices=int(os.environ.get("WORLD_SIZE", "1")),
        logger=CSVLogger(".", flush_logs_every_n_steps=1),
        log_every_n_steps=1,
        callbacks=[saver, Halt()],
        enable_progress_bar=False,
    )
    trainer.fit(Net(), data, ckpt_path=given.ckpt_path)


main()
