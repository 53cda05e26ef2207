"""The table of rules, family by family.

Only the families that can apply to a subject are imported, because a user who saves a file waits for the check.
"""

from collections.abc import Iterator
from functools import cache

from prime_train.rules.rule import Rule, Subject


def rules_for(subject: Subject) -> Iterator[Rule]:
    """Yield every rule that can apply to the subject, in the order of the table."""
    for family in _families(subject.kind, has_gpus=subject.spec is not None and bool(subject.spec.hardware.gpus)):
        yield from (rule for rule in family if rule.applies(subject))


@cache
def all_rules() -> tuple[Rule, ...]:
    from prime_train.rules import areal, launching, prime_rl, spec, tools, trm
    from prime_train.rules.hardware import gpu_memory as memory
    from prime_train.rules.hardware import machine as hardware
    from prime_train.rules.hf import sizes as hf_sizes
    from prime_train.rules.hf import trainer as hf_trainer
    from prime_train.rules.resilience import recovery as resilience

    families = (spec, hardware, memory, prime_rl, areal, hf_trainer, hf_sizes, trm, launching, resilience, tools)
    return tuple(rule for family in families for rule in family.RULES)


@cache
def by_code() -> dict[str, Rule]:
    return {rule.code: rule for rule in all_rules()}


@cache
def _families(kind: str, *, has_gpus: bool) -> tuple[tuple[Rule, ...], ...]:
    from prime_train.rules import launching, spec
    from prime_train.rules.hf import trainer as hf_trainer
    from prime_train.rules.resilience import recovery as resilience

    general = (spec.RULES, hf_trainer.RULES, launching.RULES, resilience.RULES)
    return (*general, *_of_machine(kind, has_gpus=has_gpus), *_of_kind(kind))


def _of_machine(kind: str, *, has_gpus: bool) -> tuple[tuple[Rule, ...], ...]:
    if not has_gpus and kind != "prime_rl":
        return ()
    from prime_train.rules.hardware import gpu_memory as memory
    from prime_train.rules.hardware import machine as hardware

    return hardware.RULES, memory.RULES


def _of_kind(kind: str) -> tuple[tuple[Rule, ...], ...]:
    match kind:
        case "prime_rl":
            from prime_train.rules import prime_rl, tools

            return prime_rl.RULES, tools.RULES
        case "hf_trainer":
            from prime_train.rules.hf import sizes as hf_sizes

            return (hf_sizes.RULES,)
        case "areal":
            from prime_train.rules import areal

            return (areal.RULES,)
        case "trm":
            from prime_train.rules import trm

            return (trm.RULES,)
        case _:
            return ()
