"""Runs the commands that prepare the working tree, in order; the first failure ends the attempt."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import psutil

from prime_agent.before_training.phase import Ended, PhaseError, Shell
from prime_agent.trainer.environment import without_secrets
from prime_train.spec.causes import Cause
from prime_train.text.outages import ended_by_outage, set_up_failed
from prime_train.trainers.conventions.kernels import build_jobs

COMMAND_SHOWN_MAX = 200
LINE_SHOWN_MAX = 200
JOBS = "MAX_JOBS"
"""The variable with the number of compiler processes that ninja starts for torch's extensions; by default as
many as there are cores, for which most machines have too little memory.
"""


def set_up(commands: Sequence[str], shell: Shell, *, timeout_s: int, note: Callable[[str], None]) -> None:
    """Run the commands, each for at most `timeout_s` seconds; services that they start keep running. They get
    MAX_JOBS, unless it is set.

    Raises PhaseError if one fails, and Called if the phase is cancelled.
    """
    jobs = build_jobs(os.cpu_count() or 1, free_bytes())
    shell = replace(shell, env={JOBS: str(jobs), **shell.env})
    for number, command in enumerate(commands, start=1):
        shown = without_secrets(command.strip(), shell.secrets)[:COMMAND_SHOWN_MAX]
        note(f"setup {number}/{len(commands)}: {shown}")
        ended = shell.run(command, name=f"setup-{number}", timeout_s=timeout_s, daemons=True)
        if ended.timed_out:
            raise PhaseError(
                Cause.SETUP_FAILED, f"`{shown}` did not end within {timeout_s} s", log_tail=ended.tail
            )
        if ended.code != 0:
            raise PhaseError(
                cause_of(ended), set_up_failed(shown, ended.code, last_line(ended.tail)), log_tail=ended.tail
            )


def free_bytes(limit: Path = Path("/sys/fs/cgroup/memory.max")) -> int:
    """Return the bytes of memory that programs may still take: those that are free, or fewer if the container
    has a lower limit.
    """
    free: int = psutil.virtual_memory().available
    try:
        return min(free, int(limit.read_text()))
    except (OSError, ValueError):
        # The first version of control groups, or "max": no limit.
        return free


def cause_of(ended: Ended) -> Cause:
    """Return the cause of a command's failure: the network's, if the last errors of its output say so,
    because then another machine may do better.
    """
    return Cause.NETWORK_ERROR if ended_by_outage(ended.tail) else Cause.SETUP_FAILED


def last_line(tail: str) -> str:
    """Return the last line of an output that is not empty, cut to `LINE_SHOWN_MAX` characters."""
    return next((line.strip()[:LINE_SHOWN_MAX] for line in reversed(tail.splitlines()) if line.strip()), "")
