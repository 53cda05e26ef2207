"""A script of a user that trains with FSDP2 and saves with DCP: `train_fsdp.py OUT [--resume FOLDER]`."""

import argparse
import json
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from halt import halt_at
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

STEPS, EVERY = 12, 4


class Progress:
    """What a checkpoint holds beside the model and its optimizer."""

    def __init__(self):
        self.step = 0

    def state_dict(self):
        return {"step": self.step}

    def load_state_dict(self, saved):
        self.step = saved["step"]


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("out", type=Path)
    asked.add_argument("--resume", type=Path)
    given = asked.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    progress = Progress()
    if given.resume is not None:
        weights, moments = get_state_dict(model, optimizer)
        saved = {"model": weights, "optimizer": moments, "progress": progress}
        dcp.load(saved, checkpoint_id=given.resume)
        set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
    while progress.step < STEPS:
        progress.step += 1
        data = torch.randn(16, 8, generator=torch.Generator().manual_seed(1000 * progress.step + rank))
        loss = (model(data) - data.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(json.dumps({"step": progress.step, "loss": loss.item()}), flush=True)
        if progress.step % EVERY == 0:
            weights, moments = get_state_dict(model, optimizer)
            saved = {"model": weights, "optimizer": moments, "progress": progress}
            dcp.save(saved, checkpoint_id=given.out / f"step_{progress.step}")
        halt_at(progress.step)
    dist.destroy_process_group()


main()
