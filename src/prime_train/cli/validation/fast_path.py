"""Check configs without loading Typer, which takes longer to load than the check itself.

Editors and hooks run these commands for every saved file. Any other arguments, such as `--help`, invalid options and other commands, are
left to Typer.
"""

import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from prime_train.cli.findings.formats import Format
from prime_train.exits import reported

FAST = "lint"


def run_and_exit(words: Sequence[str]) -> None:
    """Run the command and exit. Returns if the arguments have to be parsed by Typer."""
    parsed = _parsed(words[1:])
    if parsed is None:
        return
    # Pydantic's search for plugins reads the metadata of every installed package; no plugin is needed here.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # The process ends soon and creates little garbage, and garbage collection takes a tenth of the time.
    gc.disable()
    from prime_train.cli.findings.check import check

    paths, form = parsed
    with reported():
        code = check(paths, form, fast=words[0] == FAST)
        sys.stdout.flush()
    sys.exit(code)


def _parsed(words: Sequence[str]) -> tuple[list[Path], Format] | None:
    form, paths, at = Format.TEXT, [], 0
    while at < len(words):
        word = words[at]
        value = word.removeprefix("--format=") if word.startswith("--format=") else None
        if word == "--format" and at + 1 < len(words):
            value, at = words[at + 1], at + 1
        if word == "--json":
            form = Format.JSON
        elif value is not None and value in [form.value for form in Format]:
            form = Format(value)
        elif word.startswith("-"):
            return None
        else:
            paths.append(Path(word))
        at += 1
    return (paths, form) if paths else None
