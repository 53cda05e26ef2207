"""Settings that are several lines of text: a variable has the path of a file with them, or the text itself, as in a secret."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

NOWHERE = Path("/nonexistent")


def is_text(given: str) -> bool:
    """Return whether this is the text itself, and not the path of a file."""
    return "\n" in given or ": " in given or given.startswith("{")


def home_folder(environment: Mapping[str, str]) -> Path:
    """Return the user's home folder, in which tools keep their settings. A function on AWS has a user without one."""
    with suppress(RuntimeError):
        return Path(environment.get("HOME") or Path.home())
    return NOWHERE
