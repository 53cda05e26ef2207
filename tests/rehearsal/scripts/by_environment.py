"""Resumes only if a variable of its environment says from what: no argument can say so."""

import math
import os
import pickle
import time

weights, step = [0.0] * 900, 0
if os.environ.get("RESUME_FROM"):
    with open(os.environ["RESUME_FROM"], "rb") as file:
        weights, step = pickle.load(file)
while step < 300:
    weights[step] += 1.0
    step += 1
    time.sleep(0.03)
    print(f"{step:>6,} {2 * math.exp(-step / 90):.4f}", flush=True)
    if step % 20 == 0:
        with open(f"snapshot-{step}.bin", "wb") as file:
            pickle.dump((weights, step), file)
