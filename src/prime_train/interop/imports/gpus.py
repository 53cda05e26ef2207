"""Kinds of GPU by the names that other tools use for them."""

import re

from prime_train.estimate.gpus import RENTED, family, from_makers_name, names, plain

_COUNT_MAX = 16
_KNOWN = frozenset(word for kind in RENTED for word in names(kind))
_OTHER = re.compile(
    r"(tpu|v[2-9][a-z]*-\d+$|v[2-9](lite|litepod|p|e)\b|trainium|trn\d|inferentia|inf\d|gaudi|ascend|habana|"
    r"hpu|npu|neuron|(amd[-_ ]?)?(instinct[-_ ]?)?mi[-_ ]?[1-4]\d\d[axp]?$|radeon|rx\d{4}|w\d{4}$|ipu\b|dcu|"
    r"wormhole|blackhole)",
    re.IGNORECASE,
)
_BOARD = re.compile(r"[-_ ](SXM\d?|PCIE|NVL|NVLINK|MEGA|HBM\d\w?|SHARED)(?=[-_ ]|$)", re.IGNORECASE)
"""What says how a GPU is connected, or made, but not of which kind it is."""


def kind_of(name: str, gb: int = 0) -> str:
    """Return a kind of GPU by its name in SkyPilot (`A100-80GB`), dstack (`A100`), on the label of a node
    (`NVIDIA-H100-80GB-HBM3`) or in a cloud's list (`nvidia-tesla-t4`); empty if it is not known. `gb`: its
    memory, where that stands beside the name.
    """
    words = re.sub(r"^(nvidia[-_ ]|tesla[-_ ]|geforce[-_ ])+", "", name.strip(), flags=re.IGNORECASE)
    words = re.sub(r"^RTX[-_ ]?(?=A\d)", "", words, flags=re.IGNORECASE)
    for text in (words, _BOARD.sub("", words)):
        found = _named(text, gb)
        if found:
            return found
    size = re.search(r"(\d{1,4})\s?GB", name, re.IGNORECASE)
    made = from_makers_name(
        name.replace("-", " ").replace("_", " "), gb or (int(size[1]) if size else 0)
    ).kind
    return made if made in RENTED else _named(family(made), gb)


def is_other_chip(name: str) -> bool:
    """Return whether this is an accelerator of another kind than NVIDIA's GPUs, which nobody rents here:
    `tpu-v5e-8`, `Trainium2:16`, `MI300X`, `Gaudi3`.
    """
    return _OTHER.match(name.strip()) is not None


def _named(text: str, gb: int) -> str:
    word = plain(text)
    wanted = {word, word + "GB"} if not gb else {word, f"{word}{gb}GB"}
    exact = sorted(
        kind for kind in RENTED if plain(kind) in wanted and (not gb or plain(kind).endswith(f"{gb}GB"))
    )
    if exact:
        return exact[0]
    if gb or word not in _KNOWN:
        return ""
    return next((family(kind) for kind in sorted(RENTED) if plain(family(kind)) == word), "")


def count_of(text: str) -> int | None:
    """Return a number of GPUs that one machine can have, from 1 to 16; None if the text is none."""
    number = text.strip().strip("\"'")
    return int(number) if re.fullmatch(r"[0-9]{1,2}", number) and 1 <= int(number) <= _COUNT_MAX else None
