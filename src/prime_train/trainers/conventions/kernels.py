"""What the packages need whose installation compiles CUDA kernels: a compiler, the torch that they are
compiled for, and the right GPUs.

As of November 2026. A package that is not in the table may compile kernels, too; nothing is concluded about
it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

SETUPTOOLS = "setuptools<82"
"""The newest setuptools with pkg_resources, which torch before 2.9 imports to build extensions."""
SETUPTOOLS_SOURCE = "https://github.com/nerfstudio-project/gsplat/pull/899"
JOB_GIB = 9
"""Memory that one compiler process takes at its peak, as flash-attn's setup.py reckons it."""


@dataclass(frozen=True)
class Kernels:
    """A package whose installation compiles kernels if no wheel fits.

    `isolated_fails`: its build imports torch, which an isolated build environment lacks or has in another
    version; `tries_wheels`: its build first looks for a wheel of its maker's; `forced`: without a GPU in
    sight it compiles for the CPU only, unless FORCE_CUDA=1 is set; `from_source_only`: its index has wheels,
    so only a source is compiled; `own_list`: the variable that it reads for its GPUs instead of
    TORCH_CUDA_ARCH_LIST.
    """

    package: str
    source: str
    isolated_fails: bool = True
    tries_wheels: bool = False
    forced: bool = False
    from_source_only: bool = False
    own_list: str = ""


TABLE = (
    Kernels(
        "flash-attn",
        "https://github.com/Dao-AILab/flash-attention/blob/main/setup.py",
        tries_wheels=True,
        own_list="FLASH_ATTN_CUDA_ARCHS",
    ),
    Kernels(
        "causal-conv1d",
        "https://github.com/Dao-AILab/causal-conv1d/issues/39",
        tries_wheels=True,
        own_list="none: it compiles for all",
    ),
    Kernels(
        "mamba-ssm",
        "https://github.com/state-spaces/mamba/issues/625",
        tries_wheels=True,
        own_list="none: it compiles for all",
    ),
    Kernels(
        "xformers", "https://github.com/facebookresearch/xformers/blob/main/setup.py", from_source_only=True
    ),
    Kernels("deepspeed", "https://www.deepspeed.ai/tutorials/advanced-install/", isolated_fails=False),
    Kernels("apex", "https://github.com/NVIDIA/apex#from-source", from_source_only=True),
    Kernels("torch-scatter", "https://github.com/rusty1s/pytorch_scatter/blob/master/setup.py", forced=True),
    Kernels("torch-sparse", "https://github.com/rusty1s/pytorch_sparse/blob/master/setup.py", forced=True),
    Kernels("torch-cluster", "https://github.com/rusty1s/pytorch_cluster/blob/master/setup.py", forced=True),
    Kernels(
        "torch-spline-conv",
        "https://github.com/rusty1s/pytorch_spline_conv/blob/master/setup.py",
        forced=True,
    ),
    Kernels(
        "pytorch3d",
        "https://github.com/facebookresearch/pytorch3d/blob/main/INSTALL.md",
        forced=True,
        from_source_only=True,
    ),
    Kernels(
        "detectron2",
        "https://github.com/facebookresearch/detectron2/blob/main/setup.py",
        forced=True,
        from_source_only=True,
    ),
    Kernels("adam-atan2", "https://github.com/SamsungSAILMontreal/TinyRecursiveModels#readme"),
)
BY_PACKAGE = {row.package: row for row in TABLE}
BUILT_BY_SWITCH = re.compile(r"\bDS_BUILD_[A-Z_]+=1\b")
"""What makes deepspeed compile its kernels when it is installed; otherwise it does so when a training first
uses one.
"""

CAPABILITIES: dict[str, tuple[int, int]] = {
    **dict.fromkeys(("P100",), (6, 0)),
    **dict.fromkeys(("P40", "P4"), (6, 1)),
    **dict.fromkeys(("V100",), (7, 0)),
    **dict.fromkeys(("T4", "RTX4000", "RTX5000", "RTX6000", "RTX8000"), (7, 5)),
    **dict.fromkeys(("A100", "A30"), (8, 0)),
    **dict.fromkeys(("A10", "A40", "A2000", "A4000", "A4500", "A5000", "A6000"), (8, 6)),
    **dict.fromkeys(("RTX3070", "RTX3080", "RTX3080TI", "RTX3090", "RTX3090TI"), (8, 6)),
    **dict.fromkeys(("L4", "L40", "L40S", "RTX2000ADA", "RTX4000ADA", "RTX5000ADA", "RTX6000ADA"), (8, 9)),
    **dict.fromkeys(("RTX4070TI", "RTX4080", "RTX4080TI", "RTX4090"), (8, 9)),
    **dict.fromkeys(("H100", "H20", "H200", "GH200"), (9, 0)),
    **dict.fromkeys(("B200", "GB200"), (10, 0)),
    **dict.fromkeys(("B300", "GB300"), (10, 3)),
    **dict.fromkeys(("RTX5090", "RTXPRO6000B"), (12, 0)),
}
"""The compute capability by family (https://developer.nvidia.com/cuda-gpus, and its page of older GPUs)."""

