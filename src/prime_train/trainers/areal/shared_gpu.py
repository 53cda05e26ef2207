"""Rules about AReaL on GPUs that train and generate in turns (TR419, TR420, ME207, ME208), as of August 2026.

AReaL refuses such a layout unless its trainer can give its memory back (`enable_offload`) and new weights do
not go from GPU to GPU (areal/trainer/rl_trainer.py at cbff54d645d). A server's share counts from the whole
GPU: the 0.8 of AReaL's examples is for servers that have their GPUs for themselves.
"""

from collections.abc import Iterator

from prime_train.checks.memory_fits import Fitting, fittings
from prime_train.spec.rule import Document, Rules, Subject, Violation

GIB = 2**30
TOPIC = "AReaL"
_WEIGHT_UPDATES = ("disk", "awex")
_REFERENCE = "${"


RULES = Rules(TOPIC, requires="areal")


def _is_shared(config: Document) -> bool:
    return config.value("rollout", "scheduling_strategy", "type") == "colocation"


def _violation(path: tuple[str | int, ...], message: str, fix: str = "") -> Violation:
    return Violation(path, message, fix, document="trainer")


@RULES.error(
    "TR419",
    "a shared GPU without offloading",
    why="AReaL ends with a ValueError after it was installed: where trainer and server share GPUs, the "
    "trainer must be able to give its memory back.",
    fix="write enable_offload=true",
)
def not_offloaded(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if config is None or not _is_shared(config):
        return
    value = config.value("enable_offload")
    # What a command does not set, the file that it names may say.
    if value is False or (value is None and not subject.is_by_flags):
        path = ("enable_offload",) if value is False else ("rollout", "scheduling_strategy", "type")
        yield _violation(path, "AReaL refuses colocation without enable_offload")


@RULES.error(
    "TR420",
    "weights sent from a GPU to itself",
    why="AReaL ends with a ValueError after it was installed: where trainer and server share GPUs, new "
    "weights go over the disk.",
    fix="write actor.weight_update_mode=disk",
)
def weights_over_nccl(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if config is None or not _is_shared(config):
        return
    mode = config.text("actor", "weight_update_mode")
    if mode is None and subject.is_by_flags:
        return
    if mode is None or (mode not in _WEIGHT_UPDATES and _REFERENCE not in mode):
        message = f"AReaL refuses colocation with weight_update_mode {mode or 'xccl, its default'}"
        yield _violation(("actor", "weight_update_mode"), message, "write disk")


def _share_place(subject: Subject) -> tuple[str, str]:
    rollout = subject.trainer.text("rollout", "backend") if subject.trainer is not None else None
    return (
        ("vllm", "gpu_memory_utilization")
        if (rollout or "").startswith("vllm")
        else ("sglang", "mem_fraction_static")
    )


def _beside(subject: Subject, *, offloads: bool) -> Iterator[Violation]:
    """Yield a violation for each kind of GPU on which not even the low end of the trainer's need fits beside
    the server's share.
    """
    config = subject.trainer
    if config is None or (config.value("enable_offload") is True) is not offloads:
        return
    for fitting in fittings(subject, together=True):
        left, need, share = fitting.left, fitting.need, fitting.plan.utilization
        if need.low > left:
            message = (
                f"the server takes {share:g} of one {fitting.kind} ({fitting.usable * share / GIB:.0f} GiB), "
                "and the trainer on the same "
                f"GPU needs {need.low / GIB:.0f} to {need.high / GIB:.0f} GiB; {left / GIB:.0f} GiB are left"
            )
            yield _violation(_share_place(subject), message, _remedy(fitting))


def _remedy(fitting: Fitting) -> str:
    """Return the share with which the trainer's estimate fits, if the server still fits into it."""
    if fitting.share_beside is not None:
        return f"write {fitting.share_beside:g}, or use a GPU for each"
    return "use a GPU for each, a larger kind, fewer actor.mb_spec.max_tokens_per_mb, or LoRA"


@RULES.error(
    "ME207",
    "trainer and server do not fit one GPU",
    why="The run fails with an out-of-memory error in its first step, after the machine, its setup and the "
    "download were paid for.",
    fix="lower the server's share, or use a GPU for each",
    topic="memory",
)
def too_large(subject: Subject) -> Iterator[Violation]:
    return _beside(subject, offloads=False)


@RULES.warning(
    "ME208",
    "trainer and server fit one GPU only in turns",
    why="Each gives its memory back for the other (enable_offload). What it does not give back, such as "
    "buffers and CUDA graphs, is missing in the first step of training, and the run fails with an "
    "out-of-memory error.",
    fix="lower the server's share, or use a GPU for each",
    topic="memory",
)
def tight(subject: Subject) -> Iterator[Violation]:
    return _beside(subject, offloads=True)
