"""Check configs by all rules, honouring comments that ignore findings."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from prime_train.checks.engine import findings_with_ignored
from prime_train.checks.ignores import apply_ignores
from prime_train.configs.bug_findings import bug_as_finding, has_bug
from prime_train.configs.loader import LoadedConfig, load_configs, of_config
from prime_train.configs.policy_place import may_exceed
from prime_train.configs.unset_secrets import unset_secrets
from prime_train.exit_codes import Exit
from prime_train.providers.kinds import allowed_providers, is_own_machine
from prime_train.spec.access_run_secrets import DEFAULT
from prime_train.spec.finding import Finding, Severity, has_errors
from prime_train.spec.reader import Config
from prime_train.spec.rule import Subject
from prime_train.text.explained_errors import is_debugging

SLOW = frozenset(("memory",))
"""Families of rules that `lint` leaves out."""


FAIL_ON = {"error": (Severity.ERROR,), "warning": (Severity.ERROR, Severity.WARNING), "never": ()}
"""The severities that make a check fail, by the option's value."""

Extend = Callable[[Sequence[LoadedConfig]], list[LoadedConfig]]
"""A function that adds findings from another source to the configs, such as refusals of prime-rl's own
validators.
"""


@dataclass(frozen=True)
class Validation:
    """The result of checking configs. `files`: the paths of the configs, in order. `sources`: the text of
    each file that was read. `read`: the configs as they were read.
    """

    findings: tuple[Finding, ...]
    files: tuple[str, ...]
    sources: dict[str, str]
    read: tuple[LoadedConfig, ...] = ()

    @property
    def has_bug(self) -> bool:
        """Whether a file could not be checked because of a bug in prime-train."""
        return has_bug(self.findings)

    @property
    def has_errors(self) -> bool:
        return has_errors(self.findings)

    @property
    def exit(self) -> Exit:
        """The exit code of a command that only checks configs."""
        return exit_for(self.findings, valid=not self.has_errors)


def exit_for(findings: Sequence[Finding], *, valid: bool) -> Exit:
    """Return the exit code for these findings. A file that could not be checked because of a bug counts more
    than all mistakes.
    """
    if has_bug(findings):
        return Exit.BUG
    return Exit.OK if valid else Exit.FINDINGS


def validate(
    paths: Sequence[Path], environment: Mapping[str, str], *, fast: bool = False, extend: Extend | None = None
) -> Validation:
    """Check the configs in `paths`, which are files or folders.

    `environment`: the variables with the secrets that runs may get; those that configs name and that are not
    set are reported, except in a CI job, which checks what others launch and neither has nor needs them.
    `fast`: without slow rules and notes, as `lint` does. `extend`: adds to the configs before the rules are
    applied. Raises OSError for a folder that cannot be read, and UsageError if the operator's policy cannot
    be used.
    """
    read = load_configs(paths, environment)
    read = read if extend is None else extend(read)
    found = [] if fast else _asked_of_this_place(read, environment)
    findings, sources = check_configs(read, found, fast=fast, debug=is_debugging(environment))
    shown = tuple(finding for finding in findings if not (fast and finding.severity is Severity.NOTE))
    return Validation(shown, tuple(loaded.file for loaded in read), sources, tuple(read))


def _asked_of_this_place(read: Sequence[LoadedConfig], environment: Mapping[str, str]) -> list[Finding]:
    """Return the findings on what configs ask of the control plane that the environment names: beyond its
    policy, and secrets that are not set.
    """
    specs = [(loaded, loaded.spec) for loaded in read if loaded.spec is not None]
    found = list[Finding]()
    if not environment.get("CI"):
        for loaded, spec in specs:
            found += unset_secrets(spec, environment, loaded.file, loaded.sources.get(loaded.file, ""))
    if any(may_exceed(spec.hardware, environment) for _, spec in specs):
        from prime_train.configs.history.policy import beyond_policy

        found += beyond_policy(read, environment)
    return found


def check_configs(
    read: Sequence[LoadedConfig], found: Iterable[Finding] = (), *, fast: bool = False, debug: bool = False
) -> tuple[tuple[Finding, ...], dict[str, str]]:
    """Return all findings on the configs, with those in `found`, in order, and the text of each file. `fast`:
    leave out the rules of `SLOW`; `debug`: raise the exception of a bug in prime-train instead of reporting
    it.
    """
    every = [*found]
    for loaded in read:
        every += loaded.findings
        try:
            every += _judged(loaded, without=SLOW if fast else frozenset())
        except Exception as error:
            every.append(bug_as_finding(loaded.file, error, debug=debug))
    sources = {file: text for loaded in read for file, text in loaded.sources.items()}
    return apply_ignores(every, sources), sources


def passes(found: Iterable[Finding], fail_on: str) -> bool:
    """Return whether no finding is at least as severe as `fail_on`, a key of `FAIL_ON`, says."""
    return not any(finding.severity in FAIL_ON[fail_on] for finding in found)


def check_run_config(
    config: Config,
    found: Iterable[Finding] = (),
    *,
    run_secrets: Sequence[str] = DEFAULT,
    allowed_folders: Sequence[Path] = (),
) -> tuple[tuple[Finding, ...], dict[str, str]]:
    """Return all findings on one run's spec and the files it names, together with those in `found`, and the
    text of each file.

    `run_secrets`: the names of the secrets that the control plane hands to runs; `allowed_folders`: folders
    outside of the repository that the person at the terminal named.
    """
    loaded = of_config(config, run_secrets, allowed_folders)
    return apply_ignores((*loaded.findings, *_judged(loaded), *found), loaded.sources), loaded.sources


def _judged(loaded: LoadedConfig, *, without: Container[str] = ()) -> Iterable[Finding]:
    """Return the findings on what machines can get. What is wrong with some variants only names them."""
    found = {
        title: findings_with_ignored(_without_rent(subject), without=without)
        for title, subject in loaded.judged
    }
    every = set.intersection(*map(set, found.values())) if found else set()
    return dict.fromkeys(
        finding if finding in every else replace(finding, message=f"with {title}, {finding.message}")
        for title, findings in found.items()
        for finding in findings
    )


def _without_rent(subject: Subject) -> Subject:
    """Return the subject without GPU kinds if the run uses this machine (`local`), because they specify what
    to rent and nothing is rented.
    """
    spec = subject.spec
    if spec is None or not is_own_machine(allowed_providers(spec.hardware)) or not spec.hardware.gpus:
        return subject
    return replace(
        subject, spec=spec.model_copy(update={"hardware": spec.hardware.model_copy(update={"gpus": ()})})
    )
