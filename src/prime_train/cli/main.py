"""`prime-train`: where a call starts."""

import sys

from prime_train.exits import end
from prime_train.output import close_doors

QUICK = ("validate", "lint")
"""Verbs that do without the library for command lines, where they can."""


def main() -> None:
    """Runs one verb and leaves with its exit code."""
    close_doors()
    try:
        _run()
    except SystemExit as error:
        end(error)
        raise


def _run() -> None:
    if sys.argv[1:2] and sys.argv[1] in QUICK:
        from prime_train.cli.fast_path import quick

        quick(sys.argv[1:])
    from prime_train.cli.verbs import app

    app()
