"""The rows that the trainer reported, as a CSV file on this machine that is uploaded as it grows."""

import csv
import io
import math
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from prime_agent.trainer.logs import BoundedLog
from prime_train.text.safe import neutralized
from prime_train.trainers.of_spec import Progress

FIRST_COLUMNS = ("step", "time_s", "loss", "reward")
COLUMNS_MAX = 200
"""Number of columns; figures that the trainer begins to report after that are left out."""


class MetricsCsv:
    """Writer of the file. `time_s` is when a row was read, in seconds since 1970 by this machine's clock.
    When the trainer reports a new figure, a new header follows, with the new column as the last one. A figure
    that is not finite is written as `nan`. Never raises OSError; thread-safe.
    """

    def __init__(self, path: Path, *, now_s: Callable[[], float] = time.time) -> None:
        self._log = BoundedLog(path)
        self._now_s = now_s
        self._columns: list[str] = []
        self._lock = threading.Lock()

    def add(self, rows: Iterable[Progress]) -> None:
        with self._lock:
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            for row in rows:
                self._write(writer.writerow, row)
            if text.getvalue():
                self._log.write(text.getvalue().encode(errors="replace"))

    def close(self) -> None:
        self._log.close()

    def _write(self, write: Callable[[Iterable[object]], object], row: Progress) -> None:
        values = {"step": row.step, "time_s": round(self._now_s(), 3), "loss": row.loss, "reward": row.reward}
        values |= {name: number for name, number in row.others.items() if name not in values}
        values |= {name: math.nan for name in sorted(row.not_finite) if values.get(name) is None}
        new = [name for name in (*FIRST_COLUMNS, *values) if name not in self._columns][
            : COLUMNS_MAX - len(self._columns)
        ]
        if new:
            self._columns += dict.fromkeys(new)
            # A name with a line break would end the row for whoever reads it line by line.
            write(map(neutralized, self._columns))
        write(["" if values.get(name) is None else values[name] for name in self._columns])
