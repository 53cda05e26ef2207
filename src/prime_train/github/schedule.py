"""Whether GitHub still starts the scheduled watcher of a repository: it switches schedules off by itself, and
tells people only by mail.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from prime_train.errors import PermanentError
from prime_train.github.api import GitHub
from prime_train.github.workflows import enable_workflow, workflow

WATCH = "watch.yml"
SWITCH_ON = f"gh workflow enable {WATCH}"
"""The command of GitHub's own tool."""


@dataclass(frozen=True)
class Off:
    """Why GitHub does not start a workflow, in words. `is_by_itself`: nobody asked for that."""

    why: str
    is_by_itself: bool


OFF: Mapping[str, Off] = {
    "disabled_inactivity": Off(
        "GitHub switched it off, as it does after 60 days without activity in a public repository", True
    ),
    "disabled_fork": Off("GitHub leaves the schedules of a fork off until somebody switches them on", True),
    "disabled_manually": Off("somebody switched it off", False),
}
"""The states of a workflow that is off, as GitHub names them."""


@dataclass(frozen=True)
class ScheduleOff:
    """The scheduled watcher was found off. `is_on_again`: it was switched on here."""

    off: Off
    is_on_again: bool = False

    @property
    def text(self) -> str:
        """Return what is wrong and what to do, in sentences."""
        if self.is_on_again:
            return f"The schedule of {WATCH} was off: {self.off.why}. It is on again."
        lost = (
            "While it is off, this repository replaces no lost machine, unless another watcher runs beside "
            "the control plane."
        )
        return f"The schedule of {WATCH} is off: {self.off.why}. {lost} Switch it on: {SWITCH_ON}"


def schedule_off(github: GitHub, *, is_live: bool, enables: bool = False) -> ScheduleOff | None:
    """Return why the repository's scheduled watcher does not run; None if it does, if there is none, or if
    the token may not see it.

    `is_live`: whether runs depend on it; without any, what a person switched off is left unsaid. `enables`:
    whether to switch on what GitHub switched off, if the token may; what a person did is never undone. Raises
    ExternalError if GitHub does not answer.
    """
    found = workflow(github, WATCH)
    off = OFF.get(found.state) if found is not None else None
    if off is None or not (off.is_by_itself or is_live):
        return None
    return ScheduleOff(off, is_on_again=enables and off.is_by_itself and _enabled(github))


def _enabled(github: GitHub) -> bool:
    try:
        enable_workflow(github, WATCH)
    except PermanentError:
        # Tokens of jobs may seldom do this: people are told instead.
        return False
    return True
