"""A script that knows nothing of prime-train: it classifies the points of two spirals, which it reads from a file.

train.py [--steps N] [--save-every N] [--resume FILE]
"""

import argparse
import csv
from pathlib import Path

import numpy as np

OUT = Path("runs/spirals")
HIDDEN, BATCH, RATE = 256, 128, 0.002


def points():
    with Path("points.csv").open(newline="") as file:
        rows = [[float(value) for value in row] for row in csv.reader(file)]
    data = np.array(rows)
    return data[:, :2], data[:, 2]


def forward(weights, x):
    hidden = np.tanh(x @ weights["in"] + weights["bias"])
    return hidden, 1 / (1 + np.exp(-hidden @ weights["out"]))


def update(weights, x, y):
    """Make one step of gradient descent, and return the loss before it."""
    hidden, chance = forward(weights, x)
    error = (chance - y) / len(x)
    below = np.outer(error, weights["out"]) * (1 - hidden**2)
    weights["out"] -= RATE * hidden.T @ error * HIDDEN
    weights["in"] -= RATE * x.T @ below * HIDDEN
    weights["bias"] -= RATE * below.sum(axis=0) * HIDDEN
    return -np.mean(np.log(np.where(y == 1, chance, 1 - chance) + 1e-12))


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("--steps", type=int, default=4000)
    asked.add_argument("--save-every", type=int, default=500)
    asked.add_argument("--resume", type=Path)
    given = asked.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    x, y = points()
    begin = np.random.default_rng(1)
    weights = {
        "in": begin.normal(size=(2, HIDDEN)),
        "bias": begin.normal(size=HIDDEN),
        "out": begin.normal(size=HIDDEN) / HIDDEN,
    }
    first = 0
    if given.resume:
        saved = dict(np.load(given.resume))
        first = int(saved.pop("step"))
        weights = saved
    for step in range(first + 1, given.steps + 1):
        # The batch of a step depends on its number alone, so a resumed training sees the same data.
        batch = np.random.default_rng([2, step]).integers(0, len(x), BATCH)
        loss = update(weights, x[batch], y[batch])
        if step % 20 == 0 or step == given.steps:
            print(f"step {step}/{given.steps} loss {loss:.4f}", flush=True)
        if step % given.save_every == 0:
            np.savez(OUT / f"ckpt-{step:06}.npz", step=step, **weights)
    chances = forward(weights, x)[1]
    lines = [f"{a:.3f},{b:.3f},{chance:.3f}" for (a, b), chance in zip(x, chances, strict=True)]
    (OUT / "predictions.csv").write_text("\n".join(lines) + "\n")
    print(f"right: {np.mean((chances > 0.5) == (y == 1)):.1%}")


if __name__ == "__main__":
    main()
