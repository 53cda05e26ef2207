"""Rules about how the parts of prime-rl transfer rollouts, weights and caches to each other."""

from collections.abc import Iterator

from prime_train.spec.rule import Violation
from prime_train.trainers.prime_rl.rules.rule import PrimeRlRules, violation
from prime_train.trainers.prime_rl.rules.settings import ReceivedConfig

_WAYS = ("weight_broadcast", "rollout_transport")
_CACHE, _ROUTER = "inference.kv_cache_offload", "inference.router"
_ROUTED = ("inference.vllm.enable_return_routed_experts", "trainer.enable_router_replay")


_REFUSES = "prime-rl rejects the config at start-up, on a machine that is already paid for."
RULES = PrimeRlRules()


@RULES.error("PR334", "two different transports", why=_REFUSES, fix="set it once, for both sides")
def two_ways(settings: ReceivedConfig) -> Iterator[Violation]:
    """Yield a violation if both sides use different transports. With LoRA only one type of weight broadcast
    is possible, which another rule checks.
    """
    for way in _WAYS:
        if (
            not settings.is_complete
            or settings.has(way)
            or (way == "weight_broadcast" and settings.has("trainer.model.lora"))
        ):
            continue
        first, second = (settings.text(f"{side}.{way}.type") for side in ("trainer", "orchestrator"))
        if first != second:
            given_side = next(side for side in ("trainer", "orchestrator") if settings.has(f"{side}.{way}"))
            yield violation(
                settings.place(f"{given_side}.{way}.type"),
                f"trainer.{way} is {first}, but orchestrator.{way} is {second}",
                f"write [{way}]",
            )


@RULES.error("PR347", "a cache store that is never started", why=_REFUSES, fix="use the native store")
def store(settings: ReceivedConfig) -> Iterator[Violation]:
    slurm = settings.has("slurm") or settings.has("inference.slurm")
    if settings.is_complete and settings.text(f"{_CACHE}.type") == "mooncake" and not slurm:
        yield violation(
            settings.place(f"{_CACHE}.type"), "only SLURM starts mooncake's store", 'write type = "native"'
        )


@RULES.error("PR377", "a KV cache that cannot be offloaded", why=_REFUSES, fix="delete kv_cache_offload")
def tiers(settings: ReceivedConfig) -> Iterator[Violation]:
    if not settings.is_complete or not settings.has(_CACHE):
        return
    if not settings.has(f"{_CACHE}.cpu"):
        yield violation(
            tuple(_CACHE.split(".")),
            "an offloaded KV cache needs a CPU memory size",
            "add cpu = { num_bytes = ... }",
            on_key=True,
        )
    elif settings.value("inference.vllm.enable_prefix_caching") is False:
        where = settings.place("inference.vllm.enable_prefix_caching")
        yield violation(where, "KV cache offloading needs prefix caching", "delete it, or kv_cache_offload")
    elif settings.is_on("trainer.enable_router_replay"):
        where = settings.place("trainer.enable_router_replay")
        yield violation(
            where,
            "the offloaded cache does not store which experts a token was routed to",
            "delete it, or kv_cache_offload",
        )


@RULES.error("PR378", "weights that cannot be transferred quantized", why=_REFUSES, fix="delete it")
def quantized_rule(settings: ReceivedConfig) -> Iterator[Violation]:
    name = "weight_broadcast.quantize_in_weight_transfer"
    if not settings.is_on(name) or not settings.is_complete:
        return
    if settings.text("trainer.model.impl") != "custom":
        yield violation(
            settings.place(name),
            'quantized weight transfer needs trainer.model.impl = "custom"',
            "write that setting, or delete this one",
        )
    elif not settings.has("inference"):
        yield violation(
            settings.place(name),
            "quantized weight transfer needs an [inference] server to receive the weights",
            "delete it",
        )


@RULES.error("PR379", "experts that cannot be balanced", why=_REFUSES, fix="delete it")
def balanced(settings: ReceivedConfig) -> Iterator[Violation]:
    name, sent = "inference.vllm.enable_eplb", "weight_broadcast.quantize_in_weight_transfer"
    if settings.is_on(name) and settings.is_complete and not settings.is_on(sent):
        yield violation(
            settings.place(name),
            "moving experts between GPUs needs quantized weight transfer by nccl",
            f"delete it, or set {sent}",
        )


@RULES.error("PR349", "routed experts through llm-d", why=_REFUSES, fix="use vllm-router")
def routed_rule(settings: ReceivedConfig) -> Iterator[Violation]:
    routed = next((name for name in _ROUTED if settings.is_on(name)), None)
    if routed is not None and settings.text(f"{_ROUTER}.type") == "llm-d":
        yield violation(
            settings.place(routed),
            "the llm-d router does not return which experts a token was routed to",
            "delete it, or use vllm-router",
        )
