"""Finds the model that a name refers to, by the name itself or by the size in it."""

import math
import re
from dataclasses import replace

from prime_train.estimate.models.dimensions import MODELS, SAME_AS, SIZES, Model

NAME_CHARS_MAX = 200
PARAMS_MIN, PARAMS_MAX = 10**6, 10**13
GUESSED_EXPERTS, GUESSED_EXPERTS_USED = 128, 8
"""The most common values of mixtures of experts whose names state their active size."""

_SIZE = re.compile(r"(?<![a-z0-9.])(\d{1,5}(?:\.\d{1,3})?)([bm])(?:-a(\d{1,4}(?:\.\d{1,3})?)b)?(?![a-z0-9])")
_UNITS = {"b": 10**9, "m": 10**6}
_VARIANT = re.compile(
    r"(instruct|base|it|hf|chat|reasoning|plus|fp8|bf16|thinking|reward|sft|rl|[vr]?\d[\d.]*k?)"
)
"""Name suffixes that do not change a model's shape."""


def resolve_model(name: str) -> Model | None:
    """Return the model of that name, with or without an owner: a fine-tuned model has the shape of its base.
    An unknown model whose name has a size (8B, 0.6B, 30B-A3B) gets the nearest shape, with `guessed` set.
    None if neither applies.
    """
    own = own_name(name)
    return _known(own.lower()) or sized(own)


def resolve_path(name: str) -> Model | None:
    """Return the model of that name as `resolve_model` does; of a path, such as saves/qwen3-4b/lora/sft, that
    of the last part that names one.
    """
    parts = [part for part in name[:NAME_CHARS_MAX].strip().split("/") if part]
    return next((model for part in reversed(parts) if (model := resolve_model(part)) is not None), None)


def own_name(name: str) -> str:
    """Return the name without its owner or path."""
    return name[:NAME_CHARS_MAX].strip().rstrip("/").rsplit("/", 1)[-1]


def sized(text: str) -> Model | None:
    """Return a model of the size that the text names, such as 7B or 30B-A3B, with the shape of the nearest
    dense model; None if it names no size in range.
    """
    sizes = list(_SIZE.finditer(text.lower()))
    # If two sizes are named (a context of 1M and 7B parameters), the larger unit is the model's.
    size = next((found for found in sizes if found[2] == "b"), sizes[0] if sizes else None)
    if size is None:
        return None
    params = round(float(size[1]) * _UNITS[size[2]])
    active = round(float(size[3]) * 10**9) if size[3] else params
    if not PARAMS_MIN <= active <= params <= PARAMS_MAX:
        return None
    closest = min(
        (model for model in MODELS if not model.is_moe),
        key=lambda model: abs(math.log(model.params / active)),
    )
    experts = (GUESSED_EXPERTS, GUESSED_EXPERTS_USED) if active < params else (1, 1)
    return replace(
        closest,
        name=text,
        params=params,
        active=active,
        experts=experts[0],
        experts_used=experts[1],
        guessed=True,
    )


def _known(plain: str) -> Model | None:
    """Return the model with the longest table name that the text begins with, or None."""
    for known in sorted(_NAMED, key=len, reverse=True):
        rest = plain.removeprefix(known)
        if rest != plain and (not rest or (rest[0] in "-_." and _is_variant(known, rest[1:]))):
            return _NAMED[known]
    return None


def _is_variant(known: str, rest: str) -> bool:
    """Return whether the rest of a name leaves the shape unchanged. After a name with a size, everything
    except another size in billions does; after a name without one, only known suffixes.
    """
    if _SIZE.search(known):
        return not any(size[2] == "b" for size in _SIZE.finditer(rest))
    return all(_VARIANT.fullmatch(word) for word in re.split(r"[-_]", rest))


_BY_NAME = {model.name: model for model in MODELS}
_SIZED = {name.lower(): model for name, size in SIZES.items() if (model := sized(size)) is not None}
_NAMED = (
    _SIZED
    | {name.lower(): model for name, model in _BY_NAME.items()}
    | {other.lower(): _BY_NAME[name] for other, name in SAME_AS.items()}
)
