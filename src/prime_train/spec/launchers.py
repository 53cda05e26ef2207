"""Commands that start a trainer: in how many processes, with which file of settings, and which files of the
working tree they need.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise

from prime_train.spec.config_format import flags_of, spelling_of, variables, words
from prime_train.spec.shell_scripts import script_named
from prime_train.spec.tree import Path

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
_TRL = "trl"
"""A program that takes the flags of accelerate among its own."""
_BY_VARIABLE = {"swift": "NPROC_PER_NODE", "llamafactory-cli": "NPROC_PER_NODE", "lmf": "NPROC_PER_NODE"}
"""Programs that read the number of processes from a variable."""
_TAKE_CONFIG = {
    "axolotl": ("train",),
    "llamafactory-cli": ("train",),
    "lmf": ("train",),
    "swift": ("sft", "pt", "rlhf"),
}
"""Programs that take the file of settings after one of these actions."""
_TAKE_CONFIG_MODULES = ("axolotl.cli.train", "llamafactory.cli")
_SUFFIXES = (".yaml", ".yml", ".json")
_CONFIG_FLAGS = ("config", "config_file", "job.config_file")
_TOML = ".toml"
_HERE = re.compile(r"^(?:\$\(pwd\)|\$\{?PWD\}?|\.)/")
"""What stands for the working tree at the start of a path."""


def processes_of(command: str, environment: Mapping[str, str] | None = None) -> int | None:
    """Return the number of processes that the command starts on its machine; None if it does not say, or if
    they are spread over several machines. `environment`: the variables that it is started with.
    """
    for name, rest in _programs(command):
        if name in _BY_VARIABLE:
            text = (environment or {}).get(_BY_VARIABLE[name], "")
            text = variables(command).get(_BY_VARIABLE[name], text)
            return int(text) if text.isdecimal() and len(text) < 6 else None
        if name in _PROCESSES or name == _TRL:
            given = dict(flags_of(rest if name == _TRL else _up_to_script(rest)))
            text = given.get(_PROCESSES.get(name, "num_processes"), "")
            several = [given[flag] for flag in _MACHINES if given.get(flag, "1") != "1"]
            return int(text) if text.isdecimal() and len(text) < 6 and not several else None
    return None


def machines_of(command: str) -> int | None:
    """Return the number of machines that the command starts processes on; None if it does not say."""
    for name, rest in _programs(command):
        if name in _BY_VARIABLE:
            text = variables(command).get("NNODES", "")
            return int(text) if text.isdecimal() and len(text) < 6 else None
        if name in _PROCESSES:
            given = dict(flags_of(_up_to_script(rest)))
            counts = (given[flag] for flag in sorted(_MACHINES) if flag in given)
            return next((int(text) for text in counts if text.isdecimal() and len(text) < 6), None)
    return None


def spelling_of_processes(command: str) -> str:
    """Return the flag for the number of processes as the command spells it; empty if there is none."""
    return spelling_of(command, *_PROCESSES.values())


def trainer_part(command: str) -> tuple[str, ...]:
    """Return the words of the command from its script on, without those of the program that starts it; all if
    there is none such.
    """
    for name, rest in _programs(command):
        if name in _PROCESSES:
            return rest[len(_up_to_script(rest)) :]
    return words(command)


def config_named(command: str) -> str | None:
    """Return the settings file that the command names for the trainer, or None. The file of the program that
    starts it is another one.
    """
    own = (value for name, value in flags_of(trainer_part(command)) if name in _CONFIG_FLAGS and value)
    return config_taken(command) or next(own, None) or _taken_by_script(command)


def hydra_config(command: str) -> str | None:
    """Return the path of the config that the command names for hydra, from the working tree; None if it names
    none. Without a folder it is one of the program's own.
    """
    given = dict(flags_of(trainer_part(command)))
    name, folder = given.get("config_name", ""), given.get("config_path") or given.get("config_dir", "")
    if not name or not folder:
        return None
    path = f"{_HERE.sub('', folder).rstrip('/')}/{name}"
    return path if path.endswith(_SUFFIXES) else f"{path}.yaml"


def launcher_config(command: str) -> str | None:
    """Return the settings file of the program that starts the trainer, such as accelerate's; None if the
    command names none.
    """
    for name, rest in _programs(command):
        if name in _PROCESSES or name == _TRL:
            given = flags_of(rest if name == _TRL else _up_to_script(rest))
            wanted = "accelerate_config" if name == _TRL else "config_file"
            return next((value for flag, value in given if flag == wanted and value), None)
    return None


def _taken_by_script(command: str) -> str | None:
    """Return the settings file that the command gives to a script without a flag: `train.py FILE`, as
    LLaMA-Factory's own script takes it, or `sft @ FILE`, as prime-rl does.
    """
    split = trainer_part(command)
    for at, word in enumerate(split):
        if word.startswith("@") and (name := word[1:] or "".join(split[at + 1 : at + 2])).endswith(_TOML):
            return name
    after = next((at + 1 for at, word in enumerate(split) if word.endswith(".py")), None)
    given = split[after : after + 1] if after is not None else ()
    return next((name for name in given if name.endswith((*_SUFFIXES, _TOML))), None)


def config_taken(command: str) -> str | None:
    """Return the settings file that the command gives to a program of its own, such as `axolotl train FILE`;
    None if there is none.
    """
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


def named_files(command: str, setup: Sequence[str]) -> Iterator[tuple[Path, str]]:
    """Yield the files of the working tree that a run's command and its set-up need, with the path of the
    setting that names them.
    """
    yield from ((("trainer", "command"), name) for name in _script_and_config(command) if is_within(name))
    for at, line in enumerate(setup):
        split = words(line)
        if "install" in split and is_plain(line):
            options = (name for option, name in pairwise(split) if option in ("-r", "--requirement"))
            yield from ((("setup", at), name) for name in options if is_within(name))


def is_plain(command: str) -> bool:
    """Return whether this is one command, and not several or one that changes the folder."""
    split = words(command)
    return not set(split) & {"cd", "&&", ";", "||", "|", "if", "for"} and not any(
        word.endswith(";") for word in split
    )


def _script_and_config(command: str) -> Iterator[str]:
    if not is_plain(command):
        return
    yield from islice((word for word in words(command) if word.endswith(".py") and " " not in word), 1)
    script = script_named(command)
    if script is not None:
        yield script[0]
    for named in (launcher_config(command), config_named(command)):
        # Without a suffix it is the name of a config that a library knows, such as torchtitan's llama3_8b.
        if named is not None and "." in named:
            yield named
    given = (value for name, value in flags_of(words(command)) if name == "deepspeed")
    yield from (value for value in given if value.endswith(_SUFFIXES))


def is_within(name: str) -> bool:
    """Return whether a name is that of a file in the working tree, as far as its form shows."""
    return (
        not name.startswith(("/", "~"))
        and ".." not in name.split("/")
        and "$" not in name
        and "{" not in name
    )


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
