"""The environment of the agent's children: the machine's, without the agent's own secrets, extended by the variables of the spec and the
run."""

import re
from collections.abc import Mapping

from prime_train.core.registry.providers import credentials
from prime_train.core.text.redaction import redacted

_OURS = re.compile(r"^(PRIME_TRAIN|PT)_\w*(KEY|SECRET|TOKEN|PASSWORD|MASTER)")
SECRET_CHARS_MIN = 6
"""Minimum length of a value to redact. Shorter values would also match innocent text."""


def for_children(machine: Mapping[str, str], *layers: Mapping[str, str]) -> dict[str, str]:
    """Return the merged environment; later layers take precedence."""
    merged = {name: value for name, value in machine.items() if not _OURS.match(name) and name not in credentials()}
    for layer in layers:
        merged |= layer
    return merged


def without_secrets(text: str, secrets: Mapping[str, str]) -> str:
    """Return the text with the values of secrets redacted, and of anything that looks like one: a trainer may print its own.

    Call this before the text is cut, because the rest of a secret that was cut could not be recognised.
    """
    for name, value in sorted(secrets.items(), key=lambda item: -len(item[1])):
        if len(value) >= SECRET_CHARS_MIN:
            text = text.replace(value, f"<{name}>")
    return redacted(text)
