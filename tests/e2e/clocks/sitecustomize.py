"""Gives a process a wall clock of its own, which can be set while it runs.

Python loads this module at start-up when its folder is on PYTHONPATH. `time.time` and `time.time_ns` are
ahead by the number of seconds in the file PT_CLOCK at that moment; a negative number means behind. The
product is not involved: to it, the machine's clock is wrong.
"""

import os
import time

_real, _real_ns = time.time, time.time_ns
_FILE = os.environ.get("PT_CLOCK", "")


def _ahead_s() -> float:
    try:
        with open(_FILE) as file:  # noqa: PTH123 - pathlib is slow to import here
            return float(file.read() or 0)
    except OSError:
        return 0.0


if _FILE:
    time.time = lambda: _real() + _ahead_s()
    time.time_ns = lambda: _real_ns() + int(_ahead_s() * 1e9)
