"""Rules about settings shared by all parts of prime-rl that a part sets again, and about those that its
launcher sets itself.
"""

from collections.abc import Iterator

from prime_train.spec.rule import Violation
from prime_train.spec.tree import Mapping
from prime_train.trainers.prime_rl.rules.rule import PrimeRlRules, violation
from prime_train.trainers.prime_rl.rules.settings import SHARED, ReceivedConfig

PROTECTED = frozenset(("CUDA_VISIBLE_DEVICES", "PRL_RUN_ID", "PRL_RUN_NAME", "WANDB_RUN_ID"))
PROTECTED |= {f"WANDB_SHARED_{name}" for name in ("MODE", "LABEL", "PRIMARY", "FINISHER")}
"""Environment variables that the launcher sets."""

IDLE = {"VLLM_USE_V1": "since 2025-12-17 (#1427): vLLM has no other engine"}
"""Environment variables without effect, with the date from which they have none."""

_SIDES = ("trainer", "orchestrator")
_VARIABLES = ("env_vars", "trainer.env_vars", "orchestrator.env_vars", "inference.env_vars")


_REFUSES = "prime-rl rejects the config at start-up, on a machine that is already paid for."
RULES = PrimeRlRules()


@RULES.error("PR380", "two values for one setting", why=_REFUSES, fix="set it once")
def two_values(settings: ReceivedConfig) -> Iterator[Violation]:
    for shared, all_own in SHARED.items():
        # The shared type of weight broadcast overrides that of the parts.
        if shared == "weight_broadcast.type" or not settings.has(shared):
            continue
        common = settings.value(shared)
        for own in all_own:
            if settings.has(own) and settings.value(own) != common and common is not None:
                message = (
                    f"{own} is {settings.value(own)!r}, but {shared}, which applies to all parts, "
                    "is "
                    f"{common!r}"
                )
                yield violation(
                    tuple(own.split(".")), message, f"delete one of the two: {own} follows {shared}"
                )


@RULES.error(
    "PR381",
    "the served model differs from the trained one",
    why="prime-rl rejects the config, or accepts it and broadcasts the weights of one model to a server of "
    "another.",
    fix="set model.name once",
)
def other_model(settings: ReceivedConfig) -> Iterator[Violation]:
    """Yield a violation if trained, requested and served models differ without a shared name."""
    if settings.has("model.name") or not settings.has("inference") or not settings.is_complete:
        return
    trained, requested, served = "trainer.model.name", "orchestrator.model.name", "inference.vllm.model"
    fix = "set model.name once, for all parts"
    if settings.value(served) != settings.value(requested):
        own = served if settings.has(served) else requested
        yield violation(
            settings.place(own),
            f"the server loads {settings.value(served)}, but the orchestrator requests "
            f"{settings.value(requested)}",
            fix,
        )
    elif (
        settings.has(trained)
        and not settings.has(served)
        and settings.value(trained) != settings.value(served)
    ):
        message = (
            f"the trainer trains {settings.value(trained)}, but the server loads the "
            "default, "
            f"{settings.value(served)}"
        )
        yield violation(settings.place(trained), message, fix)


@RULES.error("PR382", "two different values of max_steps", why=_REFUSES, fix="set max_steps once")
def other_end(settings: ReceivedConfig) -> Iterator[Violation]:
    ends = [settings.integer(f"{side}.max_steps") for side in _SIDES]
    if settings.is_complete and not settings.has("max_steps") and ends[0] != ends[1]:
        own = next(f"{side}.max_steps" for side in _SIDES if settings.has(f"{side}.max_steps"))
        yield violation(
            settings.place(own),
            "trainer and orchestrator do not have the same max_steps",
            "set max_steps once, at the top level",
        )


