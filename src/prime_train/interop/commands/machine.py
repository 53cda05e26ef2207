"""`python -m prime_train.interop.commands.machine FILES DISK`: what an exported task runs on its machine.

Exit codes: 0 the training has succeeded; 1 it has failed for good, or its budget is spent; 143 it saved
because it was told to end; others as everywhere.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import psutil
import typer

from prime_train.errors import ExternalError
from prime_train.exit_codes import Exit
from prime_train.interop.export.on_machine import Over, TaskMachine, launched, machine_of, mark_done
from prime_train.interop.export.used import noted
from prime_train.launch.stop import stop_if_active
from prime_train.status.commands.follow import follow
from prime_train.terminal.exits import end, reported
from prime_train.terminal.output import install_safe_streams

TOLD_TO_END = 128 + signal.SIGTERM


def main(argv: list[str]) -> int:
    machine = machine_of(Path(argv[1]), Path(argv[2]), os.environ)
    # The process was a shell at first, which has installed what it needed.
    here = launched(machine, time.time() - psutil.Process().create_time())
    if isinstance(here, Over):
        typer.echo(here.why)
        return Exit.OK if here.is_success else Exit.FINDINGS
    run = here.run
    start = run.lineage
    typer.echo(
        f"{machine.task}: run {run.run_id} starts from {start.text if start is not None else 'step 0'}"
    )
    told = threading.Event()

    def leave(*_: object) -> None:
        """Let the run save and end, once."""
        if not told.is_set():
            told.set()
            threading.Thread(target=_stop, args=(machine, run.run_id), name="stop").start()

    signal.signal(signal.SIGTERM, leave)
    with noted(here.notes, machine.home, run, lambda why: typer.echo(why, err=True)):
        code = follow(machine.home, run.run_id)
    if code is Exit.OK:
        mark_done(machine, run.run_id)
        return code
    return TOLD_TO_END if told.is_set() else code


def _stop(machine: TaskMachine, run_id: str) -> None:
    try:
        stop_if_active(machine.home.store(), run_id)
    except ExternalError as error:
        typer.echo(f"{run_id} could not be stopped: {error}", err=True)


if __name__ == "__main__":
    install_safe_streams()
    try:
        with reported():
            done = main(sys.argv)
        sys.exit(done)
    except SystemExit as error:
        end(error)
        raise
