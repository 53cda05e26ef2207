"""model_N.pt, meta_N.json and an optimizer file of each of two processes side by side; resumes by a step."""

import argparse
import json
import math
import pickle
import time
from pathlib import Path

p = argparse.ArgumentParser()
p.add_argument("--num_iterations", type=int, default=150)
p.add_argument("--save_every", type=int, default=15)
p.add_argument("--resume_from_step", type=int, default=-1)
a = p.parse_args()
out = Path("base_checkpoints/d4")
out.mkdir(parents=True, exist_ok=True)
start, model = 0, [0.0] * 900
if a.resume_from_step != -1:
    start = json.loads((out / f"meta_{a.resume_from_step:06d}.json").read_text())["step"]
    model = pickle.loads((out / f"model_{a.resume_from_step:06d}.pt").read_bytes())
    for rank in range(2):
        pickle.loads((out / f"optim_{a.resume_from_step:06d}_rank{rank}.pt").read_bytes())
for step in range(start, a.num_iterations + 1):
    if step > 0 and step != a.resume_from_step and step % a.save_every == 0:
        (out / f"model_{step:06d}.pt").write_bytes(pickle.dumps(model))
        (out / f"meta_{step:06d}.json").write_text(json.dumps({"step": step, "loss": 1.5}))
        for rank in range(2):
            (out / f"optim_{step:06d}_rank{rank}.pt").write_bytes(pickle.dumps([model, rank]))
            time.sleep(0.02)
    model[step % 900] += 1.0
    time.sleep(0.04)
    print(
        f"step {step:05d}/{a.num_iterations:05d} ({100 * step / a.num_iterations:.2f}%) | "
        f"loss: {3 * math.exp(-step / 80):.6f} | lrm: 1.00 | dt: 40.12ms | tok/sec: 12,345 | mfu: 1.20",
        flush=True,
    )
