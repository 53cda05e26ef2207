"""What GPUs can do according to their makers' data sheets, and the names used for them.

A kind is named as in providers' lists: family and memory (H100_80GB), sometimes with the socket given
separately. Rates are those of one GPU, dense, in bf16 with 32-bit accumulation. Nothing is assumed about a
kind that is not in the table.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_SUFFIX = re.compile(r"_(\d{1,4})GB$")
_NOT_WORDY = re.compile(r"[^A-Z0-9]")


@dataclass(frozen=True)
class Gpu:
    """A GPU family. `tflops` is 10^12 operations per second, `gb_per_s` the memory bandwidth in 10^9 bytes
    per second. `linked` means that the GPUs of one box are connected by NVLink.
    """

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
"""The PCIe versions of the same chips: less power, and no reliable NVLink."""

_RENTED = """
A10_24GB A100_40GB A100_80GB A2000_6GB A30_24GB A40_48GB A4000_16GB A4500_20GB A5000_24GB A6000_48GB B200_180GB B300_262GB CPU_NODE
GB200 GB300 GH200_480GB GH200_624GB GH200_96GB H100_80GB H200_141GB H200_96GB L40S_48GB L40_48GB L4_24GB P100_16GB P40_24GB P4_8GB
RTX2000Ada_16GB RTX3070_8GB RTX3080Ti_12GB RTX3080_10GB RTX3090Ti_24GB RTX3090_24GB RTX4000Ada_20GB RTX4000_8GB RTX4070Ti_12GB
RTX4080Ti_16GB RTX4080_16GB RTX4090_24GB RTX5000Ada_32GB RTX5000_16GB RTX5090_32GB RTX6000Ada_48GB RTX6000_24GB RTX8000_48GB
RTX_PRO_6000B_96GB T4_16GB V100_16GB V100_32GB
"""
RENTED = frozenset(_RENTED.split())
"""The GPU kinds that Prime Intellect rents, by its names; not all of them are in `GPUS`."""

WITHOUT_BF16 = frozenset({"V100", "P100", "T4", "P4", "P40", "RTX4000", "RTX5000", "RTX6000", "RTX8000"})
"""Families older than bf16, in which all training here runs."""

ARM64 = ("GH200", "GB200", "GB300")
"""GPUs that come with Grace, an ARM64 processor, for which neither the agent nor the trainers' packages are
built.
"""

_MAKERS_WORDS = re.compile(
    r"\b(?:NVIDIA|GeForce|Tesla|Quadro|Generation|Graphics|Server Edition|Workstation Edition|AC)\b",
    re.IGNORECASE,
)
_SOCKET = re.compile(r"\b(PCIe|SXM\d?|NVL|OAM)\b", re.IGNORECASE)
_MEMORY = re.compile(r"\b\d{1,4}GB\b", re.IGNORECASE)
_HBM = re.compile(r"\bHBM\d\w?\b", re.IGNORECASE)
_SXM_OF = {"V100": "SXM2", "A100": "SXM4", "H100": "SXM5", "H200": "SXM5"}
"""The board that the maker's name does not tell, where it tells only the memory's kind (H100 80GB HBM3) or
nothing (H200).
"""
SAME_MEMORY = 0.1
"""Fraction by which two statements of the memory of one kind may differ, because some subtract what the
driver keeps.
"""


@dataclass(frozen=True)
class KindAndSocket:
    kind: str
    socket: str


def from_makers_name(name: str, gb: int) -> KindAndSocket:
    """Return the kind and socket of a GPU by the name that its driver reports, such as `NVIDIA H100 80GB
    HBM3`, `NVIDIA GeForce RTX 4090` or `NVIDIA RTX 6000 Ada Generation`. `gb`: its memory, which names of
    kinds contain; 0: unknown.

    A name in no table is kept without the maker's words: it still tells two kinds apart, and can be written
    in a config.
    """
    found = _SOCKET.search(name)
    socket = found[1] if found else ""
    words = _MEMORY.sub(" ", _SOCKET.sub(" ", _HBM.sub(" ", name.replace("-", " "))))
    plain_words = " ".join(_MAKERS_WORDS.sub(" ", words).split())
    own = re.sub(r"^RTX (A\d)", r"\1", plain_words).replace("PRO 6000 Blackwell", "PRO 6000B")
    known = {plain(family(kind)): family(kind) for kind in RENTED}
    name_of_family = known.get(plain(own), re.sub(r"[^A-Za-z0-9]+", "_", own).strip("_"))
    if not socket or socket.upper() == "SXM":
        socket = _SXM_OF.get(name_of_family, socket)
    sizes = [named_gb(kind) for kind in RENTED if family(kind) == name_of_family]
    nearest = min(sizes, key=lambda size: abs(size - gb), default=0)
    size = nearest if gb and abs(nearest - gb) <= SAME_MEMORY * gb else gb
    return KindAndSocket(f"{name_of_family}_{size}GB" if size else name_of_family, socket)


def has_arm64(kind: str) -> bool:
    """Return whether the machine's processor is ARM64, judged by its GPU."""
    return kind.upper().startswith(ARM64)


def first_wanted(kind: str, socket: str, wanted: Sequence[str]) -> str:
    """Return the first of `wanted` that names this kind (see `names`), or else the kind itself."""
    known = names(kind, socket)
    return next((word for word in wanted if plain(word) in known), kind)


def facts(kind: str, socket: str = "") -> Gpu | None:
    """Return the data of a GPU kind, or None if it is not in the table."""
    name = plain(family(kind))
    return PCIE.get(name, GPUS.get(name)) if plain(socket) == "PCIE" else GPUS.get(name)


def has_bf16(kind: str) -> bool:
    return plain(family(kind)) not in WITHOUT_BF16


def named_gb(kind: str) -> int:
    """Return the GB of memory that the kind's name ends in, or 0 if it names none."""
    found = _SUFFIX.search(kind)
    return int(found[1]) if found else 0


def names(kind: str, socket: str = "") -> frozenset[str]:
    """Return the names of a kind, normalised by `plain`: the full name (H100_80GB), the family (H100, for any
    memory size), and each with the socket (H100 SXM5).
    """
    normalized = plain(kind)
    found = {plain(family(kind)), normalized, normalized.removesuffix("GB")}
    return frozenset(found | {name + plain(socket) for name in found})


def family(kind: str) -> str:
    """Return the kind's name without the memory size."""
    return _SUFFIX.sub("", kind)


def plain(word: str) -> str:
    """Return the word in capitals without spaces, dashes, underscores and other separators, for
    comparison.
    """
    return _NOT_WORDY.sub("", word.upper())