@RULES.error(
    "PR389", "trainer and orchestrator settings that differ", why=_REFUSES, fix="set it once, for both"
)
def other_halves(settings: ReceivedConfig) -> Iterator[Violation]:
    """Yield violations for settings that must be equal in both parts and are not shared."""
    for name in ("monitors.wandb.project", "tokenizer.chat_template", "resume.step", "resume.dir"):
        part, _, leaf = name.rpartition(".")
        own, other = (f"{side}.{name}" for side in _SIDES)
        are_there = part != "monitors.wandb" or all(settings.has(f"{side}.{part}") for side in _SIDES)
        if (
            settings.is_complete
            and are_there
            and not settings.has(name)
            and settings.value(own) != settings.value(other)
        ):
            given = own if settings.has(own) else other
            yield violation(
                settings.place(given),
                f"trainer and orchestrator do not have the same {leaf} of {part}",
                f"write [{part}], which applies to both",
            )


@RULES.error("PR383", "a shared W&B run without the W&B server", why=_REFUSES, fix="delete offline")
def offline(settings: ReceivedConfig) -> Iterator[Violation]:
    if settings.is_on("monitors.wandb.offline"):
        yield violation(
            ("monitors", "wandb", "offline"),
            "both parts write to one W&B run, which needs the W&B server (online mode)",
            "delete it",
        )


@RULES.error("PR384", "W&B on only one side", why=_REFUSES, fix="write [monitors.wandb]")
def one_side(settings: ReceivedConfig) -> Iterator[Violation]:
    for own, other in (_SIDES, _SIDES[::-1]):
        part = f"{own}.monitors.wandb"
        if (
            settings.has(part)
            and not settings.has(f"{other}.monitors.wandb")
            and not settings.has("monitors.wandb")
            and settings.is_complete
        ):
            yield violation(
                tuple(part.split(".")),
                f"W&B is configured only for the {own}",
                "write [monitors.wandb], which applies to both",
                on_key=True,
            )


@RULES.error("PR385", "a variable that is reserved for the launcher", why=_REFUSES, fix="delete it")
def kept_variables(settings: ReceivedConfig) -> Iterator[Violation]:
    for part in _VARIABLES:
        node = settings.at(part)
        for entry in node.entries if isinstance(node, Mapping) else ():
            if entry.key in PROTECTED:
                where = (*part.split("."), entry.key)
                yield violation(
                    where, f"{entry.key} may be set only by prime-rl's launcher", "delete it", on_key=True
                )


@RULES.warning(
    "PR388",
    "a variable that does nothing",
    why="The variable is ignored, so what it is set for does not happen.",
    fix="delete it",
)
def idle_variables(settings: ReceivedConfig) -> Iterator[Violation]:
    for name, since in IDLE.items():
        message = f"{name} has no effect {since}"
        for part in _VARIABLES:
            if settings.has(f"{part}.{name}"):
                yield violation((*part.split("."), name), message, "delete it", on_key=True)
        if settings.spec is not None and name in settings.spec.environment:
            yield Violation(("environment", name), message, "delete it", on_key=True)


@RULES.warning(
    "PR386",
    "a heartbeat on only one side",
    why="prime-rl accepts the config. A side that sends no heartbeats can hang for an hour before anything "
    "else shows it.",
    fix="give both sides a heartbeat",
)
def half_a_heart(settings: ReceivedConfig) -> Iterator[Violation]:
    for own, other in (_SIDES, _SIDES[::-1]):
        if (
            settings.spec is None
            and settings.is_complete
            and settings.has(f"{own}.heartbeat")
            and not settings.has(f"{other}.heartbeat")
        ):
            yield violation(
                (own, "heartbeat"),
                f"the {own} sends heartbeats, but the {other} does not",
                f"add {other}.heartbeat.url",
                on_key=True,
            )


@RULES.error("PR387", "a separate output folder for one part", why=_REFUSES, fix="delete it")
def own_folder(settings: ReceivedConfig) -> Iterator[Violation]:
    for side in _SIDES:
        name = f"{side}.output_dir"
        if settings.has(name):
            yield violation(
                tuple(name.split(".")),
                f"{name} conflicts with the run's output folder",
                "delete it; output_dir at the top level applies to all parts",
            )
