"""GPUs by the short names that people type, such as h100-80gb."""

import re
from dataclasses import dataclass

from prime_train.errors import UsageError
from prime_train.estimate import gpus
from prime_train.text.nearest import POSSIBLE, nearest

_KIND = re.compile(r"[A-Z0-9_]{1,40}")


@dataclass(frozen=True)
class Preset:
    """A GPU preset. `kind` is the name in providers' lists, `gb` the memory of one GPU, `good_for` its usual
    purpose.
    """

    name: str
    kind: str
    gb: int
    good_for: str


PRESETS = (
    Preset("h100-80gb", "H100_80GB", 80, "the usual choice: trains 4B models on 2, 8B on 4"),
    Preset("h200-141gb", "H200_141GB", 141, "as fast as an H100, with more memory"),
    Preset("b200-180gb", "B200_180GB", 180, "the fastest, if the software is new enough to support it"),
    Preset("a100-80gb", "A100_80GB", 80, "a third of an H100's speed, often at a similar cost"),
    Preset("a100-40gb", "A100_40GB", 40, "LoRA of models up to 8B, all weights of small models"),
    Preset("l40s-48gb", "L40S_48GB", 48, "LoRA of models up to 8B; no NVLink, best used singly"),
    Preset("a6000-48gb", "A6000_48GB", 48, "LoRA of models up to 8B, slowly and cheaply"),
    Preset("rtx5090", "RTX5090_32GB", 32, "LoRA of models up to 4B"),
    Preset("rtx4090", "RTX4090_24GB", 24, "LoRA of models up to 4B, all weights below 1B"),
    Preset("rtx3090", "RTX3090_24GB", 24, "for experiments"),
)
DEFAULT = PRESETS[0]


def preset(text: str) -> Preset | None:
    """Return the preset with that name or GPU kind. Any other known kind whose name contains its memory
    (GH200_96GB) is a preset, too. None if nothing matches.
    """
    plain = gpus.plain(text)
    for known in PRESETS:
        if plain in (gpus.plain(known.name), gpus.plain(known.kind)):
            return known
    kind = text.strip().upper().replace("-", "_")
    gb = gpus.named_gb(kind)
    is_known = _KIND.fullmatch(kind) is not None and gpus.facts(kind) is not None
    return Preset(text, kind, gb, "") if gb and is_known else None


def known_preset(text: str) -> Preset:
    """Return the preset as `preset` does. Raises UsageError if nothing matches."""
    found = preset(text)
    if found is None:
        fix = f"write one of {', '.join(similar(text))}, or a kind with its memory, such as H100_80GB"
        raise UsageError(f"the hardware {text} is unknown", fix=fix)
    return found


def similar(text: str) -> tuple[str, ...]:
    """Return the names of up to 3 similar presets, or of all presets if none is similar."""
    names = [known.name for known in PRESETS]
    return nearest(text, names, likeness=POSSIBLE, limit=3) or tuple(names)
