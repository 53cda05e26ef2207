"""GPUs by the short names that people type, such as h100-80gb."""

import difflib
import re
from dataclasses import dataclass

from prime_train.estimate import gpus

_KIND = re.compile(r"[A-Z0-9_]{1,40}")


@dataclass(frozen=True)
class Preset:
    """A GPU preset. `kind` is the name in providers' lists, `gb` the memory of one GPU, `good_for` its usual purpose."""

    name: str
    kind: str
    gb: int
    good_for: str


PRESETS = (
    Preset("h100-80gb", "H100_80GB", 80, "the usual choice: all weights of 4B on 2, of 8B on 4"),
    Preset("h200-141gb", "H200_141GB", 141, "as an H100, with room for more"),
    Preset("b200-180gb", "B200_180GB", 180, "the fastest, where the software is new enough for it"),
    Preset("a100-80gb", "A100_80GB", 80, "a third as fast as an H100, often as cheap"),
    Preset("a100-40gb", "A100_40GB", 40, "LoRA up to 8B, all weights of small models"),
    Preset("l40s-48gb", "L40S_48GB", 48, "LoRA up to 8B; no NVLink, so better alone than in fours"),
    Preset("a6000-48gb", "A6000_48GB", 48, "LoRA up to 8B, slowly and cheaply"),
    Preset("rtx5090", "RTX5090_32GB", 32, "LoRA up to 4B"),
    Preset("rtx4090", "RTX4090_24GB", 24, "LoRA up to 4B, and models below 1B"),
    Preset("rtx3090", "RTX3090_24GB", 24, "trying things out"),
)
DEFAULT = PRESETS[0]


def preset(text: str) -> Preset | None:
    """Return the preset with that name or GPU kind. Any other known kind whose name contains its memory (GH200_96GB) is a preset, too. None
    if nothing matches."""
    plain = gpus.plain(text)
    for known in PRESETS:
        if plain in (gpus.plain(known.name), gpus.plain(known.kind)):
            return known
    kind = text.strip().upper().replace("-", "_")
    gb = gpus.named_gb(kind)
    is_known = _KIND.fullmatch(kind) is not None and gpus.facts(kind) is not None
    return Preset(text, kind, gb, "") if gb and is_known else None


def near(text: str) -> tuple[str, ...]:
    """Return the names of up to 3 similar presets, or of all presets if none is similar."""
    names = [known.name for known in PRESETS]
    close = difflib.get_close_matches(text.lower(), names, 3, 0.6)
    return tuple(close or names)
