"""Rules about vLLM's settings in a prime-rl config: `inference.vllm` accepts any key and passes it on."""

from collections.abc import Iterator

from prime_train.estimate.models.lookup import resolve_model
from prime_train.spec.rule import Violation
from prime_train.spec.tree import Mapping
from prime_train.text.nearest import SURE, nearest
from prime_train.trainers.prime_rl.reference.vllm_arguments import ARGUMENTS, NICKNAMES
from prime_train.trainers.prime_rl.rules.fields import section
from prime_train.trainers.prime_rl.rules.gpus import divisors
from prime_train.trainers.prime_rl.rules.rule import PrimeRlRules, violation
from prime_train.trainers.prime_rl.rules.settings import ReceivedConfig

_SECTION = "inference.vllm"
_SHARE = f"{_SECTION}.gpu_memory_utilization"
_PARALLEL = f"{_SECTION}.tensor_parallel_size"


RULES = PrimeRlRules()


@RULES.error(
    "PR316",
    "a misspelt setting of vLLM",
    why="prime-rl accepts any key there, but the server crashes at start-up, after the model is downloaded.",
    fix="correct the name",
)
def typos(settings: ReceivedConfig) -> Iterator[Violation]:
    """Yield violations only for names similar to a known setting, as vLLM has more settings than are listed
    here.
    """
    part = settings.at(_SECTION)
    if not isinstance(part, Mapping):
        return
    known = section("VllmConfig").settings.keys() | ARGUMENTS
    for entry in part.entries:
        name = entry.key.replace("-", "_")
        if name in known:
            continue
        suggestion = NICKNAMES.get(name) or next(iter(nearest(name, known, likeness=SURE)), None)
        if suggestion is not None:
            where = ("inference", "vllm", entry.key)
            yield violation(
                where,
                f"{_SECTION}.{entry.key} is not a setting of vLLM",
                f"did you mean {suggestion}?",
                on_key=True,
            )


@RULES.error(
    "PR317",
    "a GPU memory fraction that is out of range",
    why="prime-rl accepts any number, but the server crashes at start-up.",
    fix="write a fraction such as 0.9",
)
def share_rule(settings: ReceivedConfig) -> Iterator[Violation]:
    share = settings.number(_SHARE)
    if share is not None and not 0 < share <= 1:
        fix = (
            f"write {share / 100:g}"
            if 1 < share <= 100 and share == int(share) and share >= 10
            else "write a fraction such as 0.9"
        )
        yield violation(
            settings.place(_SHARE),
            f"{_SHARE} must be a fraction of the GPU's memory, more than 0 and at most 1, got {share:g}",
            fix,
        )


@RULES.error(
    "PR318",
    "GPUs for inference that tensor parallelism does not divide",
    why="prime-rl rejects the config: each engine uses tensor_parallel_size GPUs.",
    fix="make deployment.num_infer_gpus a multiple of tensor_parallel_size",
)
def split(settings: ReceivedConfig) -> Iterator[Violation]:
    gpus, parallel = settings.infer_gpus, settings.integer(_PARALLEL)
    if gpus is None or parallel is None or not _splits_badly(settings, parallel):
        return
    message = f"{gpus} GPUs for inference cannot be divided into engines of {parallel} GPUs ({_PARALLEL})"
    yield violation(settings.place(_PARALLEL), message, f"write one of {', '.join(map(str, divisors(gpus)))}")


@RULES.error(
    "PR319",
    "attention heads that tensor parallelism does not divide",
    why="prime-rl accepts the value, but the server crashes at start-up.",
    fix="use 1, 2, 4 or 8",
)
def heads_rule(settings: ReceivedConfig) -> Iterator[Violation]:
    """Yield a violation if the attention heads are not divisible, only for models with a known shape; other
    shapes are guessed from the size.
    """
    parallel, name = settings.integer(_PARALLEL), settings.text(f"{_SECTION}.model")
    if (
        parallel is None
        or parallel <= 1
        or name is None
        or not settings.is_complete
        or _splits_badly(settings, parallel)
    ):
        return
    model = resolve_model(name)
    if model is not None and not model.guessed and model.heads % parallel:
        fitting = [n for n in (1, 2, 4, 8) if model.heads % n == 0]
        message = (
            f"{_PARALLEL} of {parallel} does not divide the {model.heads} attention heads of {model.name}"
        )
        yield violation(settings.place(_PARALLEL), message, f"write one of {', '.join(map(str, fitting))}")


def _splits_badly(settings: ReceivedConfig, parallel: int) -> bool:
    gpus = settings.infer_gpus if settings.is_one_node else settings.integer("deployment.gpus_per_node")
    return parallel < 1 or (gpus or 0) % parallel != 0
