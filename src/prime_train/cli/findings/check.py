"""Read and check configs and print the findings, for `validate` and `lint`."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from prime_train.cli.findings import terminal as findings
from prime_train.cli.findings.formats import Format
from prime_train.configs.loader import Matter, matters
from prime_train.configs.shielding import has_bug
from prime_train.core.exit_codes import Exit
from prime_train.core.finding import Finding, Severity, has_errors
from prime_train.operations.validate import found_in, with_unset_secrets

Ask = Callable[[Sequence[Matter]], list[Matter]]
"""A function that adds information to the configs that were read."""


def check(paths: Sequence[Path], form: Format, *, fast: bool = False, ask: Ask | None = None) -> Exit:
    """Check the configs in `paths`, print the findings and return the exit code. `fast`: without slow rules, notes and source lines. `ask`:
    adds information to the configs before they are checked."""
    read = matters(paths, plainly=True) if ask is None else ask(matters(paths))
    if not fast and not os.environ.get("CI"):
        read = [with_unset_secrets(matter) for matter in read]
    found, sources = found_in(read, fast=fast)
    if fast:
        found = tuple(finding for finding in found if finding.severity is not Severity.NOTE)
    _print(found, [matter.file for matter in read], {} if fast else sources, form)
    if has_bug(found):
        return Exit.BUG
    return Exit.FINDINGS if has_errors(found) else Exit.OK


def _print(found: Sequence[Finding], files: Sequence[str], sources: dict[str, str], form: Format) -> None:
    # Only the requested format is imported, to start faster.
    match form:
        case Format.TEXT:
            _print_text(found, files, sources)
        case Format.JSON:
            findings.print_json(found)
        case Format.SARIF:
            from prime_train.reports.findings.sarif import sarif

            print(json.dumps(sarif(found), indent=2))
        case Format.GITHUB:
            from prime_train.output import print_command
            from prime_train.reports.findings.github import github

            if found:
                print_command(github(found))
        case Format.MARKDOWN:
            from prime_train.reports.findings.markdown import markdown

            print(markdown(found, len(files)), end="")


def _print_text(found: Sequence[Finding], files: Sequence[str], sources: dict[str, str]) -> None:
    findings.print_findings(found, sources)
    faulty = {finding.file for finding in found}
    if found:
        findings.summary(found, len(faulty))
    for file in files:
        if file not in faulty:
            print(f"{file}: ok")
    if not files:
        print("no configs there", file=sys.stderr)
