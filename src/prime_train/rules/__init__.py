"""What is wrong with a config that can be read: one family of rules a module, one row a rule; `RULES` is the table.

A new family is a module with a tuple of rules, named here.
"""

from prime_train.rules.ignores import Ignore, settle
from prime_train.rules.judging import judge, look
from prime_train.rules.rule import Document, Flaw, Rule, Subject
from prime_train.rules.table import BY_CODE, RULES

__all__ = ["BY_CODE", "RULES", "Document", "Flaw", "Ignore", "Rule", "Subject", "judge", "look", "settle"]
