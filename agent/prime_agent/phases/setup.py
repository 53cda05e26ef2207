"""Runs the commands that prepare the working tree, in order; the first failure ends the attempt."""

from collections.abc import Callable, Sequence

from prime_agent.phases.phase import PhaseError, Shell
from prime_agent.trainer.environment import without_secrets
from prime_train.core.causes import Cause

COMMAND_SHOWN_MAX = 200


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
            raise PhaseError(Cause.SETUP_FAILED, f"`{shown}` ended with code {ended.code}", log_tail=ended.tail)
