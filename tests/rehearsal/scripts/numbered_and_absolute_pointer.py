"""iter_N.pth and `last_checkpoint`, whose text is the absolute path of the newest; --resume without a value."""

import argparse
import math
import os
import pickle
import time

p = argparse.ArgumentParser()
p.add_argument("--work-dir", default="work_dirs/retina")
p.add_argument(
    "--resume", action="store_true", help="resume from the latest checkpoint in the work_dir automatically"
)
a = p.parse_args()
work_dir = os.path.abspath(a.work_dir)
os.makedirs(work_dir, exist_ok=True)
pointer = os.path.join(work_dir, "last_checkpoint")
it, weights = 0, [0.0] * 800
if a.resume and os.path.isfile(pointer):
    with open(pointer) as file:
        path = file.read().strip()
    with open(path, "rb") as file:
        weights, it = pickle.load(file)
    print(f"resumed from {path}", flush=True)
while it < 150:
    weights[it % 800] += 1.0
    time.sleep(0.04)
    it += 1
    if it % 5 == 0:
        now = time.strftime("%m/%d %H:%M:%S")
        print(
            f"{now} - mmengine - INFO - Iter(train) [{it:>6}/150]  base_lr: 1.0e-02 lr: 9.9e-03  eta: 0:00:0{it % 10}  time: 0.0402  data_time: 0.0012  memory: 123  loss: {2 * math.exp(-it / 60):.4f}  loss_cls: 0.31",
            flush=True,
        )
    if it % 15 == 0:
        path = os.path.join(work_dir, f"iter_{it}.pth")
        with open(path, "wb") as file:
            pickle.dump((weights, it), file)
        with open(pointer, "w") as file:
            file.write(path)
