"""Bytes checked as by `prime-train validate FILE`, in every output format: the output, and its cost."""

import io
import json
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from prime_train.checks.report.check import check
from prime_train.checks.report.formats import Format

__all__ = [
    "BYTES_MAX",
    "CPU_S_MAX",
    "Checked",
    "Format",
    "Kind",
    "Reported",
    "check_bytes",
    "peak_bytes",
    "reported",
]

Kind = Literal["yaml", "toml"]
CPU_S_MAX = 1.0
BYTES_MAX = 200 * 1024 * 1024
RSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Reported:
    """The output, and the time it took."""

    out: str
    cpu_s: float

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of JSON output."""
        found: list[dict[str, Any]] = json.loads(self.out)
        return found


@dataclass(frozen=True)
class Checked:
    """The result. `codes`: of the findings, in order. `cpu_s`: of the slowest format. `grown_bytes`: beyond
    the highest earlier memory use.
    """

    codes: tuple[str, ...]
    cpu_s: float
    grown_bytes: int


def check_bytes(data: bytes, kind: Kind, forms: Sequence[Format] = tuple(Format)) -> Checked:
    """Check the bytes; `forms` includes JSON. Raises AssertionError for output that cannot be parsed, and
    whatever `check` raises.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"config.{kind}"
        path.write_bytes(data)
        before = peak_bytes()
        by_form = {form: reported(path, form) for form in forms}
    rows, lines = by_form[Format.JSON].rows, data.split(b"\n")
    for row in rows:
        assert 1 <= row["line"] <= len(lines), row
        # A character has one byte at least.
        assert 1 <= row["column"] <= len(lines[row["line"] - 1]) + 1, row
        assert row["message"], row
    return Checked(
        tuple(row["code"] for row in rows),
        max(done.cpu_s for done in by_form.values()),
        peak_bytes() - before,
    )


def reported(path: Path, form: Format) -> Reported:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()):
        start_s = time.process_time()
        code = check([path], form)
        cpu_s = time.process_time() - start_s
    assert code in (0, 1), code
    return Reported(out.getvalue(), cpu_s)


def peak_bytes() -> int:
    """Return the peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * RSS_UNIT
