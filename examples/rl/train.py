"""Policy gradients on a small world: a walker learns to reach a goal behind a wall. All of its state is saved, the
random numbers included.

train.py --out FOLDER [--steps N] [--resume FOLDER]
"""

import argparse
import json
import signal
from pathlib import Path

import numpy as np

WORLD = ["S..#..", "...#..", "......", "...#..", "...#.G"]
HEIGHT, WIDTH = len(WORLD), len(WORLD[0])
MOVES = [(0, 1), (1, 0), (0, -1), (-1, 0)]
GOAL = (4, 5)
WALKERS, WALK, RATE, SAVE_EVERY = 64, 60, 0.6, 50


def open_cell(row, column):
    return 0 <= row < HEIGHT and 0 <= column < WIDTH and WORLD[row][column] != "#"


NEXT = np.array(
    [
        [
            (row + down) * WIDTH + column + right
            if open_cell(row + down, column + right)
            else row * WIDTH + column
            for down, right in MOVES
        ]
        for row in range(HEIGHT)
        for column in range(WIDTH)
    ]
)


def walk(policy, rng):
    """Let all walkers walk. Returns cells and moves of each moment, and each walker's reward: nearer to 1 the sooner
    it arrived, and 0 if it did not.
    """
    at = np.zeros(WALKERS, dtype=int)
    arrived = np.full(WALKERS, WALK)
    cells, moves = [], []
    for moment in range(WALK):
        chances = np.exp(policy[at] - policy[at].max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        move = (rng.random((WALKERS, 1)) > chances.cumsum(axis=1)).sum(axis=1).clip(max=3)
        cells.append(at)
        moves.append(move)
        at = np.where(arrived < WALK, at, NEXT[at, move])
        arrived = np.where((at == GOAL[0] * WIDTH + GOAL[1]) & (arrived == WALK), moment, arrived)
    return np.array(cells), np.array(moves), 1 - arrived / WALK, arrived


def improve(policy, baseline, rng):
    cells, moves, reward, arrived = walk(policy, rng)
    advantage = reward - baseline
    gradient = np.zeros_like(policy)
    for moment in range(WALK):
        walking = arrived >= moment
        at, move = cells[moment][walking], moves[moment][walking]
        chances = np.exp(policy[at] - policy[at].max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        step = -chances
        step[np.arange(len(at)), move] += 1
        np.add.at(gradient, at, step * advantage[walking][:, None])
    policy += RATE * gradient / WALKERS
    return 0.9 * baseline + 0.1 * reward.mean(), reward.mean()


def save(out, step, policy, baseline, rng):
    folder = out / f"step_{step}"
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "policy.npy", policy)
    state = {"step": step, "baseline": baseline, "random": rng.bit_generator.state}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "COMPLETE").touch()


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("--out", type=Path, required=True)
    asked.add_argument("--steps", type=int, default=600)
    asked.add_argument("--resume", type=Path)
    given = asked.parse_args()
    policy, baseline, first = np.zeros((HEIGHT * WIDTH, len(MOVES))), 0.0, 0
    rng = np.random.default_rng(3)
    if given.resume:
        policy = np.load(given.resume / "policy.npy")
        state = json.loads((given.resume / "state.json").read_text())
        first, baseline, rng.bit_generator.state = state["step"], state["baseline"], state["random"]
    asked_to_stop = []
    signal.signal(signal.SIGTERM, lambda number, frame: asked_to_stop.append(number))
    with Path("progress.jsonl").open("a") as progress:
        for step in range(first + 1, given.steps + 1):
            baseline, reward = improve(policy, baseline, rng)
            print(json.dumps({"step": step, "reward": float(reward)}), file=progress, flush=True)
            if step % SAVE_EVERY == 0 or asked_to_stop:
                save(given.out, step, policy, baseline, rng)
            if asked_to_stop:
                raise SystemExit(143)


if __name__ == "__main__":
    main()
