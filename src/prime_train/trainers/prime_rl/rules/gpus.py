"""Rules about how a prime-rl config assigns the GPUs of a machine.

What a launch does on a machine with one GPU is in `prime_train.trainers.prime_rl.one_gpu`.
"""

from collections.abc import Iterator

from prime_train.providers.kinds import allowed_providers, is_own_machine
from prime_train.spec.rule import Violation
from prime_train.trainers.prime_rl.conventions import shares_gpu
from prime_train.trainers.prime_rl.rules.rule import PrimeRlRules, violation
from prime_train.trainers.prime_rl.rules.settings import ReceivedConfig

GPUS_MAX = 1024
_TRAIN, _INFER = "deployment.num_train_gpus", "deployment.num_infer_gpus"
_SHARE = "inference.vllm.gpu_memory_utilization"
_BROADCASTS = ("weight_broadcast", "trainer.weight_broadcast", "orchestrator.weight_broadcast")
_CONTEXT, _COPIES, _EXPERTS = "trainer.model.cp", "trainer.model.dp_replicate", "trainer.model.ep"


_REFUSES = "prime-rl rejects the config at start-up, on a machine that is already paid for."
RULES = PrimeRlRules()


@RULES.error(
    "PR320",
    "[deployment] assigns more GPUs than a machine has",
    why=_REFUSES,
    fix="lower num_train_gpus or num_infer_gpus",
)
def more_than_there_are(settings: ReceivedConfig) -> Iterator[Violation]:
    if not settings.is_one_node or not settings.is_misdealt:
        return
    train, infer, node = (
        settings.integer(name) or 0 for name in (_TRAIN, _INFER, "deployment.gpus_per_node")
    )
    if train < 1:
        yield violation(
            settings.place(_TRAIN),
            f"{_TRAIN} is {train}, so no GPU would train",
            "give the trainer at least 1 GPU",
        )
    elif infer < 1 and settings.has("inference"):
        yield violation(
            settings.place(_INFER),
            f"{_INFER} is {infer}, so no GPU would serve the model",
            "give inference at least 1 GPU",
        )
    else:
        message = (
            f"{train} GPUs to train and {infer} for inference are more than deployment.gpus_per_node = {node}"
        )
        is_one = (train, infer) == (1, 1) and settings.spec is not None and shares_gpu(settings.spec.hardware)
        fix = (
            "delete gpus_per_node; on a machine with one GPU both share it"
            if is_one
            else f"use at most {node} together"
        )
        yield violation(settings.place(_TRAIN if settings.has(_TRAIN) else _INFER), message, fix)


def _rented(settings: ReceivedConfig) -> tuple[int, int] | None:
    """Return the GPUs that are assigned and those that are rented; None if either is not known or any machine
    is allowed.
    """
    train, spec = settings.train_gpus, settings.spec
    if train is None or spec is None or not spec.hardware.gpus:
        return None
    return train + (settings.infer_gpus or 0), spec.hardware.count


def _any_machine(settings: ReceivedConfig) -> Iterator[Violation]:
    """Yield a violation if GPUs are assigned but no kind is named: hardware.count is then ignored, and the
    cheapest machine of all is rented. A local machine is not rented.
    """
    train, spec = settings.train_gpus, settings.spec
    if (
        train is None
        or spec is None
        or spec.hardware.gpus
        or is_own_machine(allowed_providers(spec.hardware))
    ):
        return
    assigned = train + (settings.infer_gpus or 0)
    message = (
        f"[deployment] assigns {assigned} GPU{'s' if assigned > 1 else ''}, but hardware.gpus is "
        "not set, so the cheapest machine is rented"
    )
    fix = (
        f"list them under hardware.gpus and set hardware.count to {_fitting(assigned)}, or "
        "set hardware.provider to local"
    )
    yield _at_split(settings, message, fix)


@RULES.error(
    "PR321",
    "[deployment] assigns more GPUs than are rented",
    why=_REFUSES,
    fix="set hardware.gpus, and make hardware.count and [deployment] agree",
)
def not_rented(settings: ReceivedConfig) -> Iterator[Violation]:
    assigned, rented = _rented(settings) or (0, 0)
    if assigned > rented and not settings.is_on_one_gpu:
        message = f"[deployment] assigns {assigned} GPUs, but hardware.count rents {rented}"
        yield _at_split(
            settings,
            message,
            f"set hardware.count to {_fitting(assigned)}, or assign {rented} GPUs in [deployment]",
        )
    yield from _any_machine(settings)


@RULES.warning(
    "PR322",
    "GPUs are rented and not used",
    why="prime-rl uses only the GPUs that [deployment] assigns. The default is 1 GPU for training and 1 for "
    "inference.",
    fix="make hardware.count and [deployment] agree",
)
def idle(settings: ReceivedConfig) -> Iterator[Violation]:
    assigned, rented = _rented(settings) or (0, 0)
    if 0 < assigned < rented and _fills_engines(settings):
        message = (
            f"[deployment] assigns {assigned} of the {rented} GPUs that hardware.count rents; "
            "the "
            f"other {rented - assigned} would be idle"
        )
        yield _at_split(
            settings, message, f"assign all {rented} in [deployment], or rent {_fitting(assigned)}"
        )


