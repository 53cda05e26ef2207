"""Rules about the trainer's own settings in a prime-rl config that exclude each other."""

from collections.abc import Iterator

from prime_train.spec.rule import Violation
from prime_train.spec.tree import Listing
from prime_train.trainers.prime_rl.rules.rule import PrimeRlRules, violation
from prime_train.trainers.prime_rl.rules.settings import ReceivedConfig

TRACED_STEPS_MAX = 9
SCHEDULED_STEPS = 10
"""The default steps of warm-up and of decay."""
_MODEL = "trainer.model"
_FSDP, _OPTIM, _FULL = (
    f"{_MODEL}.{name}" for name in ("fsdp_cpu_offload", "optim_cpu_offload", "full_offload")
)
_IMPL = f"{_MODEL}.impl"
_STEPS, _SCHEDULER = "trainer.max_steps", "trainer.scheduler"


_REFUSES = "prime-rl rejects the config at start-up, on a machine that is already paid for."
RULES = PrimeRlRules()


@RULES.warning(
    "PR360",
    "recomputation that stays on although it is turned off",
    why="prime-rl accepts the config and still recomputes activations, so memory use and speed do not "
    "change.",
    fix="turn ac_offloading off as well",
)
def still_on(settings: ReceivedConfig) -> Iterator[Violation]:
    off = settings.at(f"{_MODEL}.ac") is not None and not settings.has(f"{_MODEL}.ac")
    offloading = settings.at(f"{_MODEL}.ac_offloading")
    if off and (offloading is None or settings.has(f"{_MODEL}.ac_offloading")):
        message = "activations are still recomputed: ac_offloading is on, which turns ac back on"
        yield violation((*_MODEL.split("."), "ac"), message, 'write ac_offloading = "None" as well')


def _is_full(settings: ReceivedConfig) -> bool:
    return settings.has(_FULL) and settings.value(_FULL) is not False


@RULES.error("PR361", "two ways to offload", why=_REFUSES, fix="keep one of them")
def offloads(settings: ReceivedConfig) -> Iterator[Violation]:
    """Yield violations for ways of offloading that exclude each other. Optimizer states are offloaded by
    default.
    """
    fix = f"write {_OPTIM} = false"
    if settings.is_on(_FSDP) and settings.is_on(_OPTIM):
        yield violation(
            settings.place(_FSDP),
            "fsdp_cpu_offload and optim_cpu_offload, which is on by default, exclude each other",
            fix,
        )
    elif settings.is_on(_FSDP) and _is_full(settings):
        yield violation(
            settings.place(_FSDP), "fsdp_cpu_offload and full_offload exclude each other", "keep one of them"
        )
    elif _is_full(settings) and settings.is_on(_OPTIM):
        yield violation(
            settings.place(_FULL),
            "full_offload and optim_cpu_offload, which is on by default, exclude each other",
            fix,
            on_key=True,
        )


@RULES.error(
    "PR362", "an optimizer that does not support the chosen offloading", why=_REFUSES, fix="use adamw"
)
def optimizer(settings: ReceivedConfig) -> Iterator[Violation]:
    kind = settings.text("trainer.optim.type")
    where = settings.place("trainer.optim.type")
    if _is_full(settings) and kind in ("sgd", "muon"):
        yield violation(where, f"full_offload does not support {kind}", "use adamw or sign_sgd")
    elif settings.is_on(_FSDP) and kind == "muon":
        yield violation(where, "muon does not support fsdp_cpu_offload", f"delete {_FSDP}, or use adamw")


@RULES.error(
    "PR363",
    "a setting that Hugging Face's model code does not support",
    why=_REFUSES,
    fix='write impl = "auto"',
)
def plain_model(settings: ReceivedConfig) -> Iterator[Violation]:
    """Yield a violation for features that Hugging Face's own model code lacks. Vision-language models are
    left out, as they cannot use it at all.
    """
    if settings.value(_IMPL) != "hf" or settings.has("model.vlm") or settings.has(f"{_MODEL}.vlm"):
        return
    attention = settings.text(f"{_MODEL}.attn")
    reasons = (
        (attention in ("auto", "flash_attention_4"), f'attn = "{attention}"', "attn"),
        ((settings.integer(f"{_MODEL}.cp") or 1) > 1, "context parallelism", "cp"),
        (settings.has(f"{_MODEL}.quantization"), "quantization", "quantization"),
        (
            settings.text(f"{_MODEL}.ac.mode") == "selective",
            "selective recomputation of activations",
            "ac.mode",
        ),
        ((settings.integer(f"{_MODEL}.ep") or 1) > 1, "expert parallelism", "ep"),
    )
    found = [(what, name) for holds, what, name in reasons if holds]
    if settings.is_on("trainer.enable_router_replay"):
        found.append(("router replay", ""))
    if found:
        what, name = found[0]
        fix = 'write attn = "flash_attention_2"' if name == "attn" else 'write impl = "auto"'
        yield violation(settings.place(_IMPL), f'impl = "hf" has no {what}', fix)


