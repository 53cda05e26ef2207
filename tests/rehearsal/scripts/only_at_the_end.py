"""Saves once, when it has trained to its end, after 60 steps."""

import math
import pickle
import time

weights = [0.0] * 900
for step in range(60):
    weights[step] += 1.0
    time.sleep(0.03)
    print(f"Step {step + 1}/60: loss={2 * math.exp(-step / 30):.4f}", flush=True)
with open("final_model.pkl", "wb") as file:
    pickle.dump(weights, file)
