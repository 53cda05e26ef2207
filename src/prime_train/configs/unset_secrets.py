"""Checks for secrets that a spec names and the environment lacks."""

import re
from collections.abc import Container
from typing import TYPE_CHECKING

from prime_train.spec.finding import Finding, Severity

if TYPE_CHECKING:
    from prime_train.spec.spec import RunSpec


def unset_secrets(
    spec: "RunSpec", environment: Container[str], file: str, source: str
) -> tuple[Finding, ...]:
    """Return a note on the secrets that the spec names and the environment lacks; empty if all are set."""
    unset = [name for name in spec.secrets if name not in environment]
    if not unset:
        return ()
    message = f"{', '.join(unset)}: listed under secrets, but not set here"
    line, column = place_of(source, unset[0])
    fix = (
        "set it where the control plane runs, before you start the control plane: without it attempts cannot "
        "start"
    )
    return (Finding("PT021", message, file, line, column, severity=Severity.NOTE, fix=fix),)


def place_of(source: str, name: str) -> tuple[int, int]:
    """Return line and column of the last occurrence of the name, as `secrets` may not name a variable that
    another key sets; (1, 1) if there is none.
    """
    found = list(re.finditer(rf"\b{re.escape(name)}\b", source))
    if not found:
        return 1, 1
    before = source[: found[-1].start()]
    return before.count("\n") + 1, len(before) - before.rfind("\n")
