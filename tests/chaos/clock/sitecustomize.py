"""Gives one kind of process a wrong wall clock, which can be set while the process runs.

Python loads this module at start-up when its folder is on PYTHONPATH. PT_CLOCKS is a JSON object: a pattern
of command lines -> a file with the number of seconds that the clock is ahead. The file is read at each
reading of the clock, so writing it sets the clock.
"""

import json
import os
import re
import sys
import time

COMMAND = " ".join(sys.orig_argv)
FILE = next(
    (
        str(file)
        for role, file in json.loads(os.environ.get("PT_CLOCKS", "{}")).items()
        if re.search(role, COMMAND)
    ),
    "",
)

if FILE:
    real_ns = time.time_ns

    def ahead_ns() -> int:
        with open(FILE) as file:  # noqa: PTH123 - pathlib is slow to import here
            return int(float(file.read() or 0) * 1e9)

    time.time_ns = lambda: real_ns() + ahead_ns()
    time.time = lambda: time.time_ns() / 1e9
