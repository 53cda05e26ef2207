"""`make bench`: every benchmark in turn, each printing its own table. `--only NAME` for one, `--quick` for a short look."""

import argparse
import importlib
import os
import platform

from rich.console import Console

BENCHMARKS = (
    "beats",
    "sweep",
    "dynamo",
    "lambda_cold",
    "takeover",
    "takeover_prime",
    "agent_idle",
    "startup",
    "validate",
    "github_validate",
    "validate_action",
    "memory_model",
    "transfer",
    "durable",
    "beside_training",
    "dedup",
    "compression",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=BENCHMARKS)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    console = Console()
    console.print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for name in [options.only] if options.only else BENCHMARKS:
        module = importlib.import_module(f"tests.benchmarks.{name}")
        console.rule((module.__doc__ or name).strip().splitlines()[0])
        module.main(quick=options.quick)


if __name__ == "__main__":
    main()
