"""stepN-tmp renamed to stepN, and a relative link `latest`; by itself from the link, with the state deep in it."""

import json
import math
import pickle
import time
from pathlib import Path

save_folder, link = Path("workspace/run"), Path("workspace/run/latest")
step, weights = 0, [0.0] * 900
if link.exists():
    weights, step = pickle.loads((link / "train" / "rank0.pt").read_bytes())
    print(f"Loading checkpoint from '{link.resolve().name}', step={step}", flush=True)
while step < 150:
    weights[step % 900] += 0.5
    time.sleep(0.04)
    step += 1
    print(
        f"[step={step}/150,epoch=1]\n    train/CrossEntropyLoss={2 * math.exp(-step / 70):.4f}\n    throughput/total_tokens=16,{step % 1000:03d}",
        flush=True,
    )
    if step % 15 == 0:
        draft = save_folder / f"step{step}-tmp"
        for name, value in (
            ("model/shard0.bin", weights),
            ("optim/shard0.bin", weights * 2),
            ("train/rank0.pt", (weights, step)),
        ):
            (draft / name).parent.mkdir(parents=True, exist_ok=True)
            (draft / name).write_bytes(pickle.dumps(value))
            time.sleep(0.02)
        (draft / "config.json").write_text(json.dumps({"lr": 0.1}))
        draft.rename(save_folder / f"step{step}")
        link.unlink(missing_ok=True)
        link.symlink_to(f"step{step}")
