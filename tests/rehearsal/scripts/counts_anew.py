"""Loads the weights that it is given, and counts its steps from 1 again: it cannot go on."""

import argparse
import math
import pickle
import time

p = argparse.ArgumentParser()
p.add_argument("--resume", default=None)
a = p.parse_args()
weights, done = [0.0] * 900, 0
if a.resume:
    with open(a.resume, "rb") as file:
        weights, done = pickle.load(file)
    print(f"loaded weights from {a.resume}", flush=True)
for step in range(1, 200):
    weights[step] += 1.0
    done += 1
    time.sleep(0.03)
    print(f"step {step} loss {2 * math.exp(-done / 30):.4f}", flush=True)
    if step % 20 == 0:
        with open(f"net_{step}.pth", "wb") as file:
            pickle.dump((weights, done), file)
