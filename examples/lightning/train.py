"""A small network learns which of two rings a point lies in, with Lightning's Trainer.

train.py --out FOLDER [--steps N] [--ckpt_path FILE]
"""

import argparse

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCH, BATCHES = 64, 50


def rings():
    drawn = torch.Generator().manual_seed(5)
    angle = 6.2832 * torch.rand(BATCH * BATCHES, generator=drawn)
    ring = torch.randint(0, 2, (BATCH * BATCHES,), generator=drawn)
    radius = 1 + ring + 0.2 * torch.randn(BATCH * BATCHES, generator=drawn)
    return TensorDataset(torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1), ring)


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))

    def training_step(self, batch, number):
        data, ring = batch
        loss = nn.functional.cross_entropy(self.net(data), ring)
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("--out", required=True)
    asked.add_argument("--steps", type=int, default=600)
    asked.add_argument("--ckpt_path")
    given = asked.parse_args()
    lightning.seed_everything(7)
    # Lightning begins the data of an epoch anew when it resumes, so an epoch ends with each save.
    saver = ModelCheckpoint(
        dirpath=given.out, every_n_train_steps=2 * BATCHES, save_top_k=2, monitor="step", mode="max"
    )
    trainer = lightning.Trainer(
        max_steps=given.steps,
        accelerator="auto",
        devices=1,
        logger=CSVLogger(".", flush_logs_every_n_steps=10),
        log_every_n_steps=10,
        callbacks=[saver],
        enable_progress_bar=False,
    )
    trainer.fit(Net(), DataLoader(rings(), batch_size=BATCH), ckpt_path=given.ckpt_path)


if __name__ == "__main__":
    main()
