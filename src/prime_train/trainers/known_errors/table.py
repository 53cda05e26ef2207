"""The form of the table's rows: a pattern with its source and an example line."""

from prime_train.spec.causes import Action, Cause
from prime_train.trainers.log_rules import EvidenceStrength, LogRule

ROOT, HINT, CONSEQUENCE = EvidenceStrength.ROOT, EvidenceStrength.HINT, EvidenceStrength.CONSEQUENCE


def known(
    cause: Cause,
    source: str,
    *rows: tuple[str, str],
    action: Action | None = None,
    strength: EvidenceStrength = ROOT,
    raised_only: bool = False,
    in_code: bool = False,
) -> tuple[LogRule, ...]:
    """Return the rules for messages of one project. `source`: the project whose code prints them, and where
    it helps the file or issue; `rows`: a pattern and a line that it matches; `action`: what follows, if it is
    not what follows from the cause.
    """
    return tuple(
        LogRule(
            pattern,
            cause,
            strength=strength,
            action=action,
            raised_only=raised_only,
            in_code=in_code,
            source=source,
            example=example,
        )
        for pattern, example in rows
    )
