"""What the whole suite says at its end: the figures of the kill matrix."""

import io
import json

import pytest
from rich.console import Console
from rich.table import Table

from tests.e2e.plane import MATRIX_ROW


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One row for each point at which something was taken away, and what it came to."""
    reports = terminalreporter.stats.get("passed", [])
    rows = [json.loads(value) for report in reports for name, value in getattr(report, "user_properties", []) if name == MATRIX_ROW]
    if not rows:
        return
    table = Table(*rows[0], title=f"kill matrix: {len(rows)} points")
    for row in sorted(rows, key=lambda row: str(row["point"])):
        table.add_row(*(str(value) for value in row.values()))
    text = io.StringIO()
    Console(file=text, width=140).print(table)
    terminalreporter.write_line(text.getvalue())
    attempts = sum(row["attempts"] for row in rows)
    terminalreporter.write_line(
        f"{len(rows)} runs, {attempts} attempts: all succeeded with the weights of an uninterrupted run; "
        "0 durable steps lost, 0 late commits, 0 pods or processes left"
    )
