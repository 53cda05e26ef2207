"""Rules about LoRA in a prime-rl config: vLLM serves adapters, which it reads from a folder."""

from collections.abc import Iterator

from prime_train.core.config_tree import Listing
from prime_train.core.finding import Severity
from prime_train.rules.prime_rl.rule import row, violation
from prime_train.rules.prime_rl.settings import Settings
from prime_train.rules.rule import Violation

RANK_MAX = 512
_LORA = "trainer.model.lora"
_RANK = f"{_LORA}.rank"


def _rank(settings: Settings) -> Iterator[Violation]:
    rank = settings.whole(_RANK)
    if settings.has(_LORA) and rank is not None and rank > RANK_MAX:
        yield violation(settings.place(_RANK), f"{_RANK} of {rank} is more than the {RANK_MAX} that vLLM serves", f"use {RANK_MAX} at most")


def _in_memory(settings: Settings) -> Iterator[Violation]:
    for side in ("trainer", "orchestrator"):
        name = f"{side}.weight_broadcast.type"
        kind = settings.text(name)
        if settings.has(_LORA) and kind in ("nccl", "nixl"):
            yield violation(
                settings.place(name), f"weights of LoRA cannot be broadcast by {kind}", 'write type = "filesystem", or delete it'
            )
            return


def _two_answers(settings: Settings) -> Iterator[Violation]:
    for name in ("rank", "alpha"):
        served, trained = settings.number(f"orchestrator.model.lora.{name}"), settings.number(f"{_LORA}.{name}")
        if settings.has(_LORA) and served is not None and trained is not None and served != trained:
            message = f"orchestrator.model.lora.{name} is {served:g}, and {_LORA}.{name} {trained:g}"
            yield violation(settings.place(f"orchestrator.model.lora.{name}"), message, "delete it: it follows the trainer's")


def _whole_modules(settings: Settings) -> Iterator[Violation]:
    modules = settings.at(f"{_LORA}.modules_to_save")
    if isinstance(modules, Listing) and modules.items:
        yield violation(
            settings.place(f"{_LORA}.modules_to_save"), "modules that are trained whole never reach the inference server", "delete it"
        )


RULES = (
    row(
        "PR330",
        Severity.ERROR,
        "a LoRA rank that cannot be served",
        _rank,
        why="prime-rl takes it; the inference server dies of it when it starts.",
        fix=f"use a rank of {RANK_MAX} at most",
    ),
    row(
        "PR331",
        Severity.ERROR,
        "LoRA whose weights are broadcast in memory",
        _in_memory,
        why="prime-rl refuses it: vLLM loads adapters from a folder alone.",
        fix="broadcast by filesystem",
    ),
    row(
        "PR332",
        Severity.ERROR,
        "two answers for one LoRA",
        _two_answers,
        why="prime-rl refuses it: the orchestrator serves what the trainer trains.",
        fix="say it in trainer.model.lora alone",
    ),
    row(
        "PR333",
        Severity.WARNING,
        "LoRA with modules that are trained whole",
        _whole_modules,
        why="Each FSDP worker trains them, and only the adapter is broadcast: rollouts come from a model that drifts from the trained one.",
        fix="leave modules_to_save out",
    ),
)
