"""Lays a virtual environment above another one: it has the packages and programs of the one below, which
stays as it is.
"""

import os
import shlex
from collections.abc import Iterable
from pathlib import Path

SHEBANG_BYTES_MAX = 120
"""Longest first line of a script that every kernel accepts, with some room."""
SCRIPT_BYTES_MAX = 2**20
_ABOVE = "environment-of-the-image.pth"


def put_packages_above(below: Path, venv: Path) -> None:
    """Let the environment also find the packages in `below`, a folder site-packages. Raises OSError."""
    (packages,) = venv.glob("lib/python*/site-packages")
    # Unlike a plain path, this also reads the .pth files that are there.
    (packages / _ABOVE).write_text(f"import site; site.addsitedir({str(below)!r})\n")


def put_programs(scripts: Iterable[Path], below: Path, venv: Path) -> None:
    """Put programs into the environment: with its Python if they are scripts of the Python in the folder
    `below`, else as links. Those that it has already, as every virtual environment does, stay. Raises
    OSError.
    """
    for script in sorted(scripts):
        place = venv / "bin" / script.name
        if not os.path.lexists(place) and not script.name.startswith(("python", "activate", "Activate")):
            _put_script(script, place, below, venv / "bin" / "python")


def _put_script(script: Path, place: Path, below: Path, python: Path) -> None:
    content = script.read_bytes() if script.is_file() and script.stat().st_size <= SCRIPT_BYTES_MAX else b""
    first, _, rest = content.partition(b"\n")
    if not first.startswith(b"#!" + bytes(below)):
        place.symlink_to(script)
        return
    line = b"#!" + bytes(python)
    if len(line) > SHEBANG_BYTES_MAX or b" " in line:
        # Both a shell and Python read this: the shell runs Python, for which it is a text.
        line = b"#!/bin/sh\n'''exec' " + shlex.quote(str(python)).encode() + b' "$0" "$@"\n' + b"' '''"
    place.write_bytes(line + b"\n" + rest)
    place.chmod(0o755)
