"""The environment of what the agent starts: the machine's own, less what is ours alone, and the spec's and the run's on top."""

import re
from collections.abc import Mapping

from prime_train.core.text.redaction import masked

_OURS = re.compile(r"^((PRIME_TRAIN|PT)_\w*(KEY|SECRET|TOKEN|PASSWORD|MASTER)|PRIME_API_KEY$)")
SECRET_CHARS_MIN = 6
"""Shorter values would blacken innocent text."""


def for_children(machine: Mapping[str, str], *layers: Mapping[str, str]) -> dict[str, str]:
    """Later layers win."""
    merged = {name: value for name, value in machine.items() if not _OURS.match(name)}
    for layer in layers:
        merged |= layer
    return merged


def redacted(text: str, secrets: Mapping[str, str]) -> str:
    """The text with the values of secrets blacked out, and whatever looks like one: a trainer may print its own, or somebody else's.

    To be asked before the text is cut: of a secret that was cut through, the rest is not known again.
    """
    for name, value in sorted(secrets.items(), key=lambda item: -len(item[1])):
        if len(value) >= SECRET_CHARS_MIN:
            text = text.replace(value, f"<{name}>")
    return masked(text)
