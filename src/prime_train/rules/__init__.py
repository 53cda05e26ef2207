"""Rules that find mistakes in configs that can be parsed: one module per family of rules, one row per rule; `table` collects them.

A new family is a module with a tuple of rules, registered in `table`.
"""

from prime_train.rules.engine import findings_of, findings_with_ignored
from prime_train.rules.ignores import Ignore, apply_ignores
from prime_train.rules.rule import Document, Rule, Subject, Violation
from prime_train.rules.table import all_rules, by_code, rules_for

__all__ = [
    "Document",
    "Ignore",
    "Rule",
    "Subject",
    "Violation",
    "all_rules",
    "apply_ignores",
    "by_code",
    "findings_of",
    "findings_with_ignored",
    "rules_for",
]
