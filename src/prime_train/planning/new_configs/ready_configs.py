"""Configs that are ready to run, for the hardware that people have: the files of configs/presets, which are
shipped with the package.
"""

import re
from pathlib import Path

from prime_train.errors import UsageError

_NAME = re.compile(r"(?m)^name: .*$")
_USD = re.compile(r"(?m)^  usd: .*$")


def ready_names() -> tuple[str, ...]:
    """Return the names of the configs, sorted."""
    return tuple(sorted(path.stem for path in _folder().glob("*.yaml")))


def ready_config(preset: str, *, name: str = "", usd: float = 0) -> tuple[str, str]:
    """Return the name and the text of a config, under another name and with another budget if they are given.
    Raises UsageError if there is none of this name.
    """
    if preset not in ready_names():
        raise UsageError(f"there is no config {preset}", fix=f"write one of {', '.join(ready_names())}")
    text = (_folder() / f"{preset}.yaml").read_text(encoding="utf-8")
    if name:
        text = _NAME.sub(f"name: {name}", text, count=1)
    if usd:
        text = _USD.sub(f"  usd: {usd:g}", text, count=1)
    return name or preset, text


def _folder() -> Path:
    """Return the folder of the checkout or the package."""
    package = Path(__file__).parents[2]
    known = (package / "demo" / "presets", package.parents[1] / "configs" / "presets")
    return next((path for path in known if path.is_dir()), known[0])
