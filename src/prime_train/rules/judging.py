"""The rules asked of one subject: their flaws with places, as findings."""

from collections.abc import Iterable, Iterator
from itertools import islice

from prime_train.core.finding import Finding, in_order
from prime_train.core.masking import HIDDEN, masked
from prime_train.core.tree import Scalar, place_of
from prime_train.rules.ignores import settle
from prime_train.rules.rule import Document, Flaw, Rule, Subject
from prime_train.rules.table import rules_for

VALUE_CHARS_MAX = 60
MASKED_CHARS_MAX = 2000
"""What is looked through for secrets before it is cut: a part of one would not be known for what it is."""
FLAWS_MAX = 50
"""Of one rule in one subject: whoever mends so many may ask again. Rules yield their flaws one by one, so more are not even looked for."""


def judge(subject: Subject, found: Iterable[Finding] = (), *, rules: Iterable[Rule] | None = None) -> tuple[Finding, ...]:
    """What is wrong with the subject, each once and in order, with what was `found` while it was read. Comments that ignore
    are honoured."""
    return settle((*found, *look(subject, rules=rules)), sources_of(subject))


def look(subject: Subject, *, rules: Iterable[Rule] | None = None) -> tuple[Finding, ...]:
    """As `judge`, for several subjects that share files: nothing is ignored yet. `rules`: all of the table, if none are named."""
    asked = rules_for(subject) if rules is None else rules
    return in_order([finding for rule in asked if rule.applies(subject) for finding in _findings(rule, subject)])


def sources_of(subject: Subject) -> dict[str, str]:
    """Every file the subject was made from, and its text."""
    documents = (document for document in (subject.config, subject.trainer) if document is not None)
    return {document.file: document.source for document in documents} | dict(subject.sources)


def _findings(rule: Rule, subject: Subject) -> Iterator[Finding]:
    for flaw in islice(rule.check(subject), FLAWS_MAX):
        document = subject.config if flaw.document == "config" else subject.trainer
        if document is not None:
            yield _finding(rule, flaw, document)


def _finding(rule: Rule, flaw: Flaw, document: Document) -> Finding:
    place = place_of(document.root, flaw.path, on_key=flaw.on_key)
    node = document.at(*flaw.path)
    shown = masked(node.text[:MASKED_CHARS_MAX])[:VALUE_CHARS_MAX] if isinstance(node, Scalar) else ""
    return Finding(
        rule.code,
        masked(flaw.message),
        place.file or document.file,
        place.line,
        place.column,
        severity=rule.severity,
        fix=masked(flaw.fix or rule.fix),
        value=HIDDEN if flaw.is_secret else shown,
    )
