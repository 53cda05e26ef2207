"""Check configs by all rules, honouring comments that ignore findings."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from prime_train.adapters.config_yaml import Config
from prime_train.configs.loader import Matter
from prime_train.configs.run_config import of_config
from prime_train.configs.shielding import shielded
from prime_train.core.finding import Finding
from prime_train.core.registry.providers import is_own_machine
from prime_train.rules import Subject, look, rules_for, settle

SLOW = frozenset(("memory",))
"""Families of rules that `lint` leaves out."""


def with_unset_secrets(matter: Matter) -> Matter:
    """Return `matter` with a finding for each secret that is not set in this environment. CI jobs that check what others launch do not call
    this, because they neither have nor need the secrets."""
    from prime_train.configs.unset_secrets import unset_secrets

    spec = matter.subject.spec if matter.subject is not None else None
    found = unset_secrets(spec, matter.file, matter.sources.get(matter.file, "")) if spec is not None else ()
    return replace(matter, findings=(*matter.findings, *found))


def found_in(read: Sequence[Matter], *, fast: bool = False) -> tuple[tuple[Finding, ...], dict[str, str]]:
    """Return all findings on the configs, in order, and the text of each file. `fast`: leave out the rules of `SLOW`."""
    sources = {file: text for matter in read for file, text in matter.sources.items()}
    said = [finding for matter in read for finding in matter.findings]
    judged = [finding for matter in read for finding in _judged_alone(matter, fast=fast)]
    return settle((*said, *judged), sources), sources


def judged(
    config: Config, found: Iterable[Finding] = (), *, run_secrets: Sequence[str] | None = None
) -> tuple[tuple[Finding, ...], dict[str, str]]:
    """Return all findings on one run's spec and the files it names, together with those in `found`, and the text of each file.

    `run_secrets`: the names of the secrets that the control plane hands to runs; None: those that this machine's environment names.
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
    """Return the subject without GPU kinds if the run uses this machine (`local`): they specify what to rent, and nothing is rented."""
    spec = subject.spec
    if spec is None or not is_own_machine(spec.hardware.provider) or not spec.hardware.gpus:
        return subject
    return replace(subject, spec=spec.model_copy(update={"hardware": spec.hardware.model_copy(update={"gpus": ()})}))
