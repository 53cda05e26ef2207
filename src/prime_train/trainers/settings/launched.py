"""What the program that starts a trainer says: in how many processes, by a flag, by a variable, or in a file of
accelerate's.
"""

from dataclasses import replace

from prime_train.spec.launchers import launcher_config, machines_of, processes_of
from prime_train.spec.rule import Document, Subject
from prime_train.spec.tree import Mapping
from prime_train.trainers.settings.view import Setting

COMMAND = ("command",)
"""The path of what the command says; settings of the trainer have others."""
_PROCESSES, _MACHINES = "num_processes", "num_machines"


def accelerate_file(subject: Subject) -> Document | None:
    """Return accelerate's settings that the command names; None if they are not in the working tree."""
    return dict(subject.named).get(launcher_config(subject.command) or "")


def machines(subject: Subject) -> Setting[int | None]:
    """Return the machines that the launcher starts processes on; None if nothing says how many."""
    given = machines_of(subject.command)
    if given is not None:
        return Setting(given, COMMAND)
    file = accelerate_file(subject)
    count, node = (file.number(_MACHINES), file.at(_MACHINES)) if file is not None else (None, None)
    if file is None or node is None or not isinstance(count, int):
        return Setting(None)
    return Setting(count, (_MACHINES,), replace(node.place, file=file.file_of(node)))


def processes(subject: Subject) -> Setting[int | None]:
    """Return the processes that the command starts on its machine; None if it does not say, or if they are
    spread over several machines.
    """
    environment = subject.spec.environment if subject.spec is not None else {}
    started = processes_of(subject.command, environment)
    if started is not None:
        return Setting(started, COMMAND)
    file = accelerate_file(subject)
    if file is None or (file.number(_MACHINES) or 1) != 1:
        return Setting(None)
    node, count = file.at(_PROCESSES), file.number(_PROCESSES)
    if node is None or not isinstance(count, int) or isinstance(node, Mapping) or count < 1:
        return Setting(None)
    return Setting(count, (_PROCESSES,), replace(node.place, file=file.file_of(node)))
