"""The pilot's config, run on this machine with a trainer of a few lines: smoke-tested, killed, and resumed
from a single file.
"""

import re
import sys
from pathlib import Path

import pytest

from tests.cli.shell import Shell

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="processes of a run are found by Linux's means"),
]

CONFIGS = Path(__file__).parents[2] / "configs"
TRAINER = """
import argparse, os, signal, time, zipfile
parser = argparse.ArgumentParser()
for name in ("--size", "--seq-len", "--micro-batch", "--accumulate", "--save-dir", "--progress", "--resume"):
    parser.add_argument(name)
parser.add_argument("--save-every", type=int)
parser.add_argument("--steps", type=int)
args = parser.parse_args()
start = int(zipfile.ZipFile(args.resume).read("step")) if args.resume else 0
os.makedirs(args.save_dir, exist_ok=True)
with open(args.progress, "a") as progress:
    print("step,loss", file=progress, flush=True)
    for step in range(start + 1, args.steps + 1):
        time.sleep(0.15)
        print(f"{step},{1 / step}", file=progress, flush=True)
        if step % args.save_every == 0:
            with zipfile.ZipFile(f"{args.save_dir}/checkpoint_step{step}.pt", "w") as file:
                file.writestr("step", str(step))
        if step == 70 and not args.resume:
            os.kill(os.getpid(), signal.SIGKILL)
"""
SHORTER = {
    "20000": "80",
    "every_steps: 500": "every_steps: 25",
    "--save-every 500": "--save-every 25",
    "  gpus: [RTX4090_24GB, A100_40GB, L40S_48GB, A100_80GB, H100_80GB]\n": "",
    "disk_gib: 60": "disk_gib: 1\n  open_files_min: 256",
    "  - python3 -m pip install -q -r requirements.txt": "  - test -f train.py",
}
HEALTH = "health: {heartbeat_s: 1, overdue_s: 5, silence_s: 10, settle_s: 5, drain_s: 20}\n"


def test_a_killed_pilot_goes_on_from_its_newest_single_file(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    text = (CONFIGS / "m7c-125m.yaml").read_text()
    for ours, shorter in SHORTER.items():
        assert ours in text
        text = text.replace(ours, shorter)
    before, _, after = text.partition("  variants:\n")
    text = before + after[after.index("\nbudget:") :] + "environment: {MICRO_BATCH: '16', ACCUMULATE: '16'}\n"
    shell.write("configs/m7c-125m.yaml", text + HEALTH)
    shell.write("train.py", TRAINER)
    done = shell.run("run", "configs/m7c-125m.yaml", "--follow")
    assert done.returncode == 0, done.stdout + done.stderr
    # The newest that was whole when it was killed, which a busy machine may not have seen yet.
    assert re.search("resumes from step (25|50) of attempt 1", done.stdout), done.stdout
    assert "finished at step 80" in done.stdout
