"""Rules about settings and values that prime-rl does not accept, at the commit that will run.

The settings of one commit are known completely. For any other commit, what the known one refuses is only a
warning, as it may be valid there.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from prime_train.spec.rule import Rules, Subject, Violation
from prime_train.trainers.prime_rl.reference import prime_rl_559b4477 as table
from prime_train.trainers.prime_rl.reference.prime_rl_timeline import VERSIONS
from prime_train.trainers.prime_rl.rules.rule import TOPIC, settings_of
from prime_train.trainers.prime_rl.rules.schema import find_schema_errors
from prime_train.trainers.prime_rl.rules.schema_errors import SchemaError, SchemaErrorKind

_HERE = f"prime-rl at {table.COMMIT} ({table.DATE})"


class Version(NamedTuple):
    """The version of prime-rl that will run. `date` is that of the commit, or empty if not known."""

    ref: str = ""
    date: str = ""

    @property
    def is_known(self) -> bool:
        return not self.ref or self.ref.startswith(table.COMMIT)

    def had(self, error: SchemaError) -> bool:
        """Return whether this version is older than the change that removed the setting."""
        return bool(self.date) and self.date < error.date


_REFUSED = "prime-rl rejects the entire config at start-up, on a machine that is already paid for."
RULES = Rules(TOPIC, requires="prime_rl")


def version_of(subject: Subject) -> Version:
    """Return the version of prime-rl in the spec, otherwise the commit whose own validators were run; empty
    if there is neither.
    """
    part = subject.spec.trainer.prime_rl if subject.spec is not None else None
    commit = subject.upstream.commit if subject.upstream is not None else ""
    ref = part.ref if part is not None else commit
    return Version(ref, next((date for start, date in VERSIONS.items() if ref and ref.startswith(start)), ""))


def _of(*faults: SchemaErrorKind) -> Callable[[Subject], Iterator[Violation]]:
    """Return a check that reports schema errors of these kinds, if the version that will run is the one whose
    settings are known.
    """

    def check(subject: Subject) -> Iterator[Violation]:
        if version_of(subject).is_known:
            yield from (error.violation for error in _all(subject) if error.kind in faults)

    return check


@RULES.error(
    "PR301", "a setting that prime-rl does not have", why=_REFUSED, fix="correct the name, or delete it"
)
def unknown(subject: Subject) -> Iterator[Violation]:
    """Yield unknown settings. A setting of a later version is unknown if the config names a version, and
    otherwise may be intended.
    """
    yield from _of(SchemaErrorKind.UNKNOWN, *((SchemaErrorKind.LATER,) if version_of(subject).ref else ()))(
        subject
    )


@RULES.note(
    "PR309",
    "a setting that needs a later version",
    why=f"{_HERE} would reject it; a later version accepts it.",
    fix="pin a version that has it",
)
def later(subject: Subject) -> Iterator[Violation]:
    if not version_of(subject).ref:
        yield from _of(SchemaErrorKind.LATER)(subject)


@RULES.warning(
    "PR308",
    "a setting that prime-rl at the known version rejects",
    why=f"{_HERE} would reject it. The version of this run may accept it.",
    fix=f"check the config against that version's own settings, or pin {table.COMMIT}",
)
def of_another_version(subject: Subject) -> Iterator[Violation]:
    version = version_of(subject)
    if version.is_known or _has_answered(subject):
        return
    for error in _all(subject):
        if error.kind is not SchemaErrorKind.LATER and not version.had(error):
            found = error.violation
            yield Violation(
                found.path,
                f"{found.message} (at {table.COMMIT})",
                found.fix,
                on_key=found.on_key,
                document="trainer",
            )


@RULES.note(
    "PR307",
    "a version whose settings are not known",
    why=f"Settings change every two to four weeks. This config was checked against those of {_HERE}.",
    fix=f"check the config against that version's own settings, or pin {table.COMMIT}",
)
def version_rule(subject: Subject) -> Iterator[Violation]:
    version = version_of(subject)
    if not version.is_known and not _has_answered(subject) and settings_of(subject) is not None:
        yield Violation(
            ("trainer", "prime_rl", "ref"),
            f"the settings of {version.ref[:9]} are not known; they were checked against {_HERE}",
        )


def _has_answered(subject: Subject) -> bool:
    """Return whether the version's own validators have already reported."""
    return subject.upstream is not None and subject.upstream.has_answered


def _all(subject: Subject) -> tuple[SchemaError, ...]:
    """Return the schema errors of a config. For a run, errors below `resume` are left out, as another rule
    reports all of `resume`.
    """
    if subject.trainer is None or settings_of(subject) is None:
        return ()
    found = find_schema_errors(subject.trainer.root)
    return (
        found
        if subject.spec is None
        else tuple(error for error in found if error.violation.path[:1] != ("resume",))
    )


RULES.error(
    "PR302", "a setting that has moved", why=f"The old name is no longer read: {_REFUSED}", fix="move it"
)(_of(SchemaErrorKind.MOVED))
RULES.error("PR303", "a setting that was removed", why=_REFUSED, fix="delete it")(
    _of(SchemaErrorKind.REMOVED)
)
RULES.error("PR304", "a value of the wrong type", why=_REFUSED, fix="write a value of the right type")(
    _of(SchemaErrorKind.KIND)
)
RULES.error("PR305", "a value that is not allowed", why=_REFUSED, fix="write a value that is allowed")(
    _of(SchemaErrorKind.VALUE)
)
RULES.error("PR306", "a setting is missing", why=_REFUSED, fix="add it")(_of(SchemaErrorKind.MISSING))
