"""Rules about the rollouts of a prime-rl config: group size, batch size and concurrency."""

from collections.abc import Iterator

from prime_train.spec.rule import Violation
from prime_train.trainers.prime_rl.rules.rule import PrimeRlRules, violation
from prime_train.trainers.prime_rl.rules.schema_errors import Where
from prime_train.trainers.prime_rl.rules.settings import ReceivedConfig

BATCH_DEFAULT = 128
_GROUPED = ("grpo", "max_rl")
"""Algorithms that compute a rollout's advantage relative to the mean of its group."""
_GROUP, _LATER_GROUP = "orchestrator.group_size", "orchestrator.train.group_size"
_BATCH, _TOKENS = "orchestrator.batch_size", "orchestrator.token_batch_size"
_SOURCE = "orchestrator.train.source"


_REFUSES = "prime-rl rejects the config at start-up, on a machine that is already paid for."
RULES = PrimeRlRules()


def _group(settings: ReceivedConfig) -> tuple[float | None, Where]:
    """Return the group size that all sources share, and the path of its setting."""
    name = _LATER_GROUP if settings.has(_LATER_GROUP) else _GROUP
    return (settings.number(name) if settings.has(name) else settings.number(_GROUP)), tuple(name.split("."))


def _lonely(settings: ReceivedConfig) -> dict[Where, str]:
    """Return the settings that lead to groups of one, explicitly or by default, with the algorithm that would
    compare the group.
    """
    found: dict[Where, str] = {}
    if settings.has("trainer.data.fake") or not settings.is_complete:
        return found
    shared, place = _group(settings)
    shared_algo = settings.text("orchestrator.train.algo.type") or settings.text("orchestrator.algo.type")
    for where, _ in settings.items(_SOURCE):
        algo = settings.text_at((*where, "algo", "type")) or shared_algo
        own = settings.number_at((*where, "group_size"))
        if algo in _GROUPED and (own if own is not None else shared) == 1:
            found.setdefault((*where, "group_size") if own is not None else place, str(algo))
    return found


@RULES.error(
    "PR350",
    "groups of one",
    why="Every advantage is then 0, no rollout is kept, and the run stops after ten empty batches.",
    fix="write a group_size of 8 or 16",
)
def alone(settings: ReceivedConfig) -> Iterator[Violation]:
    for where, algo in _lonely(settings).items():
        if settings.spec is not None or settings.has(where):
            yield violation(
                where,
                f"a group of 1 has no other rollout to compare with, so {algo} learns nothing",
                "write group_size = 8, or 16",
            )


@RULES.note(
    "PR359",
    "groups of one, by default",
    why="The default of prime-rl is 1. Unless the command line sets group_size, every advantage is 0.",
    fix="write a group_size of 8 or 16",
)
def alone_by_default(settings: ReceivedConfig) -> Iterator[Violation]:
    """Yield notes for groups of one by default. A config that no run names is only noted, because another
    config or arguments may set the group size.
    """
    for where, algo in _lonely(settings).items():
        if settings.spec is None and not settings.has(where):
            yield violation(
                where,
                f"group_size is not set and defaults to 1: {algo} learns nothing from groups of 1",
                "write group_size = 8, or 16",
            )


@RULES.warning(
    "PR348",
    "groups of identical rollouts",
    why="Every advantage is then nearly 0, no rollout is kept, and the run stops after ten empty batches.",
    fix="write a temperature of 1.0",
)
def all_the_same(settings: ReceivedConfig) -> Iterator[Violation]:
    """Yield a violation if groups are compared but sampling at temperature 0 makes their rollouts equal."""
    where = "orchestrator.train.sampling.temperature"
    algo = settings.text("orchestrator.algo.type")
    if settings.number(where) == 0 and algo in _GROUPED and (_group(settings)[0] or 0) > 1:
        yield violation(
            settings.place(where),
            f"at temperature 0 all rollouts of a group are the same, so {algo} learns nothing",
            "write 1.0",
        )


@RULES.error(
    "PR351",
    "a batch size that group_size does not divide",
    why=_REFUSES,
    fix="make it a multiple of group_size",
)
def remainder(settings: ReceivedConfig) -> Iterator[Violation]:
    group, place = _group(settings)
    batch = (
        settings.number(_BATCH) if settings.has(_BATCH) else None if settings.has(_TOKENS) else BATCH_DEFAULT
    )
    if (
        batch is None
        or group is None
        or group < 1
        or batch % group == 0
        or not (settings.is_complete or settings.has(_BATCH))
    ):
        return
    where = tuple(_BATCH.split(".")) if settings.has(_BATCH) else place
    rounded = int(batch // group * group) or int(group)
    yield violation(
        where,
        f"a batch of {batch:g} rollouts is not a multiple of the group size {group:g}",
        f"write for example batch_size = {rounded}",
    )


@RULES.error("PR352", "two batch sizes", why=_REFUSES, fix="keep one of them")
def two_batches(settings: ReceivedConfig) -> Iterator[Violation]:
    if settings.has(_BATCH) and settings.has(_TOKENS):
        yield violation(
            tuple(_TOKENS.split(".")),
            "batch_size and token_batch_size exclude each other",
            "keep one of them",
        )


@RULES.error(
    "PR353",
    "concurrency limits that contradict each other",
    why=_REFUSES,
    fix="make min_inflight <= initial_inflight <= max_inflight",
)
def in_flight(settings: ReceivedConfig) -> Iterator[Violation]:
    start, least, most = (f"orchestrator.concurrency.{name}_inflight" for name in ("initial", "min", "max"))
    first, low, high = (settings.number(name) for name in (start, least, most))
    group, _ = _group(settings)
    if high is None or low is None:
        return
    if low > high:
        yield violation(
            settings.place(least if settings.has(least) else most),
            f"min_inflight {low:g} is more than max_inflight {high:g}",
        )
    elif first is not None and not low <= first <= high:
        message = (
            f"initial_inflight {first:g} must lie between min_inflight {low:g} and max_inflight {high:g}"
        )
        yield violation(
            settings.place(start), message, "raise max_inflight as well" if first > high else "raise it"
        )
    elif group is not None and high < group:
        where = settings.place(most if settings.has(most) else _GROUP)
        yield violation(
            where,
            f"max_inflight {high:g} is less than a group of {group:g}",
            f"write max_inflight = {group:g} or more",
        )
