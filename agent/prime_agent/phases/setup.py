"""Runs the commands that prepare the working tree, in order; the first failure ends the attempt."""

from collections.abc import Callable, Sequence

from prime_agent.phases.phase import Ended, PhaseError, Shell
from prime_agent.trainer.environment import without_secrets
from prime_train.core.causes import Cause
from prime_train.core.next_action import set_up_failed
from prime_train.core.text.outages import ended_by_outage

COMMAND_SHOWN_MAX = 200
LINE_SHOWN_MAX = 200


def set_up(commands: Sequence[str], shell: Shell, *, timeout_s: int, note: Callable[[str], None]) -> None:
    """Run the commands, each for at most `timeout_s` seconds; services that they start keep running.

    Raises PhaseError if one fails, and Called if the phase is cancelled.
    """
    for number, command in enumerate(commands, start=1):
        shown = without_secrets(command.strip(), shell.secrets)[:COMMAND_SHOWN_MAX]
        note(f"setup {number}/{len(commands)}: {shown}")
        ended = shell.run(command, name=f"setup-{number}", timeout_s=timeout_s, daemons=True)
        if ended.timed_out:
            raise PhaseError(Cause.SETUP_FAILED, f"`{shown}` did not end within {timeout_s} s", log_tail=ended.tail)
        if ended.code != 0:
            raise PhaseError(cause_of(ended), set_up_failed(shown, ended.code, last_line(ended.tail)), log_tail=ended.tail)


def cause_of(ended: Ended) -> Cause:
    """Return the cause of a command's failure: the network's, if the last errors of its output say so, because then another machine may do
    better."""
    return Cause.NETWORK_ERROR if ended_by_outage(ended.tail) else Cause.SETUP_FAILED


def last_line(tail: str) -> str:
    """Return the last line of an output that is not empty, cut to `LINE_SHOWN_MAX` characters."""
    return next((line.strip()[:LINE_SHOWN_MAX] for line in reversed(tail.splitlines()) if line.strip()), "")
