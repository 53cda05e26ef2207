"""Rules about the environments of a prime-rl config, which provide the rollouts for training and
evaluation.
"""

from collections.abc import Iterator

from prime_train.spec.rule import Violation
from prime_train.spec.tree import Listing, Mapping, Node, Scalar
from prime_train.trainers.prime_rl.rules.rule import PrimeRlRules, violation
from prime_train.trainers.prime_rl.rules.schema_errors import Where
from prime_train.trainers.prime_rl.rules.settings import ReceivedConfig

_SOURCE = "orchestrator.train.source"
_EXECUTOR = "executor_backend"
"""An argument of environments, not a setting of prime-rl, which has no setting of that name."""


_REFUSES = "prime-rl rejects the config at start-up, on a machine that is already paid for."
RULES = PrimeRlRules()


@RULES.error("PR354", "nothing to train on", why=_REFUSES, fix="add [[orchestrator.train.source]]")
def no_source(settings: ReceivedConfig) -> Iterator[Violation]:
    node = settings.at(_SOURCE)
    if settings.is_complete and not settings.has("trainer.data.fake") and (node is None or node.size <= 1):
        yield violation(
            tuple(_SOURCE.split(".")),
            "there is nothing to train on: no [[orchestrator.train.source]]",
            "add one",
        )


@RULES.error("PR355", "a source without an environment", why=_REFUSES, fix="add env.taskset.id")
def no_environment(settings: ReceivedConfig) -> Iterator[Violation]:
    for side in ("train", "eval"):
        for where, _ in settings.items(f"orchestrator.{side}.source"):
            named = any(settings.text_at((*where, "env", *steps)) for steps in (("taskset", "id"), ("id",)))
            if not named:
                fix = 'add for example env.taskset.id = "reverse-text"'
                yield violation(
                    (*where, "env", "taskset", "id"),
                    "a source without an environment: env.taskset.id is not set",
                    fix,
                )


@RULES.error("PR356", "a source name that is already in use", why=_REFUSES, fix="give each a name of its own")
def same_name(settings: ReceivedConfig) -> Iterator[Violation]:
    for side in ("train", "eval"):
        taken: set[str] = set()
        for where, _ in settings.items(f"orchestrator.{side}.source"):
            place = (*where, "name") if settings.has((*where, "name")) else (*where, "env", "taskset", "id")
            name = settings.text_at(place)
            if name == "agg":
                yield violation(
                    place,
                    "no source may be named agg, because the metrics of all sources together have that name",
                    "choose another name",
                )
            elif name is not None and name in taken:
                yield violation(
                    place, f"two sources of {side} are named {name[:60]!r}", "give each a name of its own"
                )
            taken.add(name or "")


@RULES.error("PR357", "an evaluation without a source", why=_REFUSES, fix="add [[orchestrator.eval.source]]")
def nothing_to_judge(settings: ReceivedConfig) -> Iterator[Violation]:
    node = settings.at("orchestrator.eval")
    if isinstance(node, Mapping):
        source = node.entry("source")
        if settings.is_complete and (source is None or source.value.size <= 1):
            yield violation(
                ("orchestrator", "eval"),
                "orchestrator.eval has no source",
                "add [[orchestrator.eval.source]], or delete it",
                on_key=True,
            )


@RULES.error("PR358", "a gate that rejects everything", why=_REFUSES, fix="swap reject_min and reject_max")
def gates_rule(settings: ReceivedConfig) -> Iterator[Violation]:
    for where, _ in settings.items(_SOURCE):
        gates = settings.at((*where, "curriculum", "gates"))
        for entry in gates.entries if isinstance(gates, Mapping) else ():
            here = (*where, "curriculum", "gates", entry.key)
            low, high = (settings.number_at((*here, name)) or 0.0 for name in ("reject_min", "reject_max"))
            if low > high:
                yield violation(
                    (*here, "reject_min"), f"reject_min {low:g} is more than reject_max {high:g}", "swap them"
                )


@RULES.warning(
    "PR394",
    "an environment in slow sandboxes",
    why="Each call of a tool waits for a sandbox at Prime: 1,024 rollouts have been reported to take 27 "
    "minutes instead of 2 to 3, while the GPUs wait.",
    fix='write executor_backend = "local"',
)
def slow_sandboxes(settings: ReceivedConfig) -> Iterator[Violation]:
    for side in ("train", "eval"):
        for where, _ in settings.items(f"orchestrator.{side}.source"):
            for path in _in_sandboxes(settings.at((*where, "env")), (*where, "env")):
                message = (
                    "this environment runs in Prime's sandboxes, whose calls take 10 to 15 times as long as "
                    "local ones"
                )
                yield violation(
                    path,
                    message,
                    'write executor_backend = "local", unless the code that runs must be isolated',
                )


def _in_sandboxes(node: Node | None, path: Where) -> Iterator[Where]:
    """Yield the path of each setting of an environment, at any depth, that selects Prime's sandboxes."""
    if isinstance(node, Mapping):
        for entry in node.entries:
            here = (*path, entry.key)
            if entry.key == _EXECUTOR and isinstance(entry.value, Scalar) and entry.value.value == "prime":
                yield here
            yield from _in_sandboxes(entry.value, here)
    elif isinstance(node, Listing):
        for at, item in enumerate(node.items):
            yield from _in_sandboxes(item, (*path, at))
