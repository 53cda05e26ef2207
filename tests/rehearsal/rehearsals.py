"""Rehearsals of the scripts in `scripts`, each in a folder of its own."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from prime_train.launch.command_config import config_of
from prime_train.rehearsal.rehearsal import Rehearsal, Request
from prime_train.rehearsal.rehearse import rehearse
from prime_train.spec.reader import read_text

SCRIPTS = Path(__file__).parent / "scripts"
SECONDS = 60.0


def request_of(folder: Path, *arguments: str, script: str = "train.py") -> Request:
    """Return the request to rehearse `python SCRIPT ARGUMENTS` in this folder."""
    made = config_of(["python", script, *arguments], 5.0, name="rehearsed")
    spec = read_text(made.text, made.label).spec
    assert spec is not None
    return Request(spec, folder, SECONDS)


def rehearsed(name: str, folder: Path, arguments: Sequence[str] = ()) -> Rehearsal:
    """Rehearse a script of `scripts`."""
    for file in SCRIPTS.glob(f"{name}.*"):
        shutil.copy(file, folder)
    return rehearse(request_of(folder, *arguments, script=f"{name}.py"), os.environ, lambda _: None)
