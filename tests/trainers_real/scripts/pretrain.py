"""A script of the shape of TRM's published `pretrain.py`: `pretrain.py KEY=VALUE ...`.

As there, a launch evaluates every few steps, and saves the weights of the moving average; it loads nothing
else, and begins at step 0. What that code needs a GPU for is left out: its optimizer, NCCL and its compiled
kernels.
"""

import copy
import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import tqdm
from halt import ATTEMPT, TROUBLE, halt_at
from torch import nn

STEPS, EVAL_INTERVAL = 12, 4


def main():
    settings = dict(word.lstrip("+").split("=", 1) for word in sys.argv[1:])
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    if "load_checkpoint" in settings and rank == 0:
        print(f"Loading checkpoint {settings['load_checkpoint']}", flush=True)
        model.load_state_dict(torch.load(settings["load_checkpoint"]))
    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=0)
    average = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, STEPS)
    bar = tqdm.tqdm(total=STEPS) if rank == 0 else None
    for step in range(1, STEPS + 1):
        data = torch.randn(16, 8, generator=torch.Generator().manual_seed(1000 * step + rank))
        loss = (model(data) - data.sum(1, keepdim=True)).square().mean()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        for mean, parameter in zip(average.parameters(), model.parameters(), strict=True):
            mean.data.lerp_(parameter.data, 0.1)
        if bar is not None:
            bar.update(1)
        if step % EVAL_INTERVAL == 0 and rank == 0:
            print("SAVE CHECKPOINT", flush=True)
            folder = Path(settings["checkpoint_path"])
            folder.mkdir(parents=True, exist_ok=True)
            saved = folder / f"step_{step}"
            torch.save(average.state_dict(), saved)
            if ATTEMPT == 2 and TROUBLE == "killed":
                os.truncate(saved, saved.stat().st_size // 2)
                os.kill(os.getpid(), signal.SIGKILL)
        halt_at(step)
    dist.destroy_process_group()


main()
