"""Fits a curve by gradient descent, and saves a folder for each checkpoint, whose last file is COMPLETE.

train.py --out FOLDER [--steps N] [--resume FOLDER]
"""

import argparse
import json
from pathlib import Path

import numpy as np

FEATURES, BATCH, RATE, SAVE_EVERY = 200, 512, 4, 500


def features(x):
    angles = np.outer(x, np.arange(1, FEATURES // 2 + 1))
    return np.hstack([np.cos(angles), np.sin(angles)]) / np.sqrt(FEATURES)


def target(x):
    return np.sin(3 * x) + 0.5 * np.sin(7 * x)


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("--out", type=Path, required=True)
    asked.add_argument("--steps", type=int, default=2000)
    asked.add_argument("--resume", type=Path)
    given = asked.parse_args()
    weights, first = np.zeros(FEATURES), 0
    if given.resume:
        weights = np.load(given.resume / "weights.npy")
        first = json.loads((given.resume / "state.json").read_text())["step"]
    with Path("progress.jsonl").open("a") as progress:
        for step in range(first + 1, given.steps + 1):
            x = np.random.default_rng(step).uniform(-np.pi, np.pi, BATCH)
            seen = features(x)
            error = seen @ weights - target(x)
            weights -= RATE * seen.T @ error / BATCH
            if step % 10 == 0:
                print(json.dumps({"step": step, "loss": float(np.mean(error**2))}), file=progress, flush=True)
            if step % SAVE_EVERY == 0:
                folder = given.out / f"step_{step}"
                folder.mkdir(parents=True, exist_ok=True)
                np.save(folder / "weights.npy", weights)
                (folder / "state.json").write_text(json.dumps({"step": step}))
                (folder / "COMPLETE").touch()


if __name__ == "__main__":
    main()
