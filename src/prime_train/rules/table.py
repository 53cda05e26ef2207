"""The table of rules, family by family."""

from prime_train.rules import areal, hardware, hf_trainer, launching, memory, prime_rl, resilience, spec, tools, trm
from prime_train.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    *spec.RULES,
    *hardware.RULES,
    *memory.RULES,
    *prime_rl.RULES,
    *areal.RULES,
    *hf_trainer.RULES,
    *trm.RULES,
    *launching.RULES,
    *resilience.RULES,
    *tools.RULES,
)

BY_CODE = {rule.code: rule for rule in RULES}
