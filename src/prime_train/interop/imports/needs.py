"""What commands need of the place where they ran, and a rented machine may not have."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prime_train.interop.imports.draft import ONE_MACHINE, Draft
from prime_train.spec.tree import Node

OTHER_CHIPS = "there are no TPUs or other accelerators than NVIDIA's GPUs for rent"
_START = r"(?:^|[;&|(`{]|\b(?:then|do|else|exec|time|sudo|nohup)\b|\$\()[ \t]{0,80}(?:\w{1,60}=\S{0,200}[ \t]{1,20}){0,9}"
"""What stands before the name of a program."""


@dataclass(frozen=True)
class _Need:
    """A need by how commands show it. `why` says what to do about it."""

    shown: re.Pattern[str]
    why: str
    installed: re.Pattern[str] | None = None
    """What shows that the commands install it themselves; None: they cannot. An image may have it, too."""


def _program(names: str) -> re.Pattern[str]:
    return re.compile(rf"{_START}(?P<seen>(?:\S{{0,100}}/)?(?:{names})\b)")


_NEEDS = (
    _Need(
        _program(r"(?:docker|podman|nerdctl)[ \t]{1,9}(?:run|exec|build|compose|pull|load)|docker-compose"),
        "a rented machine may be a container itself, without Docker: write the image as hardware.image, and its "
        "command as trainer.command",
    ),
    _Need(
        _program(r"singularity|apptainer|shifter|enroot|podman-hpc|udocker"),
        "there are no containers of a cluster on the machine: write the image as hardware.image, and its command "
        "as trainer.command",
    ),
    _Need(
        _program(
            r"ibrun|jsrun|aprun|flux[ \t]{1,9}(?:run|submit)|qsub|bsub|sbatch|squeue|kubectl|sky[ \t]{1,9}\w+"
        ),
        "it is a command of a cluster or of its scheduler, and there is none on the machine: write what it starts",
    ),
    _Need(
        _program(r"conda|mamba|micromamba|(?:source|\.)[ \t]{1,9}activate"),
        "there is no conda on the machine unless hardware.image has it: install the packages under setup, such as "
        "with pip",
        re.compile(r"miniconda|miniforge|mambaforge|micro\.mamba|anaconda3?-", re.IGNORECASE),
    ),
    _Need(
        _program(r"uvx?(?=[ \t]{1,9}\w)"),
        "uv is not on every machine: install it under setup, such as with pip install uv, or name an image that has it",
        re.compile(r"astral\.sh/uv|\binstall\b[^\n;&|]{0,200}\buv\b"),
    ),
    _Need(
        _program(r"mpirun|mpiexec|orterun"),
        "there is no MPI on the machine unless hardware.image has it: install it under setup",
        re.compile(r"openmpi|open-mpi|mpich|\bimpi\b|intel-mpi", re.IGNORECASE),
    ),
    _Need(
        _program(r"aws[ \t]{1,9}s3\w*|gsutil|gcloud|azcopy|az[ \t]{1,9}storage|s5cmd|rclone|gcsfuse|s3fs"),
        "neither this program nor credentials of a cloud are on the machine: install it under setup, and add the "
        "variables of its credentials to secrets",
    ),
    _Need(
        re.compile(
            r"(?P<seen>\b(?:torch[-_]xla|libtpu|jax\[tpu\]|optimum-tpu|PJRT_DEVICE=TPU|XRT_TPU_CONFIG)\b)"
        ),
        OTHER_CHIPS,
    ),
    _Need(
        re.compile(
            r"(?P<seen>/whl/(?:nightly/)?rocm[\d.]*|\b(?:HIP_VISIBLE_DEVICES|ROCM_HOME|rocm-smi|HSA_OVERRIDE\w*|"
            r"torch_neuronx|neuron_parallel_compile|NEURON_\w+|optimum-neuron|habana_frameworks|optimum-habana|"
            r"hl-smi|torch_npu|ASCEND_\w+)\b)"
        ),
        OTHER_CHIPS,
    ),
    _Need(
        re.compile(
            r"(?P<seen>(?<!\S)--?(?:nnodes|num[-_]nodes|num[-_]machines|trainer\.num_nodes)[ \t=]+[\"']?"
            r"(?:[2-9]|[1-9]\d+|\d+:(?!1\b)\d+)\b)"
        ),
        ONE_MACHINE,
    ),
    _Need(
        re.compile(r"(?P<seen>(?<!\S)--?hostfile\b|\b(?:mpirun|mpiexec)\b[^\n;|&]{0,300}\s(?:-H|--host)\b)"),
        ONE_MACHINE,
    ),
    _Need(
        re.compile(
            r"(?P<seen>(?<!\S)--(?:master[-_]addr|main[-_]process[-_]ip|rdzv[-_]endpoint|coordinator[-_]address)[= ]"
            r"[\"']?(?!localhost\b|127\.|0\.0\.0\.0|::1)[A-Za-z0-9][\w.-]{0,100})"
        ),
        "it is the address of a machine of a cluster, and a run has one machine: write 127.0.0.1",
    ),
    _Need(
        re.compile(r"(?P<seen>\bgit@[\w.-]{1,80}:|\bssh://git@)"),
        "there is no SSH key on the machine: write the address with https, and a token under secrets if it is private",
    ),
    _Need(
        re.compile(r"(?P<seen>(?:~|\$HOME|\$\{HOME\})/\.(?:bashrc|bash_profile|profile|zshrc)\b)"),
        "only interactive shells read it, and commands run in none: write its variables under environment or secrets",
    ),
    _Need(
        re.compile(r"(?P<seen>\$\{\{[^}\n]{0,80}\}\})"),
        "the other tool writes a value in its place: write that value",
    ),
)


def list_needs(draft: Draft, lines: Mapping[int, str], what: str) -> None:
    """Refuse what the lines of a command, by their numbers in the file, need and a machine may not have. Each
    need is listed once, where it is seen first.
    """
    whole = "\n".join([*draft.setup, draft.command, *lines.values()])
    for need in _NEEDS:
        if need.installed is not None and (draft.names_image or need.installed.search(whole)):
            continue
        for number, line in lines.items():
            found = None if line.lstrip().startswith("#") else need.shown.search(line)
            if found is not None:
                draft.refuse_line(number, what, f"{_shown(found['seen'])}: {need.why}")
                break


def list_unset(draft: Draft, lines: Mapping[int, str], what: str, start: str) -> None:
    """Refuse the other tool's own variables, whose names start so, that the lines use and nothing sets. `start`: a
    pattern.
    """
    seen = set[str]()
    for number, line in lines.items():
        for name in re.findall(rf"\b{start}_[A-Z_]+\b", line):
            if name not in draft.environment and name not in seen and not re.search(rf"\b{name}=", line):
                seen.add(name)
                draft.refuse_line(
                    number,
                    what,
                    f"{name} is a variable of the other tool: write what stands for it, or add it under environment",
                )


def numbered(node: Node, text: str) -> dict[int, str]:
    """Return the lines of a value by their numbers in the file."""
    first = node.place.line + (1 if "\n" in text.strip("\n") else 0)
    return dict(enumerate(text.split("\n"), first))


def joined(parts: Iterator[dict[int, str]]) -> dict[int, str]:
    """Return all lines, those with the same number as one."""
    found: dict[int, str] = {}
    for part in parts:
        for number, line in part.items():
            found[number] = f"{found[number]} {line}" if number in found else line
    return found


def _shown(text: str) -> str:
    """Return the words of a command as they are quoted in a reason."""
    return " ".join(text.split())[:40]
