"""A batch script of Slurm: its #SBATCH lines, and the commands after them."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from prime_train.interop.imports.draft import ONE_MACHINE, VARIABLE, Draft, in_bash, name_of
from prime_train.interop.imports.gpus import count_of, is_other_chip, kind_of
from prime_train.spec.tree import Scalar, SourcePosition

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
}
_TIME = re.compile(r"(?:(\d{1,3})-)?(\d{1,4})(?::(\d{1,2}))?(?::(\d{1,2}))?")
_ONE = re.compile(r"0*1(-0*1)?")
_CLUSTER = "it is about Slurm's cluster; prime-train rents a machine for each attempt"
_CHOSEN = "machines are chosen by their GPUs, disk and price"
_WHY = {
    **dict.fromkeys(("output", "error", "open-mode"), "the output is kept with the run"),
    **dict.fromkeys(
        ("mem", "mem-per-gpu", "mem-per-cpu", "cpus-per-task", "cpus-per-gpu", "exclusive"), _CHOSEN
    ),
    **dict.fromkeys(
        ("requeue", "no-requeue"),
        "lost machines are replaced in any case, from the newest complete checkpoint",
    ),
    "signal": "see trainer.stop_s",
    "chdir": "commands run in the working tree; see trainer.code",
    "mail-type": "see alerts",
    "mail-user": "see alerts",
}
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
    _take_options(draft, options)
    first = next((number for number, line in enumerate(lines, 1) if _is_command(line)), len(lines) + 1)
    draft.command = _commands(draft, lines, first)
    _own_variables(draft)


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
            name, sign, value = word.lstrip("-").partition("=")
            if not word.startswith("--"):
                name, value, sign = name[:1], name[1:] + sign + value, "=" if name[1:] else ""
            if not sign and words and not words[0].startswith("-"):
                value = words.pop(0)
            yield _Option(_SHORT.get(name, name), value, number)


def _take_options(draft: Draft, options: dict[str, _Option]) -> None:
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
                if not _ONE.fullmatch(option.value):
                    why = (
                        f"Slurm's srun starts {option.value[:20]} processes; let the command start "
                        "them: torchrun --nproc_per_node"
                    )
                    draft.refuse(option.place, what, why)
            case "gres" | "gpus" | "gpus-per-node" | "gpus-per-task":
                _gpus(draft, option, tasks if name == "gpus-per-task" else 1)
            case "time":
                draft.hours = _hours(option.value)
                if draft.hours is None:
                    draft.leave(option.place, what, "this is not a duration")
            case "constraint":
                kinds = [
                    kind
                    for word in re.split(r"[&|,()\[\]*]", option.value)
                    if word and (kind := kind_of(word))
                ]
                draft.gpus += [kind for kind in kinds if kind not in draft.gpus]
                if not kinds:
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
            case _:
                draft.leave(option.place, what, _WHY.get(name, _CLUSTER))


def _gpus(draft: Draft, option: _Option, times: int) -> None:
    """Take over a number of GPUs, with their kind if it is given: 4, a100:4, or gpu:a100:4."""
    what = f"#SBATCH --{option.name}"
    for asked in option.value.split(","):
        words = re.sub(r"\(.*\)", "", asked).split(":")
        if option.name == "gres":
            if words[0] not in ("gpu", "gres/gpu"):
                draft.leave(option.place, what, _CLUSTER)
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
            draft.leave(
                option.place,
                what,
                f"{name[:40]!r} is no kind of GPU that prime-train knows: write hardware.gpus",
            )
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
        if sign:
            draft.variable(name, Scalar(SourcePosition(option.line), value, value), f"{what} {name}")
        elif name not in ("ALL", "NONE", "NIL") and VARIABLE.fullmatch(name):
            draft.leave(
                option.place,
                f"{what} {name}",
                f"it has no value here: add {name} under environment, or under secrets",
            )


def _commands(draft: Draft, lines: list[str], first: int) -> str:
    """Return the commands of the script as they run on one machine without Slurm."""
    kept = []
    for number, line in enumerate(lines[first - 1 :], first):
        found = _MODULES.fullmatch(line)
        if found is not None:
            draft.leave(_at(number), found[1], "modules are of Slurm's cluster: see hardware.image and setup")
        elif not _DIRECTIVE.match(line):
            kept.append((number, line))
    script = "\n".join(line for _, line in kept).strip("\n").rstrip()
    script = draft.without_secrets(Scalar(SourcePosition(first), script, script), script, "commands")
    script = _without_srun(_HOSTS.sub("localhost", script))
    for number, line in kept:
        if _is_command(line) and _ARGUMENTS.search(_QUOTED.sub("", line)):
            draft.refuse(
                _at(number),
                "commands",
                "the script takes arguments of sbatch, such as $1: write what stands for them",
            )
            break
    tool = next(
        (found for line in script.split("\n") if _is_command(line) and (found := _TOOLS.search(line))), None
    )
    if tool is not None:
        number = next((number for number, line in kept if _is_command(line) and _TOOLS.search(line)), first)
        draft.refuse(
            _at(number), "commands", f"{tool[1]} is a command of Slurm, and there is none on the machine"
        )
    return in_bash(script) if script else ""


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


def _own_variables(draft: Draft) -> None:
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
