"""The end of the trainer's file of metrics, as it is kept as evidence: what tells where the time of a step goes."""

from pathlib import Path

from prime_train.core.spec import RunSpec
from prime_train.trainers.prime_rl.profile.metric_keys import thinned

READ_BYTES_MAX = 32 * 2**20
"""prime-rl's inference servers tell hundreds of figures every few seconds; of these bytes little is left."""
KEPT_CHARS_MAX = 2**20


def kept_metrics(work: Path, spec: RunSpec) -> str:
    """Whole lines, the newest last; "" where the trainer has no such file. Raises OSError."""
    progress = spec.trainer.progress
    if progress.file is None or progress.kind != "jsonl" or not (work / progress.file).exists():
        return ""
    lines = _tail(work / progress.file).splitlines()
    if spec.trainer.prime_rl is not None:
        lines = [thin for line in lines if (thin := thinned(line))]
    kept = "".join(f"{line}\n" for line in lines)
    return kept if len(kept) <= KEPT_CHARS_MAX else kept[-KEPT_CHARS_MAX:].partition("\n")[2]


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - READ_BYTES_MAX))
        return file.read(READ_BYTES_MAX).decode(errors="replace")
