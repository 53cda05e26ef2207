"""Folders whose whole name is a padded number, hard links of the newest beside them, deleted BEFORE the next is saved; a bar is all there is."""

import os
import pickle
import shutil
import sys
import time
from pathlib import Path

root = Path("checkpoints")
last = root / "last"
step, weights, total = 0, [0.0] * 900, 200
if (last / "state.pkl").exists():
    weights, step = pickle.loads((last / "state.pkl").read_bytes())
while step < total:
    weights[step % 900] += 1.0
    time.sleep(0.04)
    step += 1
    sys.stderr.write(
        f"\rTraining: {100 * step // total:3d}%|{'#' * (10 * step // total):<10}| {step}/{total} [00:0{step % 10}<00:09, 24.9it/s]"
    )
    sys.stderr.flush()
    if step % 20 == 0:
        for old in sorted(path for path in root.glob("[0-9]*"))[:-1]:
            shutil.rmtree(old)
        unit = root / f"{step:06d}"
        unit.mkdir(parents=True)
        last.mkdir(exist_ok=True)
        (unit / "weights.npz").write_bytes(pickle.dumps(weights))
        (unit / "state.pkl").write_bytes(pickle.dumps((weights, step)))
        for name in ("weights.npz", "state.pkl"):
            (last / name).unlink(missing_ok=True)
            os.link(unit / name, last / name)
