"""What people call a GPU, what Prime calls it, and how much memory it has."""

import re
from collections.abc import Sequence

from prime_train.adapters.pods_prime.models import Row

CPU_NODE = "CPU_NODE"

GPU_GB = {"GB200": 186, "GB300": 279, "GH200_96GB": 96, "GH200_480GB": 96, "GH200_624GB": 144}
"""Memory of one GPU where the type's name does not end in it: Grace-Hopper's names count the processor's memory too."""

_SUFFIX = re.compile(r"_(\d{1,4})GB$")
_NOT_WORDY = re.compile(r"[^A-Z0-9]")


def gpu_gb(row: Row) -> int:
    """Memory of one GPU as it is sold; 0: none, or not known. The field for it is believed only for a box of one GPU: with more it is at
    times that of the whole box."""
    if row.gpu_type in GPU_GB or row.gpu_type == CPU_NODE:
        return GPU_GB.get(row.gpu_type, 0)
    found = _SUFFIX.search(row.gpu_type)
    if found:
        return int(found.group(1))
    return int(row.gpu_memory or 0) if row.gpu_count == 1 else 0


def kind(row: Row, wanted: Sequence[str]) -> str:
    """The first of `wanted` that names this row's GPU, else Prime's own name; "" for a machine without one.

    A GPU is named by Prime's type (H100_80GB), by its family (H100: whatever its memory), and either with the socket (H100 SXM5);
    capitals, spaces, dashes and underscores do not count.
    """
    if row.gpu_type == CPU_NODE:
        return ""
    names = _names(row)
    return next((word for word in wanted if _plain(word) in names), row.gpu_type)


def _names(row: Row) -> frozenset[str]:
    family, whole = _plain(_SUFFIX.sub("", row.gpu_type)), _plain(row.gpu_type)
    names = {family, whole, whole.removesuffix("GB")}
    return frozenset(names | {name + _plain(row.socket or "") for name in names})


def _plain(word: str) -> str:
    return _NOT_WORDY.sub("", word.upper())
