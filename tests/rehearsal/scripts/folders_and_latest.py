"""global_stepN/ of several files, and a text `latest` that names the newest; --load takes their folder."""

import argparse
import math
import pickle
import time
from pathlib import Path

p = argparse.ArgumentParser()
p.add_argument("--train-iters", type=int, default=200)
p.add_argument("--save", default="ckpts")
p.add_argument("--load", default=None)
p.add_argument("--save-interval", type=int, default=20)
a = p.parse_args()
step, weights = 0, [0.0] * 800
if a.load and (Path(a.load) / "latest").is_file():
    tag = (Path(a.load) / "latest").read_text().strip()
    weights, step = pickle.loads((Path(a.load) / tag / "mp_rank_00_model_states.pt").read_bytes())
    print(f" > loading checkpoint from {a.load} at iteration {step}", flush=True)
else:
    print("WARNING: could not find the metadata file; will not load any checkpoints", flush=True)
while step < a.train_iters:
    weights[step % 800] += 0.5
    time.sleep(0.04)
    step += 1
    if step % 5 == 0:
        print(
            f" iteration {step:8d}/{a.train_iters:8d} | consumed samples: {step * 16:12d} | elapsed time per "
            f"iteration (ms): 40.3 | learning rate: 1.500E-04 | lm loss: {2 * math.exp(-step / 70):.6E} |",
            flush=True,
        )
    if step % a.save_interval == 0:
        folder = Path(a.save) / f"global_step{step}"
        folder.mkdir(parents=True)
        for name in (
            "zero_pp_rank_0_mp_rank_00_optim_states.pt",
            "zero_pp_rank_1_mp_rank_00_optim_states.pt",
        ):
            (folder / name).write_bytes(pickle.dumps(weights * 2))
        (folder / "mp_rank_00_model_states.pt").write_bytes(pickle.dumps((weights, step)))
        (Path(a.save) / "latest").write_text(folder.name)
