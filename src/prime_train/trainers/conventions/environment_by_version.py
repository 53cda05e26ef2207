"""The table of environment variables that depend on the installed libraries and on the machine, and which of
its rows apply.

Each row is supported by a library's documentation or by a known defect, which it names. The agent sets the
rows that apply when the trainer starts, for runs that name GPUs. A variable that the config or the machine
sets already is never changed, not even if it is empty, so a config turns a row off by setting its variable.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prime_train.spec.spec import RunSpec

Version = tuple[int, ...]

_NOT_WORDY = re.compile(r"[^A-Z0-9]")
_NUMBER = re.compile(r"[0-9]+")

_WITHOUT_NVLINK = re.compile(
    r"RTX[45]0[5-9]0|RTX[0-9]000ADA|RTXPRO|(^|NVIDIA|TESLA)(L4|L40|L40S|T4|A10)([0-9]{2}GB)?$"
)
"""GPUs of which no model has NVLink, by their names in offers (RTX4090_24GB) or in the driver (NVIDIA GeForce
RTX 4090), as `plain` writes them.
"""
_GEFORCE_40 = re.compile(r"RTX40[5-9]0")
_KINDS = {None: "any GPU", _WITHOUT_NVLINK: "GPUs without NVLink", _GEFORCE_40: "GeForce RTX 40"}

SHM_BYTES_MIN = 128 * 2**20
"""Size of /dev/shm below which NCCL cannot place the segments of four GPUs; containers have 64 MiB by
default.
"""


@dataclass(frozen=True)
class VersionedVariable:
    """A variable for one library. `since`: its first version concerned; `before`: the first one no longer
    concerned; (): unlimited.
    """

    library: str
    variable: str
    value: str
    reason: str
    source: str
    since: Version = ()
    before: Version = ()
    gpus: re.Pattern[str] | None = None
    """Names of the GPUs concerned; None: all."""
    gpus_min: int = 1
    workers_min: int = 1
    shm_below: int | None = None
    """Size of /dev/shm in bytes below which the row applies; None: any size."""
    without: tuple[str, ...] = ()
    """Libraries beside which the row does not apply."""
    aliases: tuple[str, ...] = ()
    """Other names of the same setting: if one is set, the row does not apply."""

    @property
    def versions(self) -> str:
        """The library and its versions, such as "torch 2.2 up to but not including 2.11"."""
        since = f" {_dotted(self.since)}" if self.since else ""
        if self.before:
            return f"{self.library}{since} up to but not including {_dotted(self.before)}"
        return f"{self.library}{since} or newer" if since else self.library

    @property
    def condition(self) -> str:
        """What is known only on the machine, as a condition."""
        others = f" without {' or '.join(self.without)}" if self.without else ""
        shm = (
            f", and /dev/shm has less than {self.shm_below // 2**20} MiB"
            if self.shm_below is not None
            else ""
        )
        return f"if {self.versions} is installed{others}{shm}"

    @property
    def hardware(self) -> str:
        """The GPUs and processes concerned, for the documentation."""
        count = f", {self.gpus_min} or more" if self.gpus_min > 1 else ""
        return (
            _KINDS[self.gpus]
            + count
            + (f", {self.workers_min} or more processes" if self.workers_min > 1 else "")
        )


_EXPANDABLE = (
    "freed memory can be reused for other sizes, so that less of the GPU's memory is lost to fragmentation"
)
_ALLOCATOR = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
_OWN_POOLS = ("vllm", "sglang")
"""Libraries whose memory pools do not work with expandable segments in all versions; their launchers set the
allocator themselves.
"""

TABLE = (
    VersionedVariable(
        "torch",
        "PYTORCH_CUDA_ALLOC_CONF",
        "expandable_segments:True",
        f"{_EXPANDABLE}; these versions ignore it under the newer name PYTORCH_ALLOC_CONF",
        "https://github.com/pytorch/pytorch/issues/183387",
        since=(2, 2),
        before=(2, 11),
        without=_OWN_POOLS,
        aliases=_ALLOCATOR,
    ),
    VersionedVariable(
        "torch",
        "PYTORCH_ALLOC_CONF",
        "expandable_segments:True",
        f"{_EXPANDABLE}; the older name PYTORCH_CUDA_ALLOC_CONF is deprecated",
        "https://docs.pytorch.org/docs/stable/notes/cuda.html",
        since=(2, 11),
        without=_OWN_POOLS,
        aliases=_ALLOCATOR,
    ),
    VersionedVariable(
        "torch",
        "TORCHINDUCTOR_FX_GRAPH_CACHE",
        "1",
        "graphs that a smoke test compiled are not compiled again when training starts",
        "https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_configuration_tutorial.html",
        since=(2, 4),
        before=(2, 6),
    ),
    VersionedVariable(
        "torch",
        "NCCL_IB_DISABLE",
        "1",
        "a machine's GPUs talk over PCIe and need no InfiniBand, for which NCCL would otherwise look",
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
        gpus=_WITHOUT_NVLINK,
        gpus_min=2,
    ),
    VersionedVariable(
        "torch",
        "NCCL_P2P_DISABLE",
        "1",
        "these GPUs have no access to each other's memory; where a driver reports it, the first collective "
        "call hangs",
        "https://github.com/NVIDIA/nccl-tests/issues/117",
        gpus=_GEFORCE_40,
        gpus_min=2,
    ),
    VersionedVariable(
        "torch",
        "NCCL_SHM_DISABLE",
        "1",
        "NCCL fails to start if its shared memory does not fit; it then uses sockets, which are slower",
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/runtime_and_mpi_issues.html",
        gpus=_WITHOUT_NVLINK,
        gpus_min=4,
        shm_below=SHM_BYTES_MIN,
    ),
    VersionedVariable(
        "vllm",
        "VLLM_ENGINE_READY_TIMEOUT_S",
        "1800",
        "on a new machine, downloading weights and compiling with empty caches can take longer than the 600 "
        "s by default",
        "https://github.com/vllm-project/vllm/issues/48031",
        since=(0, 12),
        without=("prime-rl",),  # its launcher waits for longer
    ),
    VersionedVariable(
        "tokenizers",
        "TOKENIZERS_PARALLELISM",
        "false",
        "each training process would start a thread per core, and data loaders that fork afterwards could "
        "deadlock",
        "https://github.com/huggingface/transformers/issues/5486",
        workers_min=2,
    ),
)

LIBRARIES = tuple(sorted({row.library for row in TABLE} | {name for row in TABLE for name in row.without}))
"""The libraries whose versions decide."""


@dataclass(frozen=True)
class RunMachine:
    """The machine of a run: the names of its GPUs and the number of training processes."""

    gpus: tuple[str, ...]
    workers: int


def machine(spec: "RunSpec", gpus: tuple[str, ...]) -> RunMachine:
    """Return the machine with these GPUs. Unless the trainer says how many processes it starts, there is one
    per GPU.
    """
    return RunMachine(gpus, max(spec.trainer.workers, len(gpus)))


def possible(found: RunMachine, present: Collection[str] = ()) -> Iterator[VersionedVariable]:
    """Yield the rows that apply to the machine if their library is installed. `present`: names of variables
    that are set already.
    """
    for row in TABLE:
        fits = row.gpus is None or (
            bool(found.gpus) and all(row.gpus.search(plain(name)) for name in found.gpus)
        )
        is_free = row.variable not in present and not any(name in present for name in row.aliases)
        if fits and is_free and len(found.gpus) >= row.gpus_min and found.workers >= row.workers_min:
            yield row


def chosen(
    found: RunMachine, installed: Mapping[str, str], shm_bytes: int | None, present: Collection[str]
) -> Iterator[VersionedVariable]:
    """Yield the rows to set. `installed`: versions by library; `shm_bytes`: the size of /dev/shm, None if it
    is unknown.
    """
    for row in possible(found, present):
        version = numbers(installed.get(row.library, ""))
        is_meant = bool(version) and version >= row.since and (not row.before or version < row.before)
        is_small = row.shm_below is None or (shm_bytes is not None and shm_bytes < row.shm_below)
        if is_meant and is_small and not any(name in installed for name in row.without):
            yield row


def numbers(version: str) -> Version:
    """Return the numbers that a version begins with: (2, 11, 0) for 2.11.0+cu130; () if there are none."""
    found = []
    for part in version.partition("+")[0].split("."):
        number = _NUMBER.match(part)
        if number is None:
            break
        found.append(int(number[0]))
        if number[0] != part:
            break
    return tuple(found)


def plain(name: str) -> str:
    """Return the name of a GPU in capital letters and digits only."""
    return _NOT_WORDY.sub("", name.upper())


def _dotted(version: Version) -> str:
    return ".".join(map(str, version))


def markdown() -> str:
    """Return the table for docs/environment.md."""
    rows = ["| library | on | set | reason |", "|---|---|---|---|"]
    for row in TABLE:
        shm = f", /dev/shm below {row.shm_below // 2**20} MiB" if row.shm_below is not None else ""
        others = f", without {' or '.join(row.without)}" if row.without else ""
        rows.append(
            f"| {row.versions}{others} | {row.hardware}{shm} | `{row.variable}={row.value}` | {row.reason} "
            f"([source]({row.source})) |"
        )
    return "\n".join(rows)
