"""`validate --deep`: check each config with prime-rl's own validators, at the commit that the run would use."""

import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from prime_train.adapters.prime_rl_deep import Kept, NoSuchCommit, Validators
from prime_train.configs.loaded import Matter
from prime_train.configs.shielding import shielded
from prime_train.core.config_tree import Listing, Mapping, Node, Scalar, plain
from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit
from prime_train.core.finding import Finding, Severity
from prime_train.core.prime_rl.upstream import Refusal, Upstream
from prime_train.core.text.redaction import HIDDEN, LOOKS
from prime_train.ports import OutsideError, PermanentError
from prime_train.rules import Subject, judge, look, prime_rl
from prime_train.rules.data import prime_rl_559b4477 as table
from prime_train.rules.prime_rl.rule import settings_of
from prime_train.rules.prime_rl.upstream import RULES
from prime_train.trainers.prime_rl.install import REPOSITORY

_REF = re.compile(r"[0-9a-f]{7,40}")
_Line = tuple[str, int]


@dataclass
class Asking:
    """A `--deep` check. `ref`: the commit for configs that no run names; empty: the commit whose settings are built in. `trusted`: run the
    validators with all of the user's permissions instead of in a sandbox. Raises UsageError if `ref` is not a commit.

    `code`: the exit code for failures to run the validators; their findings do not affect it.
    """

    ref: str
    trusted: bool = False
    code: Exit = Exit.OK
    _found: "dict[str, Kept | Upstream]" = field(default_factory=dict)
    """Results by requested commit, so that no commit is fetched, or fails, twice."""

    def __post_init__(self) -> None:
        if self.ref and not _REF.fullmatch(self.ref):
            raise UsageError(f"--prime-rl-ref {self.ref[:60]!r} is no commit", fix="write its digits: 7 of them at least, better all 40")

    def about(self, read: Sequence[Matter]) -> list[Matter]:
        """Return the configs; each prime-rl config has its validators' refusals added, except where an error is reported anyway."""
        validators = Validators(REPOSITORY, cache_folder(), _say, trusted=self.trusted)
        return [_alone(matter, partial(self._asked, matter, validators)) for matter in read]

    def _asked(self, matter: Matter, validators: Validators) -> Matter:
        subject = matter.subject
        if subject is None or not _is_for_prime_rl(subject):
            return matter
        settings = settings_of(subject)
        if settings is None or not settings.is_whole:
            _say(f"{matter.file}: not a whole config of prime-rl's that lies here: its own validators were not asked")
            return matter
        upstream = self._answer(subject, matter.findings, validators)
        return replace(matter, subject=_news(replace(subject, upstream=upstream), matter.findings))

    def _answer(self, subject: Subject, found: Sequence[Finding], validators: Validators) -> Upstream:
        assert subject.trainer is not None
        part = subject.spec.trainer.prime_rl if subject.spec is not None else None
        kept = self._kept(part.ref if part is not None else self.ref or table.COMMIT, validators)
        if isinstance(kept, Upstream):
            return kept
        try:
            secrets = {(finding.file, finding.line) for finding in found if finding.code == "PT020"}
            config = plain(_without(subject.trainer.root, secrets, subject.trainer.file))
            return Upstream(kept.commit, validators.judge(kept, config))
        except OutsideError as error:
            return self._failed(kept.commit, error)

    def _kept(self, ref: str, validators: Validators) -> Kept | Upstream:
        if ref not in self._found:
            try:
                self._found[ref] = validators.at(ref)
            except NoSuchCommit:
                self._found[ref] = Upstream(ref, is_absent=True)
            except OutsideError as error:
                self._found[ref] = self._failed(ref, error)
        return self._found[ref]

    def _failed(self, ref: str, error: OutsideError) -> Upstream:
        self.code = Exit.OUTSIDE_REFUSED if isinstance(error, PermanentError) else Exit.OUTSIDE_FAILED
        return Upstream(ref, failure=str(error))


def _alone(matter: Matter, ask: Callable[[], Matter]) -> Matter:
    return shielded(matter.file, ask, lambda finding: replace(matter, findings=(*matter.findings, finding)))


def cache_folder() -> Path:
    """Return the cache folder for config packages; it can be deleted at any time."""
    named = os.environ.get("XDG_CACHE_HOME")
    return (Path(named) if named else Path.home() / ".cache") / "prime-train" / "prime-rl"


def _say(line: str) -> None:
    print(f"prime-train: {line}", file=sys.stderr, flush=True)


def _is_for_prime_rl(subject: Subject) -> bool:
    return subject.kind == "prime_rl" or (subject.spec is not None and subject.spec.trainer.prime_rl is not None)


def _news(subject: Subject, found: Sequence[Finding]) -> Subject:
    """Return the subject without the refusals at places where another error is reported."""
    upstream = subject.upstream
    assert upstream is not None
    # `judge` applies the comments that ignore findings: an ignored error must not suppress a refusal.
    plainly = judge(replace(subject, upstream=replace(upstream, refusals=())), found, rules=prime_rl.RULES)
    told = {(finding.file, finding.line) for finding in plainly if finding.severity is Severity.ERROR}
    return replace(subject, upstream=replace(upstream, refusals=tuple(one for one in upstream.refusals if _is_new(one, subject, told))))


def _is_new(refusal: Refusal, subject: Subject, told: set[_Line]) -> bool:
    assert subject.upstream is not None
    alone = replace(subject, upstream=replace(subject.upstream, refusals=(refusal,)))
    return not any((finding.file, finding.line) in told for finding in look(alone, rules=RULES))


def _without(node: Node, secrets: set[_Line], file: str) -> Node:
    """Return the tree with secrets replaced, so that the validators' messages cannot contain any."""
    match node:
        case Scalar():
            is_secret = (node.place.file or file, node.place.line) in secrets or LOOKS.search(node.text)
            return replace(node, value=HIDDEN) if is_secret else node
        case Listing():
            return replace(node, items=tuple(_without(item, secrets, file) for item in node.items))
        case Mapping():
            entries = tuple(replace(entry, value=_without(entry.value, secrets, file)) for entry in node.entries)
            return Mapping(node.place, entries, node.size)
