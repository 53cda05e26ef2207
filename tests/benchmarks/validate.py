"""Checking configs: one beside a bare interpreter, and 1,000 beside PyYAML and tomllib reading the same
files.
"""

import compileall
import contextlib
import io
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

import yaml
from rich.console import Console
from rich.table import Table

from prime_train.checks.report.check import check
from prime_train.checks.report.formats import Format

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[2]
CONFIGS = 1000
ONES = ("demo.yaml", "qwen3-4b-lora.yaml", "areal-gsm8k.yaml")
ONE_MS_MAX, ALL_S_MAX = 150, 5.0

RUN = """\
name: run-{number}
trainer:
  kind: prime_rl
  steps: 200
  code: {{folder: {folder}}}
  prime_rl:
    config: rl-{number}.toml
    ref: 559b4477000000000000000000000000000000aa
hardware: {{provider: prime, gpus: [H100_80GB], count: 2, disk_gib: 2000}}
checkpoints: {{every_steps: 10}}
budget: {{usd: 20}}
"""


def user_ms(command: list[str], runs: int) -> float:
    """Return the median of several runs in milliseconds."""
    times = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
        times.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
    return statistics.median(times) * 1000


def written(folder: Path, count: int) -> None:
    """Write configs: half of them prime-rl's with a TOML each, half plain commands."""
    toml = (ROOT / "tests" / "data" / "prime_rl_configs" / "good.toml").read_text(encoding="utf-8")
    demo = (ROOT / "configs" / "demo.yaml").read_text(encoding="utf-8")
    for number in range(count // 2):
        (folder / f"run-{number}.yaml").write_text(RUN.format(number=number, folder=folder))
        (folder / f"rl-{number}.toml").write_text(toml)
        (folder / f"demo-{number}.yaml").write_text(demo)


def read_only_s(folder: Path) -> float:
    """Return the seconds for only reading the same files."""
    start_s = time.process_time()
    for path in folder.iterdir():
        text = path.read_text(encoding="utf-8")
        yaml.load(text, Loader=yaml.CSafeLoader) if path.suffix == ".yaml" else tomllib.loads(text)
    return time.process_time() - start_s


def checked_s(folder: Path) -> float:
    start_s = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        check([folder], Format.JSON)
    return time.process_time() - start_s


def main(quick: bool = False) -> None:
    # As it is installed: a checkout in which Python may write nothing would be compiled once a call.
    compileall.compile_dir(ROOT / "src" / "prime_train", quiet=1)
    runs = 5 if quick else 21
    bare = user_ms([sys.executable, "-c", "pass"], runs)
    library = user_ms([sys.executable, "-c", "import pydantic.main, yaml"], runs)
    ones = {
        name: user_ms([str(BIN / "prime-train"), "validate", str(ROOT / "configs" / name)], runs)
        for name in ONES
    }
    count = 100 if quick else CONFIGS
    with tempfile.TemporaryDirectory() as name:
        written(Path(name), count)
        checked, read = checked_s(Path(name)), read_only_s(Path(name))
    table = Table("what", "measured", "allowed", "beside")
    for name, one in ones.items():
        beside = f"{library - bare:.0f}: pydantic and yaml, imported"
        table.add_row(
            f"validate {name}, user ms beyond an interpreter", f"{one - bare:.0f}", str(ONE_MS_MAX), beside
        )
    allowed = ALL_S_MAX * count / CONFIGS
    table.add_row(
        f"validate {count:,} configs, s",
        f"{checked:.2f}",
        f"{allowed:g}",
        f"{read:.2f}: read alone, x {checked / read:.1f}",
    )
    Console().print(table)


if __name__ == "__main__":
    main("--quick" in sys.argv)
