"""Output of commands that make the same request for several runs, some of which may fail."""

import os
import sys
from collections.abc import Callable, Sequence

import typer

from prime_train.exit_codes import Exit
from prime_train.runs.requests import RunResult
from prime_train.runs.run import Run
from prime_train.text.explained_errors import explained, is_debugging


def printed(result: RunResult, text: Callable[[Run], str], *, quiet: bool = False) -> Exit:
    """Print the result for one run, or the reason why it failed; return the exit code for this run alone."""
    if result.run is not None:
        if not quiet:
            typer.echo(f"{result.run.run.run_id}: {text(result.run.run)}")
        return Exit.OK
    assert result.error is not None
    code, why = explained(result.error, debug=is_debugging(os.environ))
    print(f"prime-train: {why}", file=sys.stderr)
    return code


def exit_code(codes: Sequence[Exit], failed_to: str) -> Exit:
    """Return the code of the first failure; if there are several runs, also print how many failed."""
    failed = [code for code in codes if code is not Exit.OK]
    if len(codes) > 1 and failed:
        print(f"prime-train: {len(failed)} of {len(codes)} runs {failed_to}", file=sys.stderr)
    return failed[0] if failed else Exit.OK
