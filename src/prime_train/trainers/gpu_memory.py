"""What PyTorch's message of a failed allocation says about who holds the GPU's memory."""

import re

OTHERS_SHARE = 0.5
"""Share of a GPU's memory from which on other processes are at fault: with so little left, no batch size
would have helped.
"""

_SIZE = r"([\d.]+) (KiB|MiB|GiB)"
_TOTAL = re.compile(rf"total capacity of {_SIZE}")
_OTHER = re.compile(rf"[Pp]rocess \d+ has {_SIZE} memory in use")
_OWN = re.compile(rf"Of the allocated memory {_SIZE} is allocated by PyTorch")
_MIB = {"KiB": 1 / 1024, "MiB": 1.0, "GiB": 1024.0}


def is_held_by_others(line: str) -> bool:
    """Return whether, by this line, other processes than the trainer's own held most of the GPU's memory."""
    total, own = _mib(_TOTAL, line), _mib(_OWN, line)
    if not total or own is None:
        return False
    # In a container, the trainer may itself appear by its number on the host.
    others = [
        float(size) * _MIB[unit] for size, unit in _OTHER.findall(line) if float(size) * _MIB[unit] > 2 * own
    ]
    return sum(others) > OTHERS_SHARE * total


def _mib(pattern: re.Pattern[str], line: str) -> float | None:
    found = pattern.search(line)
    return float(found[1]) * _MIB[found[2]] if found else None
