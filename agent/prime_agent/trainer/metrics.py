"""The end of the trainer's metrics file, kept as evidence of where the time of a step goes."""

from pathlib import Path

from prime_train.core.spec import RunSpec
from prime_train.trainers import trainer_for

READ_BYTES_MAX = 32 * 2**20
"""Some trainers write hundreds of figures every few seconds, so little of these bytes is kept."""
KEPT_CHARS_MAX = 2**20


def kept_metrics(work: Path, spec: RunSpec) -> str:
    """Return complete lines, the newest last; "" if the trainer has no such file. Raises OSError."""
    progress = spec.trainer.progress
    if progress.file is None or progress.kind != "jsonl" or not (work / progress.file).exists():
        return ""
    trainer = trainer_for(spec)
    rows = [row for line in _tail(work / progress.file).splitlines() if (row := trainer.kept_row(spec, line))]
    kept = "".join(f"{row}\n" for row in rows)
    return kept if len(kept) <= KEPT_CHARS_MAX else kept[-KEPT_CHARS_MAX:].partition("\n")[2]


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - READ_BYTES_MAX))
        return file.read(READ_BYTES_MAX).decode(errors="replace")
