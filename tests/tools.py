"""Programs that some tests need besides Python's packages; `make tools` installs what is missing."""

import os
import shutil
from pathlib import Path

TOOLS = Path(__file__).parents[1] / "build" / "tools"
"""Folder in which `make tools` installs programs that need an environment of their own."""
GO_BIN = Path.home() / "go" / "bin"


def program(name: str, *places: Path) -> str | None:
    """Return the program that $NAME names (in capitals, '_' for '-'), else the one on PATH, else the first
    existing one of `places`.
    """
    named = os.environ.get(name.upper().replace("-", "_")) or shutil.which(name)
    candidates = [named] if named else [str(place) for place in places]
    return next((found for found in candidates if os.access(found, os.X_OK)), None)
