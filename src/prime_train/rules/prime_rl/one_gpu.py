"""Rules about prime-rl on a machine with one GPU, which its trainer and its inference server share.

What the launch does then is in `prime_train.trainers.prime_rl.one_gpu`.
"""

from collections.abc import Iterator

from prime_train.core.finding import Severity
from prime_train.rules.prime_rl.rule import row, violation
from prime_train.rules.prime_rl.settings import Settings
from prime_train.rules.rule import Violation

_SHARE = "inference.vllm.gpu_memory_utilization"
_BROADCASTS = ("weight_broadcast", "trainer.weight_broadcast", "orchestrator.weight_broadcast")


def _shared(settings: Settings) -> Iterator[Violation]:
    if settings.is_on_one_gpu:
        message = (
            f"trainer and inference share the only GPU: the server starts first and takes {settings.number(_SHARE):g} of its memory, then "
            "the launcher starts the others without it, and weights go over the file system"
        )
        yield Violation(("hardware", "count"), message)


def _in_memory(settings: Settings) -> Iterator[Violation]:
    if not settings.is_on_one_gpu:
        return
    for part in _BROADCASTS:
        kind = settings.text_at((*part.split("."), "type"))
        if kind is not None and kind != "filesystem":
            yield violation((*part.split("."), "type"), f"{kind} cannot send weights between two processes on one GPU")


RULES = (
    row(
        "PR395",
        Severity.NOTE,
        "trainer and inference share a GPU",
        _shared,
        why="prime-rl's launcher does not put both on one GPU, so the server is started beside it, as its documents describe for one GPU. "
        "Each waits for the other: with two GPUs the same steps take less time.",
        fix="for a GPU for each, set hardware.count to 2",
    ),
    row(
        "PR396",
        Severity.ERROR,
        "weights sent from a GPU to itself",
        _in_memory,
        why="NCCL refuses two processes on one GPU, and the run fails after it was installed.",
        fix='delete the section, or write type = "filesystem"',
    ),
)
