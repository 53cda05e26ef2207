"""Vast.ai's names of GPUs, such as `H100 SXM`, which do not tell the memory."""

from collections.abc import Iterator, Sequence

from prime_train.estimate import gpus

NAMES = (
    "A10",
    "A100 PCIE",
    "A100 SXM4",
    "A40",
    "B200",
    "B300",
    "H100 NVL",
    "H100 PCIE",
    "H100 SXM",
    "H200",
    "H200 NVL",
    "L4",
    "L40",
    "L40S",
    "Q RTX 6000",
    "Q RTX 8000",
    "RTX 2000Ada",
    "RTX 3070",
    "RTX 3080",
    "RTX 3080 Ti",
    "RTX 3090",
    "RTX 3090 Ti",
    "RTX 4000Ada",
    "RTX 4070 Ti",
    "RTX 4080",
    "RTX 4090",
    "RTX 5000Ada",
    "RTX 5090",
    "RTX 6000Ada",
    "RTX A2000",
    "RTX A4000",
    "RTX A4500",
    "RTX A5000",
    "RTX A6000",
    "RTX PRO 6000 S",
    "RTX PRO 6000 WS",
    "Tesla P100",
    "Tesla P40",
    "Tesla T4",
    "Tesla V100",
)
"""The kinds for which it is worth asking by name."""
MAKERS = {
    "Q RTX 6000": "Quadro RTX 6000",
    "Q RTX 8000": "Quadro RTX 8000",
    "RTX PRO 6000 S": "RTX PRO 6000 Blackwell Server Edition",
    "RTX PRO 6000 WS": "RTX PRO 6000 Blackwell Workstation Edition",
}
"""The maker's own names where Vast.ai has shortened them."""


def kind_and_socket(name: str, gb: int) -> gpus.KindAndSocket:
    """Return the kind and socket of a GPU. `gb`: its memory; 0: unknown."""
    return gpus.from_makers_name(
        MAKERS.get(name.replace("_", " "), name.replace("_", " ")).replace("PCIE", "PCIe"), gb
    )


def names_of(wanted: Sequence[str]) -> list[str] | None:
    """Return Vast.ai's names for the kinds of GPU that a config names; None if one of them may have another
    name, so that it must not be searched for by name.
    """
    found = [[name for name in NAMES if gpus.plain(kind) in set(_words(name))] for kind in wanted]
    return [name for names in found for name in names] if all(found) and found else None


def _words(name: str) -> Iterator[str]:
    """Yield all words by which configs may name the kind, with each size of memory that it is made with."""
    family = gpus.family(kind_and_socket(name, 0).kind)
    for gb in {gpus.named_gb(kind) for kind in gpus.RENTED if gpus.family(kind) == family} | {0}:
        found = kind_and_socket(name, gb)
        yield from gpus.names(found.kind, found.socket)