_ENTRY = re.compile(r"([0-9]{1,2})\.([0-9])([af]?)(\+PTX)?")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_COMPILERS = re.compile(
    r"\b(cuda-nvcc|cuda-toolkit|cuda-compiler|nvidia-cuda-toolkit|nvidia-cuda-nvcc(-cu[0-9]+)?|"
    r"cuda_[0-9.]+_linux\.run)\b"
)
_WITHOUT = re.compile(
    r"(^|/)(python|debian|ubuntu)(:|@)|(^|/)(nvidia/cuda|pytorch/pytorch):[^@]*\b(runtime|base)\b"
)
_WITH = re.compile(r"(^|/)[^@]*:[^@]*\bdevel\b")


def has_compiler(image: str) -> bool | None:
    """Return whether an image in a registry contains nvcc, by its name and tag; None if they do not tell."""
    return True if _WITH.search(image) else False if _WITHOUT.search(image) else None


def brings_compiler(commands: Iterable[str]) -> bool:
    """Return whether one of these commands, or of these names of packages, brings nvcc."""
    return any(_COMPILERS.search(command) for command in commands)


@dataclass(frozen=True)
class Install:
    """A package with kernels that a command installs and compiles. `is_isolated`: pip builds it in an
    environment of its own; `is_sure`: no wheel is looked for.
    """

    kernels: Kernels
    is_isolated: bool
    is_sure: bool


def installs(words: Sequence[str]) -> Iterator[Install]:
    """Yield what one command, split into words, installs and compiles. Wheels, by name or from a page of
    links, are not compiled.
    """
    for call in _calls(words):
        if any(word == "-f" or word.startswith(("--find-links", "--only-binary")) for word in call):
            continue
        for word in call:
            found, is_source = _package(word)
            kernels = BY_PACKAGE.get(found)
            if kernels is None or (kernels.from_source_only and not is_source):
                continue
            if kernels.package == "deepspeed" and not BUILT_BY_SWITCH.search(" ".join(words)):
                continue
            is_isolated = not any(other.startswith("--no-build-isolation") for other in call)
            yield Install(kernels, is_isolated, is_sure=is_source or not kernels.tries_wheels)


def covers(listed: str, capability: tuple[int, int]) -> bool | None:
    """Return whether code for the GPUs in a TORCH_CUDA_ARCH_LIST runs on one of this capability; None if the
    list cannot be read.

    Machine code runs on GPUs of the same major version and the same or a higher minor one; PTX, the
    intermediate code, on all newer ones; code with the suffix a only on exactly that one, and with f only on
    its family (https://docs.nvidia.com/cuda/cuda-c-programming-guide/#compute-capabilities).
    """
    found = False
    for entry in re.split(r"[;,\s]+", listed.strip()):
        match = _ENTRY.fullmatch(entry)
        if match is None:
            return None
        version, suffix = (int(match[1]), int(match[2])), match[3]
        runs = version[0] == capability[0] and version[1] <= capability[1]
        found |= (
            version == capability
            if suffix == "a"
            else runs or (match[4] is not None and version <= capability)
        )
    return found


def _calls(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the words after each `pip install`, up to the end of that command."""
    at = 0
    while at + 1 < len(words):
        if re.fullmatch(r"(.*/)?pip[0-9.]*", words[at]) and words[at + 1] == "install":
            end = next(
                (
                    n
                    for n in range(at + 2, len(words))
                    if words[n] in ("&&", "||", ";", "|") or words[n].endswith(";")
                ),
                len(words),
            )
            yield [word.removesuffix(";") for word in words[at + 2 : end + 1]]
            at = end
        at += 1


def _package(word: str) -> tuple[str, bool]:
    """Return the normalised name of the package that a word requires, and whether it names a source."""
    if word.startswith("-") or word.endswith(".whl") or ".whl#" in word:
        return "", False
    is_source = word.startswith(("git+", "https://")) or "@ git+" in word or "@git+" in word
    if word.startswith(("git+", "https://")):
        word = word.split("@", 1)[0] if word.startswith("https://") else word
        name = re.sub(r"(\.git)?(@[^/]*)?(#.*)?$", "", word).rpartition("/")[2]
        name = {
            "flash-attention": "flash-attn",
            "mamba": "mamba-ssm",
            "pytorch_scatter": "torch-scatter",
        }.get(name, name)
    else:
        match = _NAME.match(word)
        name = match[0] if match is not None else ""
    return re.sub(r"[-_.]+", "-", name).lower(), is_source


def build_jobs(cores: int, free_bytes: int) -> int:
    """Return how many compiler processes may run at once: one for two cores, as each runs several threads,
    and what the memory holds.
    """
    return max(1, min(cores // 2, free_bytes // (JOB_GIB * 2**30)))


def markdown() -> str:
    """Return the table for docs/environment.md."""
    rows = ["| package | compiled | `--no-build-isolation` | variables |", "|---|---|---|---|"]
    for row in TABLE:
        when = "from its repository" if row.from_source_only else "where no wheel fits"
        when = (
            "with `DS_BUILD_OPS=1`; otherwise at the first use, by the same compiler"
            if row.package == "deepspeed"
            else when
        )
        forced = "`FORCE_CUDA=1` where no GPU is in sight, " if row.forced else ""
        listed = (
            row.own_list if row.own_list.startswith("none") else f"`{row.own_list or 'TORCH_CUDA_ARCH_LIST'}`"
        )
        needs = "yes" if row.isolated_fails else "no"
        rows.append(f"| [{row.package}]({row.source}) | {when} | {needs} | {forced}{listed} |")
    return "\n".join(rows)
