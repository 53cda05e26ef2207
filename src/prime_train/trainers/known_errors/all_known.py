"""The table of known errors: what lines of trainers' output mean, with the source and an example of each.

A row's pattern is case-sensitive unless marked otherwise and is searched in cleaned lines, so `^` is the
start of the text itself. If two rows of the same strength match a line, the earlier one counts; so the
modules are in the order from the most to the least specific. The messages were read in the projects' code and
issues as of November 2026.
"""

from prime_train.trainers.known_errors import environment, machines, memory, services, settings, states
from prime_train.trainers.log_rules import LogRule

BUILT_IN: tuple[LogRule, ...] = (
    *states.STARTED_OVER,
    *memory.RULES,
    *machines.RULES,
    *environment.RULES,
    *services.RULES,
    *states.RULES,
    *settings.RULES,
)
