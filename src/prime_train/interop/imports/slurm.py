"""A batch script of Slurm: its #SBATCH lines, and the commands after them."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from prime_train.interop.imports.draft import ONE_MACHINE, Draft, in_bash, name_of
from prime_train.interop.imports.gpus import count_of, is_other_chip, kind_of
from prime_train.interop.imports.needs import OTHER_CHIPS, list_needs
from prime_train.spec.tree import Scalar, SourcePosition

_SHELLS = re.compile(r"(?!#!)|#!\s*(/usr/bin/env\s+)?(/\S*/)?(ba|da|z)?sh\b")
"""The first line of a script that is one of a shell, or does not say for what it is."""
_DIRECTIVE = re.compile(r"#SBATCH\b[ \t]*(.*)")
_SHORT = {
    "J": "job-name",
    "N": "nodes",
    "n": "ntasks",
    "G": "gpus",
    "t": "time",
    "c": "cpus-per-task",
    "p": "partition",
    "A": "account",
    "o": "output",
    "e": "error",
    "C": "constraint",
    "D": "chdir",
    "a": "array",
    "q": "qos",
    "d": "dependency",
    "w": "nodelist",
    "x": "exclude",
    "b": "begin",
    "L": "licenses",
    "H": "hold",
    "I": "immediate",
    "i": "input",
    "k": "no-kill",
    "m": "distribution",
    "s": "oversubscribe",
    "O": "overcommit",
    "Q": "quiet",
    "v": "verbose",
    "M": "clusters",
    "S": "core-spec",
    "W": "wait",
    "B": "extra-node-info",
    "F": "nodefile",
}
_TIME = re.compile(r"(?:(\d{1,3})-)?(\d{1,4})(?::(\d{1,2}))?(?::(\d{1,2}))?")
_ONE = re.compile(r"0*1(-0*1)?")
_CLUSTER = "it is about Slurm's cluster; prime-train rents a machine for each attempt"
_CHOSEN = "machines are chosen by their GPUs, disk and price"
_UNKNOWN = "prime-train knows no such option, and it may change what runs: delete it if it does not"
_WHY = {
    **dict.fromkeys(("output", "error", "open-mode"), "the output is kept with the run"),
    **dict.fromkeys(
        (
            *(
                "mem",
                "mem-per-gpu",
                "mem-per-cpu",
                "cpus-per-task",
                "cpus-per-gpu",
                "exclusive",
                "threads-per-core",
            ),
            *(
                "cores-per-socket",
                "sockets-per-node",
                "ntasks-per-core",
                "mincpus",
                "mem-bind",
                "hint",
                "tmp",
            ),
            *(
                "gpu-bind",
                "gpu-freq",
                "cpu-freq",
                "distribution",
                "gres-flags",
                "core-spec",
                "ntasks-per-socket",
            ),
        ),
        _CHOSEN,
    ),
    **dict.fromkeys(
        (
            *(
                "partition",
                "account",
                "qos",
                "reservation",
                "nodelist",
                "exclude",
                "comment",
                "begin",
                "deadline",
            ),
            *(
                "switches",
                "nice",
                "propagate",
                "parsable",
                "wckey",
                "priority",
                "cluster",
                "clusters",
                "profile",
            ),
            *(
                "contiguous",
                "verbose",
                "quiet",
                "kill-on-invalid-dep",
                "wait-all-nodes",
                "time-min",
                "hold",
                "wait",
            ),
            *(
                "use-min-nodes",
                "spread-job",
                "immediate",
                "no-kill",
                "oversubscribe",
                "overcommit",
                "get-user-env",
            ),
            *(
                "acctg-freq",
                "mcs-label",
                "power",
                "thread-spec",
                "prefer",
                "extra-node-info",
                "nodefile",
                "network",
            ),
        ),
        _CLUSTER,
    ),
    **dict.fromkeys(
        ("requeue", "no-requeue"),
        "lost machines are replaced in any case, from the newest complete checkpoint",
    ),
    "signal": "see trainer.stop_s",
    "mail-type": "see alerts",
    "mail-user": "see alerts",
}
_MOUNTS = (
    "no file of the cluster is on a rented machine: fetch what the command reads under setup; checkpoints are kept in "
    "the run's bucket"
)
_REFUSED = {
    "chdir": "commands run in the working tree: write its folder in there as trainer.code.folder",
    "dependency": "it starts after another job: fetch what that one makes under setup, and delete it",
    "container-mounts": _MOUNTS,
    "container": "it is a container of the cluster: write its image as hardware.image",
    "container-name": "it is a container of the cluster: write its image as hardware.image",
    "container-workdir": "commands run in the working tree: change to the folder in the command",
    "hetjob": "its parts are several machines, and a run has one",
    "packjob": "its parts are several machines, and a run has one",
    "licenses": "there are no licences of the cluster: delete it if the command needs none",
    "bb": _MOUNTS,
    "bbf": _MOUNTS,
    "input": "no file of the cluster is there: write < FILE behind the command",
    "export-file": "its variables are not in this file: add them one by one to environment or secrets",
    "uenv": "it is an environment of the cluster: see hardware.image and setup",
    "view": "it is an environment of the cluster: see hardware.image and setup",
}
_ALIASES = {"tasks-per-node": "ntasks-per-node", "workdir": "chdir", "core": "core-spec"}
_SRUN_REFUSED = frozenset(
    (
        "D",
        "chdir",
        "multi-prog",
        "het-group",
        "pack-group",
        "export",
        "i",
        "input",
        "r",
        "relative",
        "gpus-per-task",
    )
)
"""Options of srun that change what the command sees, besides those of containers."""
_SRUN_FLAGS = frozenset(
    (
        "l",
        "u",
        "K",
        "label",
        "unbuffered",
        "kill-on-bad-exit",
        "exclusive",
        "overlap",
        "exact",
        "no-kill",
        "quiet",
    )
)
"""Options of srun that have no value, or one after an equals sign."""
_SRUN = re.compile(
    r"(?P<before>^|[;&|(]|\bexec\b|\btime\b|=\S{0,200}[ \t])(?P<blank>[ \t]*)srun\b[ \t]*", re.MULTILINE
)
_HOSTS = re.compile(
    r"\$\([ \t]*scontrol[ \t]+show[ \t]+hostnames?\b[^()]*\)|`[ \t]*scontrol[ \t]+show[ "
    r"\t]+hostnames?\b[^`]*`"
)
_MODULES = re.compile(r"[ \t]*(module|ml)[ \t]+(load|purge|use|add|swap|unload|restore|list)\b[^;&|]*")
_ARGUMENTS = re.compile(r"\$[1-9@*]|\$\{[1-9@*][^}]*\}")
_QUOTED = re.compile(r"'[^']*'")
"""Text in which a shell replaces nothing, such as a program of awk."""
_TOOLS = re.compile(r"(?<![\w./-])(srun|scontrol|sbatch|squeue|scancel|sacct|sbcast)(?![\w./-])")
_VARIABLES = re.compile(r"\bSLURM_[A-Z_]+\b")
_PATH = re.compile(
    r"(?<![\w./$})*-])(?P<path>(?:~|\$\{?(?:HOME|SCRATCH|WORK|PROJECT|STORE|SLURM_TMPDIR|TMPDIR|GSCRATCH|PSCRATCH|CFS|"
    r"DATADIR|WORKDIR)\b\}?)?/[\w.+-]+(?:/[\w.+-]*){0,20})"
)
"""A path that is not below the folder in which the script is submitted."""
_ON_EVERY_MACHINE = (
    "/dev/",
    "/tmp",
    "/bin/",
    "/usr/bin/",
    "/usr/sbin",
    "/etc/",
    "/proc/",
    "/sys/",
    "/var/tmp",
    "/run/",
)
_STARTS_TASKS = re.compile(r"\b(srun|mpirun|mpiexec|orterun)\b|\bSLURM_(NTASKS|NPROCS|TASKS)")
"""What starts as many processes as a script asks for; alone, the script is one process on that many cores."""
_SET = re.compile(
    r"(?:(?:^|[\s;&|({])(?:(?:export|local|declare|readonly|typeset)[ \t]+(?:-\w+[ \t]+)?)?|\bfor[ \t]+|\bread[ \t]+(?:-\w+[ \t]+)*)"
    r"([A-Za-z_]\w*)(?=\+?=|\[\w*\]=|[ \t]+in\b|[ \t]*(?:$|;|<))",
    re.MULTILINE,
)
"""The names that a script sets."""
_SET_OTHERWISE = re.compile(
    r"\b(?:mapfile|readarray)[ \t]+(?:-\w[ \t]+)*([A-Za-z_]\w*)|\bgetopts[ \t]+\S+[ \t]+([A-Za-z_]\w*)|"
    r"\bprintf[ \t]+-v[ \t]+([A-Za-z_]\w*)"
)
_COMMENT = re.compile(r"(?<=\s)#\s.*$")
_USED = re.compile(
    r"(?<!\\)\$(?:(?P<plain>[A-Za-z_]\w*)|\{[#!]?(?P<braces>[A-Za-z_]\w*)(?P<default>:?[-+=?])?)"
)
_OF_SHELLS = frozenset(
    (
        *(
            "HOME",
            "PATH",
            "PWD",
            "OLDPWD",
            "USER",
            "LOGNAME",
            "SHELL",
            "HOSTNAME",
            "RANDOM",
            "SECONDS",
            "UID",
            "EUID",
        ),
        *(
            "PPID",
            "LINENO",
            "IFS",
            "OPTARG",
            "OPTIND",
            "REPLY",
            "PIPESTATUS",
            "FUNCNAME",
            "TMPDIR",
            "LANG",
            "TERM",
        ),
        *("LD_LIBRARY_PATH", "PYTHONPATH", "EPOCHSECONDS", "CUDA_VISIBLE_DEVICES", "LC_ALL"),
    )
)


@dataclass(frozen=True)
class _Option:
    """An option of an #SBATCH line."""

    name: str
    value: str
    line: int

    @property
    def place(self) -> Scalar:
        return Scalar(SourcePosition(self.line), self.value, self.value)


