"""Runs the rules on one subject and turns their violations into findings with positions."""

from collections.abc import Container, Iterable, Iterator
from itertools import islice

from prime_train.checks.all_rules import rules_for
from prime_train.checks.ignores import apply_ignores
from prime_train.spec.finding import Finding, in_order
from prime_train.spec.rule import Document, Rule, Subject, Violation
from prime_train.spec.tree import Path, Scalar, SourcePosition, line_with, place_of
from prime_train.text.redaction import HIDDEN, redacted
from prime_train.trainers.prime_rl.conventions import KIND

VALUE_CHARS_MAX = 60
TEXT_CHARS_MAX = 1000
REDACTED_CHARS_MAX = 2000
"""Length limit in characters of a text in which secrets are redacted. Texts are redacted before they are cut,
as part of a secret would not be recognised.
"""
VIOLATIONS_MAX = 50
"""Maximum number of violations reported per rule and subject; a user who has fixed that many can check again.
Rules yield violations lazily, so further ones are not even searched for.
"""


def findings_of(
    subject: Subject, found: Iterable[Finding] = (), *, rules: Iterable[Rule] | None = None
) -> tuple[Finding, ...]:
    """Return all findings of a subject, without duplicates and in order, including those `found` while it was
    read. Findings ignored by comments are left out.
    """
    return apply_ignores((*found, *findings_with_ignored(subject, rules=rules)), sources_of(subject))


def findings_with_ignored(
    subject: Subject, *, rules: Iterable[Rule] | None = None, without: Container[str] = ()
) -> tuple[Finding, ...]:
    """Return findings as `findings_of` does, with those that comments ignore. The comments can then be
    applied once for several subjects that share files. `rules`: None means every rule that can apply, but for
    the families in `without`.
    """
    selected = rules_for(subject) if rules is None else (rule for rule in rules if rule.applies(subject))
    corrected = _corrected(subject)
    return in_order(
        [
            found
            for rule in selected
            if rule.topic not in without
            for found in _findings(rule, subject, corrected)
        ]
    )


def sources_of(subject: Subject) -> dict[str, str]:
    """Return every file that the subject was made from, with its text."""
    documents = (document for document in (subject.config, subject.trainer) if document is not None)
    return {document.file: document.source for document in documents} | dict(subject.sources)


def _corrected(subject: Subject) -> Subject | None:
    """Return the subject with misspelt settings moved to their right places; None if none is misspelt or the
    format's settings are not known.
    """
    if subject.format != KIND:
        return None
    from prime_train.trainers.prime_rl.rules.corrections import corrected_subject

    return corrected_subject(subject)


def _violations(
    rule: Rule, subject: Subject, corrected: Subject | None
) -> Iterator[tuple[Violation, Subject]]:
    """Yield the rule's violations, each with the subject in which it is found.

    Those that disappear when misspelt and moved names are corrected are left out, because the names are
    reported themselves. Those that appear then, such as a wrong value in a section that was renamed, are
    reported with them: otherwise they are found only once the names are right.
    """
    if corrected is None:
        yield from ((violation, subject) for violation in rule.check(subject))
        return
    before, after = (tuple(islice(rule.check(one), VIOLATIONS_MAX)) for one in (subject, corrected))
    places_before, places_after = ({_key(violation) for violation in some} for some in (before, after))
    yield from ((violation, subject) for violation in before if _key(violation) in places_after)
    yield from ((violation, corrected) for violation in after if _key(violation) not in places_before)


def _key(violation: Violation) -> tuple[str, Path]:
    return violation.document, tuple(violation.path)


def _findings(rule: Rule, subject: Subject, corrected: Subject | None) -> Iterator[Finding]:
    for violation, where in islice(_violations(rule, subject, corrected), VIOLATIONS_MAX):
        document = where.config if violation.document == "config" else where.trainer
        if document is None:
            continue
        place, node = _place(where, document, violation), document.at(*violation.path)
        shown = redacted(node.text[:REDACTED_CHARS_MAX])[:VALUE_CHARS_MAX] if isinstance(node, Scalar) else ""
        yield Finding(
            rule.code,
            _safe_text(violation.message),
            place.file or document.file,
            place.line,
            place.column,
            severity=rule.severity,
            fix=_safe_text(violation.fix or rule.fix),
            value=HIDDEN if violation.is_secret else shown,
        )


def _place(subject: Subject, document: Document, violation: Violation) -> SourcePosition:
    place = place_of(document.root, violation.path, on_key=violation.on_key)
    config = subject.config
    if config is None or (place.file or document.file) != config.file:
        return place
    if violation.word:
        return line_with(config.source, place, violation.word)
    # A setting that a command overrides is reported at its word in the command, which may be long.
    if violation.document == "trainer" and subject.format != KIND and violation.path:
        name = ".".join(map(str, violation.path))
        spelt = (f"{name}=", f"--{name}", f"--{name.replace('_', '-')}")
        return next(
            (found for word in spelt if (found := line_with(config.source, place, word)) != place), place
        )
    return place


def _safe_text(text: str) -> str:
    safe = redacted(text)
    return safe if len(safe) <= TEXT_CHARS_MAX else f"{safe[: TEXT_CHARS_MAX - 1]}…"
