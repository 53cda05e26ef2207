"""What the agent reads of its machine, and what its children get of it."""

import os
import subprocess
import sys
from pathlib import Path

from prime_agent import sensors
from prime_agent.environment import for_children, redacted
from prime_agent.gpus import GpuLoad, NoGpus, NvidiaGpus
from prime_agent.preflight import preflight
from prime_train.core.spec import HardwareSpec


class TwoGpus:
    """A machine with two GPUs, one of them busy."""

    def names(self) -> list[str] | str:
        return ["H100", "H100"]

    def loads(self) -> list[GpuLoad] | str:
        return [GpuLoad("H100", 90.0, 1000.0, 80_000.0), GpuLoad("H100", 0.0, 0.0, 80_000.0)]


def test_load_is_the_mean_and_memory_the_sum_over_all_gpus(tmp_path: Path) -> None:
    seen = sensors.read(tmp_path, TwoGpus())
    assert (seen.gpu_util_pct, seen.gpu_mem_mib) == (45.0, 1000.0)
    assert seen.disk_free_gib is not None


def test_where_no_gpu_was_asked_for_there_are_no_figures(tmp_path: Path) -> None:
    assert sensors.read(tmp_path, NoGpus()).gpu_util_pct is None


def test_a_machine_without_a_driver_says_so_instead_of_failing() -> None:
    names = NvidiaGpus().names()
    assert isinstance(names, list) or names.startswith(("NVML", "the package"))


def test_a_machine_that_fits_passes(tmp_path: Path) -> None:
    preflight(HardwareSpec(gpus=("H100",), count=2, disk_gib=1, open_files_min=256), tmp_path, TwoGpus())


def test_later_layers_win_and_our_own_secrets_are_left_out() -> None:
    machine = {"PATH": "/bin", "PRIME_TRAIN_MASTER_KEY": "k", "PRIME_TRAIN_POD": "local-1", "A": "machine", "PT_TOKEN": "t"}
    assert for_children(machine, {"A": "spec", "B": "spec"}, {"B": "secret"}) == {
        "PATH": "/bin",
        "PRIME_TRAIN_POD": "local-1",
        "A": "spec",
        "B": "secret",
    }


def test_secrets_are_blacked_out_the_longer_first_and_short_ones_left() -> None:
    secrets = {"A": "abcdef", "B": "abcdefghij", "C": "1"}
    assert redacted("abcdef abcdefghij 1", secrets) == "<A> <B> 1"


def test_the_agent_needs_nothing_heavy() -> None:
    """The modules it loads, in a fresh interpreter."""
    heavy = "numpy fastapi uvicorn wandb torch yaml typer rich starlette boto3"
    code = f"import sys, prime_agent.main; print([m for m in '{heavy}'.split() if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60, env=dict(os.environ))
    assert done.stdout.strip() == "[]"
