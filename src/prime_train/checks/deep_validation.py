"""Check configs with prime-rl's own validators, at the commit that the run would use."""

import re
from collections.abc import Callable, Sequence
from collections.abc import Mapping as Variables
from dataclasses import dataclass, field, replace
from pathlib import Path

from prime_train.checks.engine import findings_of, findings_with_ignored
from prime_train.configs.bug_findings import bug_as_finding
from prime_train.configs.loader import LoadedConfig
from prime_train.errors import ExternalError, PermanentError, UsageError
from prime_train.exit_codes import Exit
from prime_train.spec.finding import SECRET, Finding, Severity
from prime_train.spec.rule import Subject
from prime_train.spec.tree import Listing, Mapping, Node, Scalar, plain
from prime_train.spec.upstream import Upstream, ValidatorError
from prime_train.text.explained_errors import is_debugging
from prime_train.text.invocations import in_one_line
from prime_train.text.redaction import HIDDEN, LOOKS
from prime_train.trainers.prime_rl.install import REPOSITORY
from prime_train.trainers.prime_rl.reference import prime_rl_559b4477 as table
from prime_train.trainers.prime_rl.rules import all_rules as prime_rl
from prime_train.trainers.prime_rl.rules.rule import settings_of
from prime_train.trainers.prime_rl.rules.upstream import RULES
from prime_train.trainers.prime_rl.validators.validators import CachedPackage, NoSuchCommit, Validators

_REF = re.compile(r"[0-9a-f]{7,40}")
_Line = tuple[str, int]


@dataclass
class DeepValidation:
    """A check of configs by prime-rl's own validators. Raises UsageError if `ref` is not a commit.

    `environment`: variables that name the cache folder; `progress` is called with each step. `ref`: the
    commit for configs that no run names; empty: the commit whose settings are built in. `trusted`: run the
    validators with all of the user's permissions instead of in a sandbox. `code`: the exit code for failures
    to run the validators; their findings do not affect it.
    """

    environment: Variables[str, str]
    progress: Callable[[str], None]
    ref: str = ""
    trusted: bool = False
    code: Exit = Exit.OK
    _found: dict[str, CachedPackage | Upstream] = field(default_factory=dict)
    """Results by requested commit, so that no commit is fetched, or fails, twice."""

    def __post_init__(self) -> None:
        if self.ref and not _REF.fullmatch(self.ref):
            raise UsageError(
                f"{self.ref[:60]!r} is not a commit of prime-rl",
                fix="write at least 7 digits of the commit hash, preferably all 40",
            )

    def extend(self, read: Sequence[LoadedConfig]) -> list[LoadedConfig]:
        """Return the configs; each prime-rl config has its validators' refusals added, except where an error
        is reported anyway.
        """
        validators = Validators(
            REPOSITORY, cache_folder(self.environment), self.progress, trusted=self.trusted
        )
        return [self._alone(loaded, validators) for loaded in read]

    def _alone(self, loaded: LoadedConfig, validators: Validators) -> LoadedConfig:
        try:
            if loaded.variants:
                parts = [
                    (title, self._validated(replace(loaded, subject=subject, variants=()), validators))
                    for title, subject in loaded.variants
                ]
                return replace(
                    loaded,
                    variants=tuple((title, one.subject) for title, one in parts if one.subject is not None),
                )
            return self._validated(loaded, validators)
        except Exception as error:
            finding = bug_as_finding(loaded.file, error, debug=is_debugging(self.environment))
            return replace(loaded, findings=(*loaded.findings, finding))

    def _validated(self, loaded: LoadedConfig, validators: Validators) -> LoadedConfig:
        subject = loaded.subject
        if subject is None or not _is_for_prime_rl(subject):
            return loaded
        settings = settings_of(subject)
        if settings is None or not settings.is_complete:
            self.progress(
                f"{loaded.file}: not a complete prime-rl config on this machine, so prime-rl's own "
                "validators were not run"
            )
            return loaded
        upstream = self._answer(subject, loaded.findings, validators)
        return replace(loaded, subject=_news(replace(subject, upstream=upstream), loaded.findings))

    def _answer(self, subject: Subject, found: Sequence[Finding], validators: Validators) -> Upstream:
        assert subject.trainer is not None
        part = subject.spec.trainer.prime_rl if subject.spec is not None else None
        package = self._package(part.ref if part is not None else self.ref or table.COMMIT, validators)
        if isinstance(package, Upstream):
            return package
        try:
            secrets = {(finding.file, finding.line) for finding in found if finding.code == SECRET}
            config = plain(_without(subject.trainer.root, secrets, subject.trainer.file))
            return Upstream(package.commit, validators.judge(package, config))
        except ExternalError as error:
            return self._failed(package.commit, error)

    def _package(self, ref: str, validators: Validators) -> CachedPackage | Upstream:
        if ref not in self._found:
            try:
                self._found[ref] = validators.at(ref)
            except NoSuchCommit:
                self._found[ref] = Upstream(ref, is_absent=True)
            except ExternalError as error:
                self._found[ref] = self._failed(ref, error)
        return self._found[ref]

    def _failed(self, ref: str, error: ExternalError) -> Upstream:
        self.code = Exit.EXTERNAL_REFUSED if isinstance(error, PermanentError) else Exit.EXTERNAL_FAILED
        return Upstream(ref, failure=in_one_line(error))


def cache_folder(environment: Variables[str, str]) -> Path:
    """Return the cache folder for config packages; it can be deleted at any time."""
    named = environment.get("XDG_CACHE_HOME")
    return (Path(named) if named else Path.home() / ".cache") / "prime-train" / "prime-rl"


def _is_for_prime_rl(subject: Subject) -> bool:
    return subject.format == "prime_rl" or (
        subject.spec is not None and subject.spec.trainer.prime_rl is not None
    )


def _news(subject: Subject, found: Sequence[Finding]) -> Subject:
    """Return the subject without the refusals at places where another error is reported."""
    upstream = subject.upstream
    assert upstream is not None
    # `findings_of` applies the comments that ignore findings: an ignored error must not suppress a refusal.
    plainly = findings_of(
        replace(subject, upstream=replace(upstream, refusals=())), found, rules=prime_rl.RULES
    )
    reported = {(finding.file, finding.line) for finding in plainly if finding.severity is Severity.ERROR}
    return replace(
        subject,
        upstream=replace(
            upstream, refusals=tuple(one for one in upstream.refusals if _is_new(one, subject, reported))
        ),
    )


def _is_new(refusal: ValidatorError, subject: Subject, reported: set[_Line]) -> bool:
    assert subject.upstream is not None
    alone = replace(subject, upstream=replace(subject.upstream, refusals=(refusal,)))
    return not any(
        (finding.file, finding.line) in reported for finding in findings_with_ignored(alone, rules=RULES)
    )


def _without(node: Node, secrets: set[_Line], file: str) -> Node:
    """Return the tree with secrets replaced, so that the validators' messages cannot contain any."""
    match node:
        case Scalar():
            is_secret = (node.place.file or file, node.place.line) in secrets or LOOKS.search(node.text)
            return replace(node, value=HIDDEN) if is_secret else node
        case Listing():
            return replace(node, items=tuple(_without(item, secrets, file) for item in node.items))
        case Mapping():
            entries = tuple(
                replace(entry, value=_without(entry.value, secrets, file)) for entry in node.entries
            )
            return Mapping(node.place, entries, node.size)
