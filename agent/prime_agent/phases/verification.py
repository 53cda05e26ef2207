"""Checks that the data for training exists: dataset builders are known to exit successfully with half of their output missing."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from prime_agent.phases.phase import PhaseError
from prime_train.core.causes import Cause
from prime_train.core.spec import VerifySpec

MATCHES_MAX = 100_000
SHOWN_MAX = 5


def verify(rows: Sequence[VerifySpec], work: Path) -> None:
    """Check all rows. Raises PhaseError that names every row that does not hold, with the files found."""
    wrong = [problem for row in rows if (problem := problem_of(row, work)) is not None]
    if wrong:
        raise PhaseError(Cause.VERIFY_FAILED, "; ".join(wrong))


def problem_of(row: VerifySpec, work: Path) -> str | None:
    """Return what is wrong with the files of one row, or None."""
    files = sorted(path for path in islice(work.glob(row.path), MATCHES_MAX) if path.is_file())
    small = [path for path in files if path.stat().st_size < row.size_min]
    wanted = f"exactly {row.exactly}" if row.exactly is not None else f"at least {row.at_least}"
    enough = len(files) == row.exactly if row.exactly is not None else len(files) >= row.at_least
    if enough and not small:
        return None
    sized = f" of at least {size_text(row.size_min)}" if row.size_min else ""
    seen = ", ".join(_shown(path, work, row.size_min) for path in [*small, *(f for f in files if f not in small)][:SHOWN_MAX])
    more = f" and {len(files) - SHOWN_MAX} more" if len(files) > SHOWN_MAX else ""
    return f"{row.path}: {wanted}{sized} required, {len(files)} found{': ' if seen else ''}{seen}{more}"


def size_text(size: int) -> str:
    """Return a size in bytes as text, in the largest unit in which it is at least 1."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"


def _shown(path: Path, work: Path, size_min: int) -> str:
    size = path.stat().st_size
    return f"{path.relative_to(work)} ({size_text(size)}{', too small' if size < size_min else ''})"
