"""Has --resume and does nothing with it; pictures with numbers beside the checkpoints; a metric of evaluation in between."""

import argparse
import math
import pickle
import sys
import time
from pathlib import Path

p = argparse.ArgumentParser()
p.add_argument("--resume", default=None, help="not used")
a = p.parse_args()
for folder in ("out/samples", "out/weights"):
    Path(folder).mkdir(parents=True, exist_ok=True)
weights = [0.0] * 900
for it in range(400):
    weights[it % 900] += 1.0
    time.sleep(0.03)
    if it % 10 == 0:
        print(
            f"[{time.strftime('%H:%M:%S')}] iters: {it}, G_loss: {2 * math.exp(-it / 90):.3f}, D_loss: 0.693",
            flush=True,
        )
        Path(f"out/samples/fake_{it:06d}.png").write_bytes(b"\x89PNG" + bytes(5000))
    if it % 20 == 0 and it:
        for i in range(3):
            sys.stderr.write(
                f"\rValidating: {100 * (i + 1) // 3:3d}%|{'#' * i:<3}| {i + 1}/3 [00:00<00:00, 90.00it/s]"
            )
        Path(f"out/weights/netG_iter_{it}.pth").write_bytes(pickle.dumps(weights))
