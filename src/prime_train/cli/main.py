"""The entry point of `prime-train`."""

import sys

from prime_train.exits import end
from prime_train.output import install_safe_streams

QUICK = ("validate", "lint")
"""Commands that can run without loading Typer."""


def main() -> None:
    """Run one command and exit with its exit code."""
    install_safe_streams()
    try:
        _run()
    except SystemExit as error:
        end(error)
        raise


def _run() -> None:
    if sys.argv[1:2] and sys.argv[1] in QUICK:
        from prime_train.cli.validation.fast_path import run_and_exit

        run_and_exit(sys.argv[1:])
    from prime_train.cli.verbs import app

    app()
