"""Names of GPUs, as users and Prime write them, and their memory sizes."""

from collections.abc import Sequence

from prime_train.adapters.pods_prime.models import Row
from prime_train.estimate import gpus as known

CPU_NODE = "CPU_NODE"

GPU_GB = {"GB200": 186, "GB300": 279, "GH200_96GB": 96, "GH200_480GB": 96, "GH200_624GB": 144}
"""Memory of one GPU in GB for types whose name does not end in it: Grace-Hopper's names count the processor's memory too."""


def gpu_gb(row: Row) -> int:
    """Return the advertised memory of one GPU in GB; 0 if there is no GPU or its memory is unknown. The row's memory field is used only for
    a box with one GPU, because with several GPUs it is sometimes their sum."""
    if row.gpu_type in GPU_GB or row.gpu_type == CPU_NODE:
        return GPU_GB.get(row.gpu_type, 0)
    named_gb = known.named_gb(row.gpu_type)
    if named_gb:
        return named_gb
    return int(row.gpu_memory or 0) if row.gpu_count == 1 else 0


def kind(row: Row, wanted: Sequence[str]) -> str:
    """Return the first of `wanted` that names this row's GPU, else Prime's own name; "" for a machine without a GPU.

    A GPU is named by Prime's type (H100_80GB) or by its family (H100, of any memory size), each with or without the socket (H100 SXM5).
    Case, spaces, dashes and underscores are ignored.
    """
    if row.gpu_type == CPU_NODE:
        return ""
    return known.first_wanted(row.gpu_type, row.socket or "", wanted)
