"""The pilot's batch follows the GPU that is found, and additional arguments take precedence."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "configs" / "m7c-125m" / "train.sh"


def train(tmp_path: Path, memory_mib: str, *args: str) -> "subprocess.CompletedProcess[str]":
    for name, text in (("nvidia-smi", f"printf '{memory_mib}'"), ("python3", 'echo "$@"')):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(["sh", str(SCRIPT), *args], env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("memory_mib", "micro_batch", "accumulate"),
    [("81559", 64, 4), ("40960", 32, 8), ("46068", 32, 8), ("24564", 16, 16), (r"24564\n81559", 16, 16)],
)
def test_the_smallest_gpu_decides_and_a_step_is_the_same_everywhere(
    tmp_path: Path, memory_mib: str, micro_batch: int, accumulate: int
) -> None:
    done = train(tmp_path, memory_mib, "--steps", "50")
    assert f"--micro-batch {micro_batch} --accumulate {accumulate}" in done.stdout
    assert micro_batch * accumulate == 256
    assert done.stdout.rstrip().endswith("--steps 50")


def test_a_gpu_that_is_too_small_is_refused(tmp_path: Path) -> None:
    done = train(tmp_path, "16384")
    assert (done.returncode, "24 GB are the least" in done.stderr) == (2, True)
