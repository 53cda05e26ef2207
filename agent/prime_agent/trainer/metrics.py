"""The end of the trainer's metrics file, kept as evidence of where the time of a step goes."""

from pathlib import Path

from prime_train.core.spec import RunSpec
from prime_train.trainers import trainer_for

READ_BYTES_MAX = 32 * 2**20
"""Bytes read from the end of the metrics file. Few of them are kept, because some trainers write hundreds of figures every few seconds."""
KEPT_CHARS_MAX = 2**20


def stored_metrics(work: Path, spec: RunSpec) -> str:
    """Return the last lines of the trainer's metrics file, reduced to what is kept as evidence; "" if the trainer has no such file. Raises
    OSError."""
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
