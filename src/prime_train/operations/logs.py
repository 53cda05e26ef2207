"""Read the end of a run's newest log, wherever it is stored."""

from collections.abc import Callable
from dataclasses import dataclass

from prime_train.control_plane.wiring.home import Home
from prime_train.operations.log_tail import Tail, kept_log, log_on_disk
from prime_train.operations.machine import reached, why_unknown
from prime_train.operations.remote_log import remote_lines
from prime_train.ports import RunRecord, TemporaryError


@dataclass(frozen=True)
class LogEnd:
    """The end of a log. `name`: where it is stored, empty if there is none; `text`: its last lines; `tail`: reads what is appended to it
    later, if it is on this machine."""

    name: str
    text: str
    tail: Tail


def log_end(home: Home, held: RunRecord, lines: int, warn: Callable[[str], None], *, asks_machine: bool = True) -> LogEnd:
    """Return the last lines of the run's newest log: on the disk of the run's machine, here or elsewhere, or else from the evidence in the
    bucket. If a machine cannot be reached, `warn` is called with the reason, and the evidence is used. With `asks_machine` False, no
    rented machine is logged in to."""
    path = log_on_disk(home, held.run)
    tail = Tail(path)
    name, text = (str(path), tail.last(lines)) if path is not None else ("", "")
    if not name and asks_machine:
        name, text = _elsewhere(home, held, lines, warn)
    if not name:
        name, text = kept_log(home, held.run, lines)
    return LogEnd(name, text, tail)


def _elsewhere(home: Home, held: RunRecord, lines: int, warn: Callable[[str], None]) -> tuple[str, str]:
    unknown = why_unknown(home, held.run)
    if unknown:
        warn(unknown)
        return "", ""
    try:
        with reached(home, held.run) as machine:
            name, text = remote_lines(machine, lines) if machine is not None else ("", "")
    except TemporaryError as error:
        warn(str(error))
        return "", ""
    return (f"{name} of attempt {held.run.attempt}", text) if name else ("", "")
