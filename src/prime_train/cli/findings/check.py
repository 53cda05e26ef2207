"""Configs read, judged and printed: what `validate` and `lint` do."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from prime_train.adapters.config_yaml import Config
from prime_train.cli.exits import Exit
from prime_train.cli.findings import terminal as findings
from prime_train.cli.findings.formats import Format
from prime_train.configs.loader import Matter, matters
from prime_train.configs.run_config import of_config
from prime_train.configs.shielding import has_bug, shielded
from prime_train.core.finding import Finding, Severity, has_errors
from prime_train.rules import Subject, look, rules_for, settle

SLOW = frozenset(("memory",))
"""Families of rules that `lint` leaves out."""
Ask = Callable[[Sequence[Matter]], list[Matter]]
"""Makes of what was read the same with more known of it."""


def check(paths: Sequence[Path], form: Format, *, fast: bool = False, ask: Ask | None = None) -> Exit:
    """`fast`: without the slow rules and without notes, a line a finding. `ask`: adds to what was read before it is judged."""
    read = matters(paths, plainly=True) if ask is None else ask(matters(paths))
    if not fast and not os.environ.get("CI"):
        read = [_with_unset_secrets(matter) for matter in read]
    found, sources = found_in(read, fast=fast)
    if fast:
        found = tuple(finding for finding in found if finding.severity is not Severity.NOTE)
    _print(found, [matter.file for matter in read], {} if fast else sources, form)
    if has_bug(found):
        return Exit.BUG
    return Exit.FINDINGS if has_errors(found) else Exit.OK


def _with_unset_secrets(matter: Matter) -> Matter:
    """Jobs that check what others launch have no secrets, and need none: there nothing is said of them."""
    from prime_train.configs.unset_secrets import unset_secrets

    spec = matter.subject.spec if matter.subject is not None else None
    found = unset_secrets(spec, matter.file, matter.sources.get(matter.file, "")) if spec is not None else ()
    return replace(matter, findings=(*matter.findings, *found))


def found_in(read: Sequence[Matter], *, fast: bool = False) -> tuple[tuple[Finding, ...], dict[str, str]]:
    """What is wrong with all of it, in order; and the text of each file."""
    sources = {file: text for matter in read for file, text in matter.sources.items()}
    said = [finding for matter in read for finding in matter.findings]
    judged = [finding for matter in read for finding in _judged_alone(matter, fast=fast)]
    return settle((*said, *judged), sources), sources


def judged(
    config: Config, found: Iterable[Finding] = (), *, run_secrets: Sequence[str] | None = None
) -> tuple[tuple[Finding, ...], dict[str, str]]:
    """What is wrong with one run's spec and with what it names, with what was `found` besides; and the text of each file.

    `run_secrets`: what the control plane hands to runs, where it was asked; None: what this machine's environment says of that.
    """
    matter = of_config(config)
    subject = matter.subject if matter.subject is None or run_secrets is None else replace(matter.subject, run_secrets=tuple(run_secrets))
    said = _judged(subject, fast=False) if subject is not None else ()
    return settle((*matter.findings, *said, *found), matter.sources), matter.sources


def _judged_alone(matter: Matter, *, fast: bool) -> tuple[Finding, ...]:
    subject = matter.subject
    return () if subject is None else shielded(matter.file, lambda: _judged(subject, fast=fast), lambda finding: (finding,))


def _judged(subject: Subject, *, fast: bool) -> tuple[Finding, ...]:
    asked = _without_rent(subject)
    return look(asked, rules=[rule for rule in rules_for(asked) if not (fast and rule.family in SLOW)])


def _without_rent(subject: Subject) -> Subject:
    """One's own machine has what it has: kinds and number of GPUs say what to rent, and nothing of it."""
    spec = subject.spec
    if spec is None or spec.hardware.provider != "local" or not spec.hardware.gpus:
        return subject
    return replace(subject, spec=spec.model_copy(update={"hardware": spec.hardware.model_copy(update={"gpus": ()})}))


def _print(found: Sequence[Finding], files: Sequence[str], sources: dict[str, str], form: Format) -> None:
    # Each form is loaded only where it is asked for.
    match form:
        case Format.TEXT:
            _print_text(found, files, sources)
        case Format.JSON:
            findings.print_json(found)
        case Format.SARIF:
            from prime_train.reports.findings.sarif import sarif

            print(json.dumps(sarif(found), indent=2))
        case Format.GITHUB:
            from prime_train.cli.findings.github import github
            from prime_train.cli.output import print_command

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
