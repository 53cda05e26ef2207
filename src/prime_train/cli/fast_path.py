"""Checking configs without the library that reads command lines, which takes longer to load than the check itself.

Editors and hooks call it for every file saved. Whatever is not plainly understood is left to the library: help, mistakes, other verbs.
"""

import gc
import os
from collections.abc import Sequence
from pathlib import Path

from prime_train.cli.findings.formats import Format
from prime_train.exits import guarded

FAST = "lint"


def quick(words: Sequence[str]) -> None:
    """Runs the verb and leaves; returns where that is not for it to do."""
    asked = _asked(words[1:])
    if asked is None:
        return
    # Looking for plugins of the library that holds the spec reads what every installed package says of itself; none is wanted here.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # What is loaded stays loaded, and the process ends soon: there is nothing to collect, and looking for it is a tenth of the time.
    gc.disable()
    from prime_train.cli.findings.check import check

    paths, form = asked
    guarded(check)(paths, form, fast=words[0] == FAST)


def _asked(words: Sequence[str]) -> tuple[list[Path], Format] | None:
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
