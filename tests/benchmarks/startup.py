"""Start-up: user time of `prime-train --help` and of `validate` on one config, beside a bare interpreter and
a bare typer program.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[2]
BARE_TYPER = (
    "import typer\napp = typer.Typer()\n@app.command()\ndef hello() -> None:\n    pass\napp(['--help'])\n"
)


def user_s(command: list[str]) -> float:
    """Return the user CPU seconds of one run of the command."""
    before = os.times().children_user
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
    return os.times().children_user - before


def main(quick: bool = False) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".py") as bare:
        bare.write(BARE_TYPER)
        bare.flush()
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "a bare typer program --help": [sys.executable, bare.name],
            "prime-train --help": [str(BIN / "prime-train"), "--help"],
            "prime-train validate configs/demo.yaml": [
                str(BIN / "prime-train"),
                "validate",
                str(ROOT / "configs" / "demo.yaml"),
            ],
        }
        table = Table("command", "user ms (median)", "min", "x bare interpreter")
        floor = None
        for name, command in commands.items():
            times = sorted(user_s(command) for _ in range(5 if quick else 21))
            floor = floor or statistics.median(times)
            middle = statistics.median(times)
            table.add_row(name, f"{middle * 1000:.0f}", f"{times[0] * 1000:.0f}", f"{middle / floor:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