def _fills_engines(settings: ReceivedConfig) -> bool:
    """Return whether the inference GPUs divide into engines; if not, other numbers have to be corrected
    first.
    """
    engine = settings.integer("inference.vllm.tensor_parallel_size")
    return not engine or engine < 1 or (settings.infer_gpus or 0) % engine == 0


def _at_split(settings: ReceivedConfig, message: str, fix: str) -> Violation:
    """Return a violation at the setting that assigns the GPUs, or at hardware.count if nothing assigns
    them.
    """
    given = next((name for name in (_TRAIN, _INFER) if settings.has(name)), None)
    return (
        violation(settings.place(given), message, fix)
        if given is not None
        else Violation(("hardware", "count"), message, fix)
    )


def _fitting(gpus: int) -> int:
    """Return the GPUs of the smallest machine with at least this many."""
    return next((size for size in (1, 2, 4, 8) if size >= gpus), gpus)


def divisors(number: int) -> list[int]:
    """Return the divisors in order, up to `GPUS_MAX`."""
    return [n for n in range(1, min(number, GPUS_MAX) + 1) if number % n == 0]


@RULES.error(
    "PR323",
    "context parallelism does not divide the trainer's GPUs",
    why="prime-rl accepts the value and rounds down the number of data-parallel workers: the trainer "
    "crashes, or trains on only part of the data.",
    fix="make trainer.model.cp divide deployment.num_train_gpus",
)
def context_rule(settings: ReceivedConfig) -> Iterator[Violation]:
    train, context = settings.all_train_gpus, settings.integer(_CONTEXT)
    if train is None or context is None or (context >= 1 and train % context == 0):
        return
    fix = f"write one of {', '.join(map(str, divisors(train)))}"
    yield violation(
        settings.place(_CONTEXT),
        f"{_CONTEXT} of {context} does not divide the {train} GPUs of the trainer",
        fix,
    )


@RULES.error(
    "PR324",
    "copies of the model do not divide the trainer's GPUs",
    why="The trainer cannot build its device mesh and crashes at start-up.",
    fix="make trainer.model.dp_replicate divide deployment.num_train_gpus",
)
def copies_rule(settings: ReceivedConfig) -> Iterator[Violation]:
    train, copies = settings.all_train_gpus, settings.integer(_COPIES)
    if train is None or copies is None or (copies >= 1 and train % copies == 0):
        return
    fix = f"write one of {', '.join(map(str, divisors(train)))}"
    yield violation(
        settings.place(_COPIES), f"{_COPIES} of {copies} does not divide the {train} GPUs of the trainer", fix
    )


@RULES.error(
    "PR369",
    "expert parallelism does not divide the trainer's GPUs",
    why="prime-rl accepts the value, but the trainer cannot build its device mesh and crashes at start-up.",
    fix="make trainer.model.ep divide deployment.num_train_gpus",
)
def experts_rule(settings: ReceivedConfig) -> Iterator[Violation]:
    """Yield a violation if expert parallelism does not divide the GPUs that share sequences and those that
    share one copy of the model.
    """
    train, experts, context, copies = (
        settings.all_train_gpus,
        *(settings.integer(name) or 1 for name in (_EXPERTS, _CONTEXT, _COPIES)),
    )
    if settings.value("trainer.model.impl") == "hf" or train is None or experts <= 1:
        return
    if context < 1 or copies < 1 or train % context or train % copies:
        return
    if experts % context or (train // copies) % experts:
        fitting = [n for n in divisors(train // copies) if n % context == 0]
        message = f"{_EXPERTS} of {experts} does not divide the {train} GPUs of the trainer"
        detail = (
            f", {context} to a sequence"
            if context > 1
            else f", in {copies} copies of the model"
            if copies > 1
            else ""
        )
        yield violation(
            settings.place(_EXPERTS),
            f"{message}{detail}",
            f"write one of {', '.join(map(str, fitting))}" if fitting else "",
        )


@RULES.note(
    "PR395",
    "trainer and inference share a GPU",
    why="prime-rl's launcher does not put both on one GPU, so the server is started beside it, as its "
    "documents describe for one GPU. Each waits for the other: with two GPUs the same steps take less time.",
    fix="for a GPU for each, set hardware.count to 2",
)
def shared(settings: ReceivedConfig) -> Iterator[Violation]:
    if settings.is_on_one_gpu:
        message = (
            "trainer and inference share the only GPU: the server starts first and takes "
            f"{settings.number(_SHARE):g} of its memory, then "
            "the launcher starts the others without it, and weights go over the file system"
        )
        yield Violation(("hardware", "count"), message)


@RULES.error(
    "PR396",
    "weights sent from a GPU to itself",
    why="NCCL refuses two processes on one GPU, and the run fails after it was installed.",
    fix='delete the section, or write type = "filesystem"',
)
def in_memory(settings: ReceivedConfig) -> Iterator[Violation]:
    if not settings.is_on_one_gpu:
        return
    for part in _BROADCASTS:
        kind = settings.text_at((*part.split("."), "type"))
        if kind is not None and kind != "filesystem":
            yield violation(
                (*part.split("."), "type"), f"{kind} cannot send weights between two processes on one GPU"
            )
