"""Rules about how the parts of prime-rl transfer rollouts, weights and caches to each other."""

from collections.abc import Iterator

from prime_train.spec.finding import Severity
from prime_train.spec.rule import Violation
from prime_train.trainers.prime_rl.rules.rule import row, violation
from prime_train.trainers.prime_rl.rules.settings import Settings

_WAYS = ("weight_broadcast", "rollout_transport")
_CACHE, _ROUTER = "inference.kv_cache_offload", "inference.router"
_ROUTED = ("inference.vllm.enable_return_routed_experts", "trainer.enable_router_replay")


def _two_ways(settings: Settings) -> Iterator[Violation]:
    """Yield a violation if both sides use different transports. With LoRA only one type of weight broadcast is possible, which another rule
    checks."""
    for way in _WAYS:
        if not settings.is_complete or settings.has(way) or (way == "weight_broadcast" and settings.has("trainer.model.lora")):
            continue
        first, second = (settings.text(f"{side}.{way}.type") for side in ("trainer", "orchestrator"))
        if first != second:
            given_side = next(side for side in ("trainer", "orchestrator") if settings.has(f"{side}.{way}"))
            yield violation(
                settings.place(f"{given_side}.{way}.type"),
                f"trainer.{way} is {first}, but orchestrator.{way} is {second}",
                f"write [{way}]",
            )


def _store(settings: Settings) -> Iterator[Violation]:
    slurm = settings.has("slurm") or settings.has("inference.slurm")
    if settings.is_complete and settings.text(f"{_CACHE}.type") == "mooncake" and not slurm:
        yield violation(settings.place(f"{_CACHE}.type"), "only SLURM starts mooncake's store", 'write type = "native"')


def _tiers(settings: Settings) -> Iterator[Violation]:
    if not settings.is_complete or not settings.has(_CACHE):
        return
    if not settings.has(f"{_CACHE}.cpu"):
        yield violation(
            tuple(_CACHE.split(".")), "an offloaded KV cache needs a CPU memory size", "add cpu = { num_bytes = ... }", on_key=True
        )
    elif settings.value("inference.vllm.enable_prefix_caching") is False:
        where = settings.place("inference.vllm.enable_prefix_caching")
        yield violation(where, "KV cache offloading needs prefix caching", "delete it, or kv_cache_offload")
    elif settings.is_on("trainer.enable_router_replay"):
        where = settings.place("trainer.enable_router_replay")
        yield violation(where, "the offloaded cache does not store which experts a token was routed to", "delete it, or kv_cache_offload")


def _quantized(settings: Settings) -> Iterator[Violation]:
    name = "weight_broadcast.quantize_in_weight_transfer"
    if not settings.is_on(name) or not settings.is_complete:
        return
    if settings.text("trainer.model.impl") != "custom":
        yield violation(
            settings.place(name), 'quantized weight transfer needs trainer.model.impl = "custom"', "write that setting, or delete this one"
        )
    elif not settings.has("inference"):
        yield violation(settings.place(name), "quantized weight transfer needs an [inference] server to receive the weights", "delete it")


def _balanced(settings: Settings) -> Iterator[Violation]:
    name, sent = "inference.vllm.enable_eplb", "weight_broadcast.quantize_in_weight_transfer"
    if settings.is_on(name) and settings.is_complete and not settings.is_on(sent):
        yield violation(
            settings.place(name), "moving experts between GPUs needs quantized weight transfer by nccl", f"delete it, or set {sent}"
        )


def _routed(settings: Settings) -> Iterator[Violation]:
    routed = next((name for name in _ROUTED if settings.is_on(name)), None)
    if routed is not None and settings.text(f"{_ROUTER}.type") == "llm-d":
        yield violation(
            settings.place(routed), "the llm-d router does not return which experts a token was routed to", "delete it, or use vllm-router"
        )


_REFUSES = "prime-rl rejects the config at start-up, on a machine that is already paid for."

RULES = (
    row("PR334", Severity.ERROR, "two different transports", _two_ways, why=_REFUSES, fix="set it once, for both sides"),
    row("PR347", Severity.ERROR, "a cache store that is never started", _store, why=_REFUSES, fix="use the native store"),
    row("PR377", Severity.ERROR, "a KV cache that cannot be offloaded", _tiers, why=_REFUSES, fix="delete kv_cache_offload"),
    row("PR378", Severity.ERROR, "weights that cannot be transferred quantized", _quantized, why=_REFUSES, fix="delete it"),
    row("PR379", Severity.ERROR, "experts that cannot be balanced", _balanced, why=_REFUSES, fix="delete it"),
    row("PR349", Severity.ERROR, "routed experts through llm-d", _routed, why=_REFUSES, fix="use vllm-router"),
)
