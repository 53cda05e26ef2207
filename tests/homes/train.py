"""A trainer whose checkpoints are a few bytes: a step takes a twentieth of a second, and every twentieth one
is saved.
"""

import argparse
import json
import time
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--resume-step", type=int, default=0)
given = parser.parse_args()
if given.resume_step:
    state = json.loads(Path(f"out/step_{given.resume_step}/state.json").read_text())
    assert state["step"] == given.resume_step
for step in range(given.resume_step + 1, given.steps + 1):
    time.sleep(0.05)
    with Path("progress.jsonl").open("a") as file:
        file.write(json.dumps({"step": step, "loss": 1 / step}) + "\n")
    if step % 20 == 0:
        folder = Path(f"out/step_{step}")
        folder.mkdir(parents=True)
        (folder / "state.json").write_text(json.dumps({"step": step}))
        (folder / "COMPLETE").write_text("yes")
