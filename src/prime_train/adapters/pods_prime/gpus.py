"""What people call a GPU, what Prime calls it, and how much memory it has."""

from collections.abc import Sequence

from prime_train.adapters.pods_prime.models import Row
from prime_train.estimate import gpus as known

CPU_NODE = "CPU_NODE"

GPU_GB = {"GB200": 186, "GB300": 279, "GH200_96GB": 96, "GH200_480GB": 96, "GH200_624GB": 144}
"""Memory of one GPU where the type's name does not end in it: Grace-Hopper's names count the processor's memory too."""
ARM64 = ("GH200", "GB200", "GB300")
"""GPUs that come with Grace, an ARM64 processor: neither our agent nor what trainers install is made for it."""


def is_arm64(row: Row) -> bool:
    """Whether the machine's processor is ARM64, as its GPU tells."""
    return row.gpu_type.upper().startswith(ARM64)


def gpu_gb(row: Row) -> int:
    """Memory of one GPU as it is sold; 0: none, or not known. The field for it is believed only for a box of one GPU: with more it is at
    times that of the whole box."""
    if row.gpu_type in GPU_GB or row.gpu_type == CPU_NODE:
        return GPU_GB.get(row.gpu_type, 0)
    named_gb = known.named_gb(row.gpu_type)
    if named_gb:
        return named_gb
    return int(row.gpu_memory or 0) if row.gpu_count == 1 else 0


def kind(row: Row, wanted: Sequence[str]) -> str:
    """The first of `wanted` that names this row's GPU, else Prime's own name; "" for a machine without one.

    A GPU is named by Prime's type (H100_80GB), by its family (H100: whatever its memory), and either with the socket (H100 SXM5);
    capitals, spaces, dashes and underscores do not count.
    """
    if row.gpu_type == CPU_NODE:
        return ""
    names = known.names(row.gpu_type, row.socket or "")
    return next((word for word in wanted if known.plain(word) in names), row.gpu_type)
