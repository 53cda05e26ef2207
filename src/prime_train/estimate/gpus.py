"""What GPUs can do, by their makers' data sheets, and the names people call them by.

A kind is named as providers' lists do: family and memory (H100_80GB), at times with the socket told apart. Rates are dense, in 16-bit
brain floats with sums in 32 bit, of one GPU. A kind that is not in the table is not known to us; nothing is assumed of it.
"""

import re
from dataclasses import dataclass

_SUFFIX = re.compile(r"_(\d{1,4})GB$")
_NOT_WORDY = re.compile(r"[^A-Z0-9]")
USABLE_SHARE = 0.98
"""Of the GB that a GPU is sold with, as GiB (an H100 of 80 GB has 79.2): what is left beside the driver and CUDA itself."""


@dataclass(frozen=True)
class Gpu:
    """`tflops`: 10^12 operations a second; `gb_per_s`: of its memory, 10^9 bytes. `linked`: several of one box talk by NVLink."""

    family: str
    tflops: float
    gb_per_s: float
    linked: bool = False


_DATA_CENTRE = (
    Gpu("A10", 125, 600),
    Gpu("A30", 165, 933),
    Gpu("A40", 150, 696),
    Gpu("A100", 312, 1935, linked=True),
    Gpu("L4", 121, 300),
    Gpu("L40", 181, 864),
    Gpu("L40S", 362, 864),
    Gpu("H100", 989, 3350, linked=True),
    Gpu("H20", 148, 4000, linked=True),
    Gpu("H200", 989, 4800, linked=True),
    Gpu("GH200", 989, 4000, linked=True),
    Gpu("B200", 2250, 8000, linked=True),
    Gpu("B300", 2250, 8000, linked=True),
    Gpu("GB200", 2500, 8000, linked=True),
    Gpu("GB300", 2500, 8000, linked=True),
)
_WORKSTATION = (
    Gpu("A2000", 32, 288),
    Gpu("A4000", 77, 448),
    Gpu("A4500", 95, 640),
    Gpu("A5000", 111, 768),
    Gpu("A6000", 155, 768),
    Gpu("RTX5000ADA", 261, 576),
    Gpu("RTX6000ADA", 364, 960),
    Gpu("RTXPRO6000B", 500, 1792),
)
_DESKTOP = (
    Gpu("RTX3070", 41, 448),
    Gpu("RTX3080", 60, 760),
    Gpu("RTX3080TI", 68, 912),
    Gpu("RTX3090", 71, 936),
    Gpu("RTX3090TI", 80, 1008),
    Gpu("RTX4070TI", 80, 504),
    Gpu("RTX4080", 97, 717),
    Gpu("RTX4090", 165, 1008),
    Gpu("RTX5090", 210, 1792),
)
GPUS = {gpu.family: gpu for gpu in (*_DATA_CENTRE, *_WORKSTATION, *_DESKTOP)}

PCIE = {"A100": Gpu("A100", 312, 1935), "H100": Gpu("H100", 756, 2000), "H200": Gpu("H200", 835, 4800)}
"""The same chips on a card: less power, and no NVLink that can be relied on."""

_RENTED = """
A10_24GB A100_40GB A100_80GB A2000_6GB A30_24GB A40_48GB A4000_16GB A4500_20GB A5000_24GB A6000_48GB B200_180GB B300_262GB CPU_NODE
GB200 GB300 GH200_480GB GH200_624GB GH200_96GB H100_80GB H200_141GB H200_96GB L40S_48GB L40_48GB L4_24GB P100_16GB P40_24GB P4_8GB
RTX2000Ada_16GB RTX3070_8GB RTX3080Ti_12GB RTX3080_10GB RTX3090Ti_24GB RTX3090_24GB RTX4000Ada_20GB RTX4000_8GB RTX4070Ti_12GB
RTX4080Ti_16GB RTX4080_16GB RTX4090_24GB RTX5000Ada_32GB RTX5000_16GB RTX5090_32GB RTX6000Ada_48GB RTX6000_24GB RTX8000_48GB
RTX_PRO_6000B_96GB T4_16GB V100_16GB V100_32GB
"""
RENTED = frozenset(_RENTED.split())
"""Kinds by the names that Prime Intellect rents them out under; not all are in the table of what GPUs can do."""

WITHOUT_BF16 = frozenset({"V100", "P100", "T4", "P4", "P40", "RTX4000", "RTX5000", "RTX6000", "RTX8000"})
"""Families older than 16-bit brain floats, in which all of this is trained."""


def facts(kind: str, socket: str = "") -> Gpu | None:
    """None: the kind is not in the table."""
    name = plain(family(kind))
    return PCIE.get(name, GPUS.get(name)) if plain(socket) == "PCIE" else GPUS.get(name)


def has_bf16(kind: str) -> bool:
    return plain(family(kind)) not in WITHOUT_BF16


def named_gb(kind: str) -> int:
    """Memory of one GPU as its name ends in it; 0: it does not."""
    found = _SUFFIX.search(kind)
    return int(found[1]) if found else 0


def names(kind: str, socket: str = "") -> frozenset[str]:
    """What a kind is called, `plain`: whole (H100_80GB), by its family (H100: whatever its memory), either with the socket (H100 SXM5)."""
    whole = plain(kind)
    found = {plain(family(kind)), whole, whole.removesuffix("GB")}
    return frozenset(found | {name + plain(socket) for name in found})


def family(kind: str) -> str:
    """Without the memory."""
    return _SUFFIX.sub("", kind)


def plain(word: str) -> str:
    """Capitals, spaces, dashes and underscores do not count."""
    return _NOT_WORDY.sub("", word.upper())
