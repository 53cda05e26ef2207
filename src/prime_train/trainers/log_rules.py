"""Log rules: what a line of a trainer's output means. The rows for known errors are in `known_errors`.

Patterns are case-sensitive unless marked otherwise and are searched in cleaned lines (no colours, no rank
prefix), so `^` is the start of the text itself. `strength` is the strength of a line as evidence. When one of
eight processes runs out of memory, the other seven log far more errors about their lost peer. So a root cause
outranks a hint, and a hint outranks a consequence, wherever they occur in the log.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from prime_train.spec.causes import Action, Cause
from prime_train.spec.spec import LogRuleSpec, RunSpec
from prime_train.trainers.patterns import found_in


class EvidenceStrength(IntEnum):
    """Strength of a line as evidence; a lower value is stronger."""

    USER = 0
    ROOT = 1
    HINT = 2
    """Names a cause, but trainers also log such lines, handle the error and go on."""
    CONSEQUENCE = 3
    """The line probably only describes a consequence of another failure."""


@dataclass(frozen=True)
class LogRule:
    """A pattern whose match in a line indicates `cause`. With `stop`, the trainer is stopped at once, because
    going on would do harm or be futile.
    """

    pattern: str
    cause: Cause
    stop: bool = False
    strength: EvidenceStrength = EvidenceStrength.ROOT
    resumed_only: bool = False
    """Whether the rule applies only if a checkpoint was to be resumed."""
    action: Action | None = None
    """What follows, if it is not what follows from the cause."""
    raised_only: bool = False
    """Whether the rule applies only to the message of an exception, because other lines use the same
    words.
    """
    in_code: bool = False
    """Whether the rule applies to the lines of code that a traceback shows. Others do not: code names what it
    might raise.
    """
    source: str = ""
    """The project whose code prints such a line; empty for a rule of the user or of a kind of trainer."""
    example: str = ""
    """A line that the pattern matches."""

    def fits(self, text: str) -> bool:
        """Return whether the pattern is found in `text`, which must be a cleaned line."""
        return found_in(self.pattern, text)

    @property
    def is_consequence(self) -> bool:
        return self.strength is EvidenceStrength.CONSEQUENCE


def patterns_of(spec: RunSpec) -> tuple[str, ...]:
    """Return every pattern that the user wrote."""
    progress = spec.trainer.progress.pattern
    return (*(rule.pattern for rule in spec.health.log_rules), *((progress,) if progress is not None else ()))


def of_spec(rules: Iterable[LogRuleSpec]) -> tuple[LogRule, ...]:
    """Return the user's own rules, which outrank all others."""
    return tuple(LogRule(rule.pattern, rule.cause, rule.stop, EvidenceStrength.USER) for rule in rules)
