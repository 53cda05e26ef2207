"""Builds rules about prime-rl configs from checks of their settings."""

from functools import lru_cache

from prime_train.spec.rule import RulesOf, Subject, Violation
from prime_train.spec.tree import Mapping
from prime_train.text.nearest import VERY_CLOSE, nearest
from prime_train.trainers.prime_rl.rules.schema import Same
from prime_train.trainers.prime_rl.rules.schema_errors import Where
from prime_train.trainers.prime_rl.rules.settings import ReceivedConfig

TOPIC = "prime-rl"
_PARTS = frozenset(("trainer", "orchestrator"))


class PrimeRlRules(RulesOf[ReceivedConfig]):
    """Rules for configs of prime-rl's launcher; they skip configs only for evaluation, a server or supervised
    training.
    """

    def __init__(self) -> None:
        super().__init__(TOPIC, settings_of, requires="prime_rl")


def settings_of(subject: Subject) -> ReceivedConfig | None:
    """Return the settings of a subject; None if its config is not one for prime-rl's launcher."""
    return _settings(Same(subject))


@lru_cache(maxsize=4)
def _settings(same: Same[Subject]) -> ReceivedConfig | None:
    """Return the settings, cached because every rule requests those of one subject."""
    subject = same.it
    if subject.trainer is None or not (subject.spec is not None or _is_rl(subject.trainer.root)):
        return None
    return ReceivedConfig(subject.trainer.root, subject.spec)


def _is_rl(root: Mapping) -> bool:
    """Return whether a config has a section of prime-rl's launcher, even if it is misspelt."""
    names = [entry.key.lower() for entry in root.entries]
    return not _PARTS.isdisjoint(names) or any(nearest(name, _PARTS, likeness=VERY_CLOSE) for name in names)


def violation(path: Where, message: str, fix: str = "", *, on_key: bool = False) -> Violation:
    return Violation(path, message, fix, on_key=on_key, document="trainer")
