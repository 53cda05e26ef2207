"""step-N/ of shards with .metadata last, two processes as a launcher starts them; coloured lines with a rank; by itself from the newest."""

import math
import os
import pickle
import re
import subprocess
import sys
import time
from pathlib import Path

folder = Path("outputs/checkpoint")
if "RANK" not in os.environ:
    workers = [
        subprocess.Popen([sys.executable, __file__], env={**os.environ, "RANK": str(r)}) for r in range(2)
    ]
    sys.exit(max(worker.wait() for worker in workers))
rank = int(os.environ["RANK"])
found = [int(path.parent.name[5:]) for path in folder.glob("step-*/.metadata")]
step, weights = 0, [0.0] * 700
if found:
    step = max(found)
    weights = pickle.loads((folder / f"step-{step}" / f"__{rank}_0.distcp").read_bytes())
    print(f"[rank{rank}]:[titan] root - INFO - Loading the checkpoint from {folder}/step-{step}.", flush=True)
while step < 200:
    weights[step % 700] += 1.0
    time.sleep(0.04)
    step += 1
    if step == 1 or step % 5 == 0:
        print(
            f"[rank{rank}]:\x1b[36m[titan] {time.strftime('%Y-%m-%d %H:%M:%S')},123 - root - INFO - \x1b[31mstep: {step:2}  \x1b[32mloss: {8 * math.exp(-step / 60):7.4f}  \x1b[34mtps: 1,234  \x1b[36mtflops: 1.20  \x1b[35mmfu: 3.10%\x1b[39m",
            flush=True,
        )
    if step % 20 == 0:
        unit = folder / f"step-{step}"
        unit.mkdir(parents=True, exist_ok=True)
        (unit / f"__{rank}_0.distcp").write_bytes(pickle.dumps(weights))
        if rank == 0:
            while not (unit / "__1_0.distcp").exists():
                time.sleep(0.005)
            time.sleep(0.03)
            (unit / ".metadata").write_bytes(pickle.dumps({"shards": 2}))
