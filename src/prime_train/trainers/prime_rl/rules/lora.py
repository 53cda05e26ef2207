"""Rules about LoRA in a prime-rl config: vLLM serves adapters, which it reads from a folder."""

from collections.abc import Iterator

from prime_train.spec.rule import Violation
from prime_train.spec.tree import Listing
from prime_train.trainers.prime_rl.rules.rule import PrimeRlRules, violation
from prime_train.trainers.prime_rl.rules.settings import ReceivedConfig

RANK_MAX = 512
_LORA = "trainer.model.lora"
_RANK = f"{_LORA}.rank"


RULES = PrimeRlRules()


@RULES.error(
    "PR330",
    "a LoRA rank that cannot be served",
    why="prime-rl accepts the value, but the inference server crashes at start-up.",
    fix=f"use a rank of at most {RANK_MAX}",
)
def rank_rule(settings: ReceivedConfig) -> Iterator[Violation]:
    rank = settings.integer(_RANK)
    if settings.has(_LORA) and rank is not None and rank > RANK_MAX:
        yield violation(
            settings.place(_RANK),
            f"{_RANK} is {rank}; vLLM serves ranks up to {RANK_MAX}",
            f"use at most {RANK_MAX}",
        )


@RULES.error(
    "PR331",
    "LoRA with weights that are broadcast in memory",
    why="prime-rl rejects the config: vLLM loads adapters only from a folder.",
    fix="broadcast by filesystem",
)
def in_memory(settings: ReceivedConfig) -> Iterator[Violation]:
    for side in ("trainer", "orchestrator"):
        name = f"{side}.weight_broadcast.type"
        kind = settings.text(name)
        if settings.has(_LORA) and kind in ("nccl", "nixl"):
            yield violation(
                settings.place(name),
                f"LoRA weights cannot be broadcast by {kind}",
                'write type = "filesystem", or delete it',
            )
            return


@RULES.error(
    "PR332",
    "different LoRA settings for trainer and orchestrator",
    why="prime-rl rejects the config: the orchestrator must serve what the trainer trains.",
    fix="set it only in trainer.model.lora",
)
def two_answers(settings: ReceivedConfig) -> Iterator[Violation]:
    for name in ("rank", "alpha"):
        served, trained = (
            settings.number(f"orchestrator.model.lora.{name}"),
            settings.number(f"{_LORA}.{name}"),
        )
        if settings.has(_LORA) and served is not None and trained is not None and served != trained:
            message = f"orchestrator.model.lora.{name} is {served:g}, and {_LORA}.{name} {trained:g}"
            yield violation(
                settings.place(f"orchestrator.model.lora.{name}"),
                message,
                "delete it: the orchestrator uses the trainer's value",
            )


@RULES.warning(
    "PR333",
    "LoRA with modules that are trained in full",
    why="The trainer updates these modules, but only the adapter is broadcast, so rollouts come from a model "
    "that drifts away from the trained one.",
    fix="delete modules_to_save",
)
def saved_modules(settings: ReceivedConfig) -> Iterator[Violation]:
    modules = settings.at(f"{_LORA}.modules_to_save")
    if isinstance(modules, Listing) and modules.items:
        yield violation(
            settings.place(f"{_LORA}.modules_to_save"),
            "the fully trained modules in modules_to_save never reach the inference server",
            "delete it",
        )
