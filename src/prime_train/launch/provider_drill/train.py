"""What trains during a drill: steps of a second without a model, and a small checkpoint every ten. Needs
nothing but Python.
"""

import argparse
import json
import time
from pathlib import Path

STEPS_MAX = 1_000_000
SAVE_EVERY = 10
STEP_S = 1.0


def main() -> None:
    """Make steps until the machine is taken away."""
    options = argparse.ArgumentParser()
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--progress", type=Path, required=True)
    options.add_argument("--resume-step", type=int, default=0)
    given = options.parse_args()
    with given.progress.open("a", encoding="utf-8") as progress:
        for step in range(given.resume_step + 1, STEPS_MAX):
            progress.write(json.dumps({"step": step, "loss": 1 / step}) + "\n")
            progress.flush()
            if step % SAVE_EVERY == 1:
                save(given.out / f"step_{step}")
            time.sleep(STEP_S)


def save(folder: Path) -> None:
    """Write a checkpoint, and its sentinel last."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "weights").write_bytes(bytes(1024))
    (folder / "COMPLETE").touch()


if __name__ == "__main__":
    main()
