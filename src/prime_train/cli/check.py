"""Configs read, judged and printed: what `validate` and `lint` do."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from prime_train.cli import findings
from prime_train.cli.exits import Exit
from prime_train.cli.formats import Format
from prime_train.cli.subjects import matters
from prime_train.core.finding import Finding, Severity, has_errors
from prime_train.rules import Subject, look, rules_for, settle

SLOW = frozenset(("memory",))
"""Families of rules that `lint` leaves out."""


def check(paths: Sequence[Path], form: Format, *, fast: bool = False) -> Exit:
    """`fast`: without the slow rules and without notes, a line a finding."""
    read = matters(paths)
    sources = {file: text for matter in read for file, text in matter.sources.items()}
    said = [finding for matter in read for finding in matter.findings]
    judged = [finding for matter in read if matter.subject is not None for finding in _judged(matter.subject, fast=fast)]
    found = settle((*said, *judged), sources)
    if fast:
        found = tuple(finding for finding in found if finding.severity is not Severity.NOTE)
    _print(found, [matter.file for matter in read], {} if fast else sources, form)
    return Exit.FINDINGS if has_errors(found) else Exit.OK


def _judged(subject: Subject, *, fast: bool) -> tuple[Finding, ...]:
    return look(subject, rules=[rule for rule in rules_for(subject) if not (fast and rule.family in SLOW)])


def _print(found: Sequence[Finding], files: Sequence[str], sources: dict[str, str], form: Format) -> None:
    # Each form is loaded only where it is asked for.
    match form:
        case Format.TEXT:
            _print_text(found, files, sources)
        case Format.JSON:
            findings.print_json(found)
        case Format.SARIF:
            from prime_train.cli.findings_sarif import sarif

            print(json.dumps(sarif(found), indent=2))
        case Format.GITHUB:
            from prime_train.cli.findings_github import github

            print(github(found), end="\n" if found else "")
        case Format.MARKDOWN:
            from prime_train.cli.findings_markdown import markdown

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
