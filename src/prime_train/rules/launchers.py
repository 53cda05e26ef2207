"""Programs that start a trainer: in how many processes, and with which file of settings."""

from collections.abc import Iterator
from itertools import pairwise

from prime_train.rules.command_line import flags_of, spelling_of, words

_PROCESSES = {
    "torchrun": "nproc_per_node",
    "torch.distributed.run": "nproc_per_node",
    "torch.distributed.launch": "nproc_per_node",
    "accelerate": "num_processes",
    "accelerate.commands.launch": "num_processes",
    "deepspeed": "num_gpus",
}
"""The flag of each program that says how many processes it starts on this machine."""
_MACHINES = frozenset(("nnodes", "num_machines", "num_nodes"))
"""Flags with which the number of processes may be that of several machines."""
_TAKE_CONFIG = {"axolotl": ("train",), "llamafactory-cli": ("train",), "lmf": ("train",)}
"""Programs that take the file of settings after one of these actions."""
_TAKE_CONFIG_MODULES = ("axolotl.cli.train", "llamafactory.cli")
_SUFFIXES = (".yaml", ".yml", ".json")


def processes_of(command: str) -> int | None:
    """Return the number of processes that the command starts on its machine; None if it does not say, or if they are spread over several
    machines."""
    for name, rest in _programs(command):
        if name in _PROCESSES:
            given = dict(flags_of(_up_to_script(rest)))
            text = given.get(_PROCESSES[name], "")
            several = [given[flag] for flag in _MACHINES if given.get(flag, "1") != "1"]
            return int(text) if text.isdecimal() and len(text) < 6 and not several else None
    return None


def spelling_of_processes(command: str) -> str:
    """Return the flag for the number of processes as the command spells it; empty if there is none."""
    return spelling_of(command, *_PROCESSES.values())


def trainer_part(command: str) -> tuple[str, ...]:
    """Return the words of the command from its script on, without those of the program that starts it; all if there is none such."""
    for name, rest in _programs(command):
        if name in _PROCESSES:
            return rest[len(_up_to_script(rest)) :]
    return words(command)


def config_named(command: str) -> str | None:
    """Return the settings file that the command names for the trainer, or None. The file of the program that starts it is another one."""
    own = (value for name, value in flags_of(trainer_part(command)) if name in ("config", "config_file") and value)
    return config_taken(command) or next(own, None)


def config_taken(command: str) -> str | None:
    """Return the settings file that the command gives to a program of its own, such as `axolotl train FILE`; None if there is none."""
    split = words(command)
    for at, (program, action) in enumerate(pairwise(split)):
        taken = split[at + 2 : at + 3] if action in _TAKE_CONFIG.get(program.rpartition("/")[2], ()) else ()
        taken = split[at + 1 : at + 2] if program in _TAKE_CONFIG_MODULES else taken
        if program == "llamafactory.cli" and action == "train":
            taken = split[at + 2 : at + 3]
        for name in taken:
            if name.endswith(_SUFFIXES):
                return name
    return None


def _programs(command: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the name of each program, or module, and the words after it."""
    split = words(command)
    for at, word in enumerate(split):
        yield word.rpartition("/")[2], split[at + 1 :]


def _up_to_script(split: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of the starting program: those before the trainer's script or module."""
    for at, word in enumerate(split):
        if word.endswith(".py") or word in ("-m", "--module", "trl"):
            return split[:at]
    return split