@RULES.error("PR364", "remote model code that is not used", why=_REFUSES, fix="delete one of the two")
def own_code(settings: ReceivedConfig) -> Iterator[Violation]:
    if settings.is_on(f"{_MODEL}.trust_remote_code") and settings.value(_IMPL) == "custom":
        yield violation(
            settings.place(f"{_MODEL}.trust_remote_code"),
            'trust_remote_code has no effect with impl = "custom"',
            'write impl = "hf"',
        )


@RULES.error("PR365", "selective recomputation without targets", why=_REFUSES, fix="name a target")
def no_target(settings: ReceivedConfig) -> Iterator[Violation]:
    targets = settings.at(f"{_MODEL}.ac.targets")
    if (
        settings.text(f"{_MODEL}.ac.mode") == "selective"
        and isinstance(targets, Listing)
        and not targets.items
    ):
        yield violation(
            settings.place(f"{_MODEL}.ac.targets"),
            "selective recomputation without targets",
            'write targets = ["norm"]',
        )


@RULES.error("PR366", "an expert-parallel transport without expert parallelism", why=_REFUSES, fix="raise ep")
def experts_rule(settings: ReceivedConfig) -> Iterator[Violation]:
    experts = settings.integer(f"{_MODEL}.ep")
    if settings.text(f"{_MODEL}.ep_comm_backend") == "deepep" and experts is not None and experts <= 1:
        yield violation(
            settings.place(f"{_MODEL}.ep_comm_backend"),
            f"deepep needs expert parallelism, but ep is {experts}",
            "raise ep",
        )


@RULES.error(
    "PR367", "a schedule that does not fit its run", why=_REFUSES, fix="make warm-up and decay shorter"
)
def schedule(settings: ReceivedConfig) -> Iterator[Violation]:
    kind, steps = settings.text(f"{_SCHEDULER}.type"), settings.integer(_STEPS)
    if steps is not None and steps < 1:
        return
    at = settings.place(f"{_SCHEDULER}.type")
    given = {
        name: settings.number_at((*_SCHEDULER.split("."), name)) for name in ("warmup_steps", "decay_steps")
    }
    warmup, decay = (
        SCHEDULED_STEPS if given_steps is None else given_steps for given_steps in given.values()
    )
    longest = max(
        (name for name in given if given[name] is not None), key=lambda name: given[name] or 0, default="type"
    )
    there = (*_SCHEDULER.split("."), longest)
    if kind == "linear" and warmup == 0 and decay == 0:
        yield violation(at, "a linear schedule without warm-up and decay", 'write type = "constant"')
    elif (kind == "cosine" or (kind == "linear" and decay > 0)) and steps is None and settings.is_complete:
        yield violation(at, f"a {kind} schedule needs the number of steps", "add max_steps")
    elif kind == "linear" and steps is not None and decay > 0 and warmup + decay > steps:
        yield violation(
            there,
            f"{warmup:g} steps of warm-up and {decay:g} of decay do not fit into {steps:,} steps",
            "use fewer",
        )
    elif kind == "cosine" and steps is not None and warmup >= steps:
        yield violation(there, f"{warmup:g} steps of warm-up leave none of the {steps:,} steps", "use fewer")


@RULES.error("PR368", "a trace of a long run", why=_REFUSES, fix="trace a short run")
def traced(settings: ReceivedConfig) -> Iterator[Violation]:
    steps = settings.integer(_STEPS)
    if settings.has("trainer.trace_path") and (
        settings.is_complete if steps is None else steps > TRACED_STEPS_MAX
    ):
        seen = "no last step" if steps is None else f"{steps:,} steps"
        message = f"a trace of {seen}: prime-rl traces at most {TRACED_STEPS_MAX} steps"
        yield violation(settings.place("trainer.trace_path"), message, "delete it, or trace a short run")
