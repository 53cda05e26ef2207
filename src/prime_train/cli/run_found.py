"""What keeps a config from being launched from here and now, though nothing is wrong with it elsewhere."""

import os
import re
from collections.abc import Sequence
from dataclasses import replace

from prime_train.adapters.config_yaml import Config
from prime_train.cli.check import judged
from prime_train.core.finding import Finding, Severity
from prime_train.core.spec import RunSpec

ZEROS_MAX = 16
"""At the end of a commit that somebody made there are never so many."""


def found_for(read: Config, spec: RunSpec, run_secrets: Sequence[str]) -> tuple[tuple[Finding, ...], dict[str, str]]:
    """What `validate` says of the spec as it would be launched, and what is missing here; and the text of each file.
    `run_secrets`: what the control plane hands to runs."""
    return judged(replace(read, spec=spec), (*_placeholder(spec, read), *_unset_secrets(spec, read)), run_secrets=run_secrets)


def _placeholder(spec: RunSpec, read: Config) -> tuple[Finding, ...]:
    """A commit that nobody made, as examples have it: a machine would be paid for to find that out."""
    part = spec.trainer.prime_rl
    if part is None or not part.ref.endswith("0" * ZEROS_MAX):
        return ()
    line, column = _place(read.source, part.ref)
    said = f"trainer.prime_rl.ref is a placeholder: {part.ref}"
    fix = "write the whole commit of prime-rl: git ls-remote, or git rev-parse HEAD in a checkout of it"
    return (Finding("PT022", said, read.file, line, column, fix=fix),)


def _unset_secrets(spec: RunSpec, read: Config) -> tuple[Finding, ...]:
    unset = [name for name in spec.secrets if name not in os.environ]
    if not unset:
        return ()
    said = f"{', '.join(unset)}: named under secrets, not set here"
    line, column = _place(read.source, unset[0])
    fix = "set it where prime-train serve runs, before that is started: without it no attempt starts"
    return (Finding("PT021", said, read.file, line, column, severity=Severity.NOTE, fix=fix),)


def _place(source: str, name: str) -> tuple[int, int]:
    """Line and column of the last mention: `secrets` may not name what another key spells."""
    found = list(re.finditer(rf"\b{re.escape(name)}\b", source))
    if not found:
        return 1, 1
    before = source[: found[-1].start()]
    return before.count("\n") + 1, len(before) - before.rfind("\n")
