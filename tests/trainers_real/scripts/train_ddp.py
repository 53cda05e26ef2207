"""A script of a user that trains with DDP, in as many processes as torchrun starts: `train_ddp.py OUT
[--resume FOLDER]`.
"""

import argparse
import json
from pathlib import Path

import torch
import torch.distributed as dist
from halt import halt_at
from torch import nn

STEPS, EVERY = 12, 4


def states(model, optimizer, step):
    return {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step}


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("out", type=Path)
    asked.add_argument("--resume", type=Path)
    given = asked.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(7)
    model = nn.parallel.DistributedDataParallel(
        nn.Sequential(nn.Linear(8, 32), nn.Dropout(0.1), nn.Tanh(), nn.Linear(32, 1))
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    first = 0
    torch.manual_seed(100 + rank)
    if given.resume is not None:
        saved = torch.load(given.resume / "state.pt")
        model.module.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["step"]
        torch.set_rng_state(torch.load(given.resume / f"rng_{rank}.pt"))
    for step in range(first + 1, STEPS + 1):
        data = torch.randn(16, 8, generator=torch.Generator().manual_seed(1000 * step + rank))
        loss = (model(data) - data.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(json.dumps({"step": step, "loss": loss.item()}), flush=True)
        if step % EVERY == 0:
            folder = given.out / f"step_{step}"
            folder.mkdir(parents=True, exist_ok=True)
            torch.save(torch.get_rng_state(), folder / f"rng_{rank}.pt")
            dist.barrier()
            if rank == 0:
                torch.save(states(model, optimizer, step), folder / "state.pt")
                (folder / "DONE").touch()
        halt_at(step)
    dist.destroy_process_group()


main()
