"""`make bench`: runs all benchmarks in turn, each of which prints its own table. `--only NAME ...` for some,
`--quick` for a short version.

`make bench-quick` runs the short version of those of the control plane, as CI does: a benchmark that nobody
runs breaks unseen.
"""

import argparse
import importlib
import os
import platform
import sys

from rich.console import Console

BENCHMARKS = (
    "heartbeats",
    "sweep",
    "outages",
    "dynamo",
    "lambda_cold",
    "lambda_warm",
    "takeover",
    "takeover_prime",
    "agent_idle",
    "startup",
    "validate",
    "github_validate",
    "validate_action",
    "memory.model",
    "transfer.transfer",
    "durable",
    "beside_training",
    "dedup",
    "compression",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=BENCHMARKS, nargs="+", default=BENCHMARKS)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    console = Console()
    console.print(
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}"
    )
    failed = [name for name in options.only if not _ran(name, options.quick, console)]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def _ran(name: str, quick: bool, console: Console) -> bool:
    """Run one benchmark. A failure does not keep the others from running."""
    module = importlib.import_module(f"tests.benchmarks.{name}")
    console.rule((module.__doc__ or name).strip().splitlines()[0])
    try:
        module.main(quick=quick)
    except Exception:
        console.print_exception()
        return False
    return True


if __name__ == "__main__":
    main()
