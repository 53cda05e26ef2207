"""A small network, trained with DDP in as many processes as torchrun starts.

train.py FOLDER [--steps N] [--resume FOLDER]
"""

import argparse
import json
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SAVE_EVERY, BATCH, FEATURES = 50, 64, 32


def batch(step, rank):
    """Return the data of a step, which depends on the step and the process alone."""
    data = torch.randn(BATCH, FEATURES, generator=torch.Generator().manual_seed(1000 * step + rank))
    return data, data[:, :4].sin().sum(1, keepdim=True)


def save(folder, step, model, optimizer, rank):
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(torch.get_rng_state(), folder / f"random_{rank}.pt")  # the drop-out of each process
    dist.barrier()
    if rank == 0:
        state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
        torch.save(state, folder / "state.pt")
        (folder / "COMPLETE").touch()


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("out", type=Path)
    asked.add_argument("--steps", type=int, default=300)
    asked.add_argument("--resume", type=Path)
    given = asked.parse_args()
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rank = dist.get_rank()
    torch.manual_seed(7)
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(FEATURES, 256), nn.ReLU(), nn.Dropout(0.1), nn.Linear(256, 1))
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(100 + rank)
    first = 0
    if given.resume:
        state = torch.load(given.resume / "state.pt")
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(torch.load(given.resume / f"random_{rank}.pt"))
        first = state["step"]
    for step in range(first + 1, given.steps + 1):
        data, wanted = batch(step, rank)
        loss = (model(data) - wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 10 == 0:
            print(json.dumps({"step": step, "loss": loss.item()}), flush=True)
        if step % SAVE_EVERY == 0:
            save(given.out / f"step_{step}", step, model, optimizer, rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
