"""All rules, module by module, those of a module in the order of their codes.

Only the modules that can apply to a subject are imported, because a user who saves a file waits for the
check.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module

from prime_train.spec.config_format import ConfigFormat
from prime_train.spec.rule import Rule, Subject

_ALWAYS, _MACHINES, _SERVERS, _VOLUMES = "", "machines", "servers", "volumes"
_WITH_SERVERS = ("prime_rl", "areal", "hf", "verl")
"""The formats of trainers that may send their weights to an inference server."""
_MODULES = {
    "checks.spec_rules": _ALWAYS,
    "checks.volumes": _VOLUMES,
    "checks.machine": _MACHINES,
    "checks.gpu_memory": _MACHINES,
    "trainers.prime_rl.rules.all_rules": "prime_rl",
    "trainers.prime_rl.sft_rules": "prime_rl_sft",
    "trainers.areal.rules": "areal",
    "trainers.areal.shared_gpu": "areal",
    "trainers.areal.timeouts": "areal",
    "trainers.hf.rules": _ALWAYS,
    "trainers.hf.sizes": "hf",
    "trainers.hf.programs": "hf",
    "trainers.torchtitan.rules": "torchtitan",
    "trainers.verl.rules": "verl",
    "trainers.trm.rules": "trm",
    "checks.process_environment": _ALWAYS,
    "checks.recovery": _ALWAYS,
    "checks.kernels": _ALWAYS,
    "checks.carriers": _ALWAYS,
    "checks.tools": "prime_rl",
    "checks.known_failures": _SERVERS,
}
"""The modules of rules in the order in which they are listed, each with the configs it is for: all, those
that name GPUs, those of trainers that may have an inference server, those that mount volumes, or one format.
"""


def rules_for(subject: Subject) -> Iterator[Rule]:
    """Yield every rule that can apply to the subject, in the order of the table."""
    hardware = subject.spec.hardware if subject.spec is not None else None
    has_gpus, has_volumes = (
        hardware is not None and bool(hardware.gpus),
        hardware is not None and bool(hardware.volumes),
    )
    for module in _modules(subject.format, has_gpus=has_gpus, has_volumes=has_volumes):
        yield from (rule for rule in _rules(module) if rule.applies(subject))


@cache
def all_rules() -> tuple[Rule, ...]:
    return tuple(rule for module in _MODULES for rule in _rules(module))


@cache
def by_code() -> dict[str, Rule]:
    return {rule.code: rule for rule in all_rules()}


def _modules(config_format: ConfigFormat, *, has_gpus: bool, has_volumes: bool) -> Iterator[str]:
    wanted = {_ALWAYS, config_format, *([_SERVERS] if config_format in _WITH_SERVERS else [])}
    if has_gpus or config_format == "prime_rl":
        wanted.add(_MACHINES)
    if has_volumes:
        wanted.add(_VOLUMES)
    return (module for module, configs in _MODULES.items() if configs in wanted)


@cache
def _rules(module: str) -> tuple[Rule, ...]:
    found: Iterable[Rule] = import_module(f"prime_train.{module}").RULES
    return tuple(sorted(found, key=lambda rule: rule.code))