def read_slurm(draft: Draft, source: str) -> None:
    """Fill the draft with the script."""
    lines = source.splitlines()
    options = {option.name: option for option in _options(lines)}
    _take_options(draft, options, starts_tasks=_STARTS_TASKS.search(source) is not None)
    first = next((number for number, line in enumerate(lines, 1) if _is_command(line)), len(lines) + 1)
    if not _SHELLS.match(lines[0] if lines else ""):
        draft.refuse(
            _at(1), "commands", "the script is not one of sh or bash: write the command that runs it"
        )
    draft.command = _commands(draft, lines, first)
    _own_variables(draft, options)
    for name in sorted(set(_VARIABLES.findall(draft.command)) - set(draft.environment)):
        number = next(
            (number for number, line in enumerate(lines, 1) if name in line and _is_command(line)), first
        )
        if not re.search(rf"\b{name}=|\$\{{{name}:?[-+=]", draft.command):
            why = f"{name} is a variable of Slurm: write what stands for it, or add it under environment"
            draft.refuse(_at(number), "commands", why)
    for _, numbered in draft.lines:
        _list_outer(draft, numbered)


def _is_command(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _options(lines: list[str]) -> Iterator[_Option]:
    """Yield the options of the #SBATCH lines. Slurm reads none after the first command."""
    for number, line in enumerate(lines, 1):
        if _is_command(line):
            return
        found = _DIRECTIVE.match(line)
        try:
            words = shlex.split(found[1], comments=True) if found is not None else []
        except ValueError:
            words = found[1].split() if found is not None else []
        while words:
            word = words.pop(0)
            if not word.startswith("-"):
                # Between the parts of a job with several kinds of machines stands the word hetjob alone.
                yield _Option(word, "", number)
                continue
            name, sign, value = word.lstrip("-").partition("=")
            if not word.startswith("--"):
                name, value, sign = name[:1], name[1:] + sign + value, "=" if name[1:] else ""
            if not sign and words and not words[0].startswith("-"):
                value = words.pop(0)
            name = _SHORT.get(name, name) if not word.startswith("--") else name
            yield _Option(_ALIASES.get(name, name), value, number)


def _take_options(draft: Draft, options: dict[str, _Option], *, starts_tasks: bool) -> None:
    """Take over the options. `starts_tasks`: whether the script starts as many processes as they say."""
    tasks = _number(options, "ntasks") or _number(options, "ntasks-per-node") or 1
    for name, option in options.items():
        what = f"#SBATCH --{name}"
        match name:
            case "job-name":
                draft.name = name_of(option.value)
            case "nodes":
                if not _ONE.fullmatch(option.value):
                    draft.refuse(option.place, what, ONE_MACHINE)
            case "ntasks" | "ntasks-per-node":
                if not starts_tasks:
                    draft.leave(option.place, what, _CHOSEN)
                elif not _ONE.fullmatch(option.value):
                    why = (
                        f"Slurm's srun starts {option.value[:20]} processes; let the command start "
                        "them: torchrun --nproc_per_node"
                    )
                    draft.refuse(option.place, what, why)
            case "gres" | "gpus" | "gpus-per-node" | "gpus-per-task":
                _gpus(draft, option, tasks if name == "gpus-per-task" else 1)
            case "time":
                draft.hours = _hours(option.value)
                if draft.hours is None and option.value.strip().upper() not in ("0", "UNLIMITED", "INFINITE"):
                    draft.refuse(option.place, what, "this is not a duration: write budget.hours")
            case "constraint":
                kinds = [
                    kind
                    for word in re.split(r"[&|,()\[\]*]", option.value)
                    if word and (kind := kind_of(word))
                ]
                draft.gpus += [kind for kind in dict.fromkeys(kinds) if kind not in draft.gpus]
                if is_other_chip(option.value):
                    draft.refuse(option.place, what, OTHER_CHIPS)
                elif not kinds:
                    draft.leave(option.place, what, _CLUSTER)
            case "export":
                _exported(draft, option, what)
            case "array":
                draft.refuse(
                    option.place,
                    what,
                    "an array is several runs, and a config describes one; launch one for each",
                )
            case "container-image":
                draft.set_image(option.value.removeprefix("docker://"), option.place, what)
            case _ if name in _WHY:
                draft.leave(option.place, what, _WHY[name])
            case _:
                draft.refuse(option.place, what, _REFUSED.get(name, _UNKNOWN))
    _kind_by_partition(draft, options)


def _kind_by_partition(draft: Draft, options: dict[str, _Option]) -> None:
    """Take the kind of GPU from the partition's name, such as gpu-h100, if nothing else tells it."""
    partition = options.get("partition")
    if draft.count is not None and not draft.gpus and partition is not None:
        words = [partition.value, *re.split(r"[-_:,]", partition.value)]
        draft.gpus += [kind for kind in dict.fromkeys(map(kind_of, words)) if kind][:1]
        if any(map(is_other_chip, words)):
            draft.refuse(partition.place, "#SBATCH --partition", OTHER_CHIPS)


def _gpus(draft: Draft, option: _Option, times: int) -> None:
    """Take over a number of GPUs, with their kind if it is given: 4, a100:4, or gpu:a100:4."""
    what = f"#SBATCH --{option.name}"
    for asked in option.value.split(","):
        words = re.sub(r"\(.*\)", "", asked).split(":")
        if option.name == "gres":
            if words[0] not in ("gpu", "gres/gpu"):
                why = "it is no GPU: delete it if the command does not need it"
                draft.refuse(option.place, what, why)
                continue
            words = words[1:]
        text = words.pop() if words and words[-1].isdecimal() else "1"
        count = count_of(str(int(text) * times)) if len(text) < 4 else None
        name = words[0] if words else ""
        if name and is_other_chip(name):
            draft.refuse(option.place, what, f"{name[:40]} is no NVIDIA GPU; only those are rented")
        elif count is None:
            draft.refuse(option.place, what, f"{option.value[:20]!r} is not a number of GPUs of one machine")
        elif name and not kind_of(name):
            draft.count = count
            draft.refuse(
                option.place,
                what,
                f"{name[:40]!r} is no kind of GPU that prime-train knows: write hardware.gpus",
            )
        elif draft.count not in (None, count):
            why = f"{count} GPUs besides {draft.count}: write one number, or hardware.variants"
            draft.refuse(option.place, what, why)
        else:
            draft.count = count
            draft.gpus += [kind for kind in [kind_of(name)] if kind and kind not in draft.gpus]


def _hours(text: str) -> float | None:
    """Return a time limit of Slurm in hours: minutes, minutes:seconds, hours:minutes:seconds, or
    days-hours[:minutes[:seconds]]; None if it is none.
    """
    found = _TIME.fullmatch(text.strip())
    if found is None:
        return None
    days, first, second, third = (int(part) if part else None for part in found.groups())
    if days is not None:
        hours = days * 24 + (first or 0) + (second or 0) / 60 + (third or 0) / 3600
    elif third is not None:
        hours = (first or 0) + (second or 0) / 60 + third / 3600
    else:
        hours = (first or 0) / 60 + (second or 0) / 3600
    return round(hours, 2) if hours >= 0.01 else None


def _exported(draft: Draft, option: _Option, what: str) -> None:
    for word in option.value.split(","):
        name, sign, value = word.partition("=")
        if sign and _PATH.search(value) and not value.startswith(_ON_EVERY_MACHINE):
            draft.refuse(option.place, f"{what} {name[:60]}", f"{value[:80]}: {_MOUNTS}")
        elif sign:
            draft.variable(name, Scalar(SourcePosition(option.line), value, value), f"{what} {name[:60]}")
        elif name.upper() not in ("ALL", "NONE", "NIL", ""):
            draft.variable(name, Scalar(SourcePosition(option.line), "", None), f"{what} {name[:60]}")


def _commands(draft: Draft, lines: list[str], first: int) -> str:
    """Return the commands of the script as they run on one machine without Slurm."""
    kept = []
    for number, line in enumerate(lines[first - 1 :], first):
        found = _MODULES.fullmatch(line)
        if found is not None and found[2] in ("load", "swap", "restore", "add", "use"):
            why = "modules are of Slurm's cluster: see hardware.image and setup, or delete it if nothing needs it"
            draft.refuse(_at(number), found[1], why)
        elif found is None and not _DIRECTIVE.match(line):
            kept.append((number, line))
    script = "\n".join(line for _, line in kept).strip("\n").rstrip()
    script = draft.without_secrets(Scalar(SourcePosition(first), script, script), script, "commands")
    for option in _srun_options(script):
        number = next((number for number, line in kept if "srun" in line), first)
        why = f"srun --{option[:40]} changes what the command sees: write what it does under setup or hardware.image"
        draft.refuse(_at(number), "commands", why)
    script = _without_srun(_HOSTS.sub("localhost", script))
    numbered = {number: _COMMENT.sub("", line) for number, line in kept if not line.lstrip().startswith("#")}
    _list_arguments(draft, numbered)
    tool = next(
        (found for line in script.split("\n") if _is_command(line) and (found := _TOOLS.search(line))), None
    )
    if tool is not None:
        number = next((number for number, line in numbered.items() if _TOOLS.search(line)), first)
        draft.refuse(
            _at(number), "commands", f"{tool[1]} is a command of Slurm, and there is none on the machine"
        )
    list_needs(draft, numbered, "commands")
    _list_paths(draft, numbered)
    draft.lines.append(("commands", numbered))
    return in_bash(script) if script else ""


def _list_arguments(draft: Draft, numbered: dict[int, str]) -> None:
    for number, line in numbered.items():
        if _ARGUMENTS.search(_QUOTED.sub("", line)):
            why = "the script takes arguments of sbatch, such as $1: write what stands for them"
            draft.refuse(_at(number), "commands", why)
            break


def _list_paths(draft: Draft, numbered: dict[int, str]) -> None:
    """Refuse paths of the cluster: what is there for every job is on no rented machine."""
    seen = set[str]()
    for number, line in numbered.items():
        for found in _PATH.finditer(line):
            path = found["path"][:80]
            if path not in seen and not path.startswith(_ON_EVERY_MACHINE):
                seen.add(path)
                draft.refuse(_at(number), "commands", f"{path}: {_MOUNTS}")


def _list_outer(draft: Draft, numbered: dict[int, str]) -> None:
    """Take over secrets, and refuse other variables, that the script uses and never sets: they come from the shell
    in which sbatch is called.
    """
    whole = "\n".join(numbered.values())
    own = set(_SET.findall(whole)) | set(draft.environment) | set(draft.secrets)
    own |= {name for names in _SET_OTHERWISE.findall(whole) for name in names}
    for number, line in numbered.items():
        for found in _USED.finditer(_QUOTED.sub("", line)):
            name = found["plain"] or found["braces"]
            if (
                name in own
                or name in _OF_SHELLS
                or name.startswith(("BASH", "OMPI_", "SLURM_"))
                or found["default"]
            ):
                continue
            own.add(name)
            value = Scalar(SourcePosition(number), "", None)
            draft.variable(name, value, f"commands ${name[:60]}")


def _srun_options(script: str) -> Iterator[str]:
    """Yield the options of srun that change what its command sees."""
    for found in _SRUN.finditer(script):
        text = script[found.end() : found.end() + 2000].partition("\n\n")[0]
        for option in re.finditer(
            r"(?<!\S)--?([A-Za-z][\w-]{0,40})(=?)(\S*)", text.replace("\\\n", " ").split("\n")[0]
        ):
            name, is_long = option[1], option[0].startswith("--")
            if not is_long:
                name = name[:1]
            if name.startswith("container-") or (name in _SRUN_REFUSED and option[3].upper() not in ("ALL",)):
                yield name
                break


def _without_srun(script: str) -> str:
    """Return the script without srun where it starts one process: its options are dropped, and the command is
    left.
    """
    found = _SRUN.search(script)
    while found is not None:
        after = _after_options(script, found.end())
        if after is None:
            found = _SRUN.search(script, found.end())
            continue
        start = found.start() + len(found["before"]) + len(found["blank"])
        script = script[:start] + script[after:]
        found = _SRUN.search(script, start)
    return script


def _after_options(script: str, at: int) -> int | None:
    """Return where the command after srun's options begins; None if that is not certain, or they ask for
    several processes.
    """
    option = re.compile(r"(--?)([A-Za-z][\w-]*)(=?)(\"[^\"$`]*\"|'[^']*'|[^\s;&|$`]*)(?:[ \t]|\\\n)+")
    value = re.compile(r"([^\s;&|$`\\-][^\s;&|$`\\]*)(?:[ \t]|\\\n)+")
    while found := option.match(script, at):
        dashes, name, sign, given = found.groups()
        if dashes == "-" and len(name) > 1 and not sign:
            name, given, sign = name[0], name[1:], "="
        at = found.end()
        if not sign and name not in _SRUN_FLAGS:
            follows = value.match(script, at)
            if follows is None:
                return None
            given, at = follows[1], follows.end()
        if _SHORT.get(name, name) in ("nodes", "ntasks", "ntasks-per-node") and not _ONE.fullmatch(
            given.strip("\"'")
        ):
            return None
    return None if script[at : at + 1] in ("-", "$", "", "\n", "\\") else at


def _at(line: int) -> Scalar:
    return Scalar(SourcePosition(line), "", "")


def _own_variables(draft: Draft, options: dict[str, _Option]) -> None:
    """Set those variables of Slurm that the commands use, as they are on one machine."""
    count = str(draft.count or 0)
    own = {
        **dict.fromkeys(
            ("SLURM_NNODES", "SLURM_JOB_NUM_NODES", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE"),
            "1",
        ),
        **dict.fromkeys(("SLURM_PROCID", "SLURM_NODEID", "SLURM_LOCALID", "SLURM_RESTART_COUNT"), "0"),
        **dict.fromkeys(("SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE", "SLURM_GPUS"), count),
        **dict.fromkeys(("SLURM_JOB_ID", "SLURM_JOBID"), "1"),
        **dict.fromkeys(
            ("SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURMD_NODENAME", "SLURM_LAUNCH_NODE_IPADDR"),
            "localhost",
        ),
        "SLURM_JOB_NAME": draft.name or "run",
        "SLURM_SUBMIT_DIR": ".",
    }
    cpus = options.get("cpus-per-task")
    if cpus is not None and cpus.value.isdecimal():
        own |= {"SLURM_CPUS_PER_TASK": cpus.value, "SLURM_CPUS_ON_NODE": cpus.value}
    used = set(_VARIABLES.findall(draft.command)) | (
        {"SLURMD_NODENAME"} if "SLURMD_NODENAME" in draft.command else set()
    )
    draft.environment.update(
        {name: value for name, value in own.items() if name in used and name not in draft.environment}
    )


def _number(options: dict[str, _Option], name: str) -> int | None:
    option = options.get(name)
    return (
        int(option.value)
        if option is not None and option.value.isdecimal() and 0 < len(option.value) < 4
        else None
    )
