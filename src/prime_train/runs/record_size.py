"""The size of a run's record, which must fit where it is stored.

The smallest place is an item of DynamoDB. A config that is launched on one control plane may be launched on
any other, so one limit holds for all: a config takes at most `CONFIG_BYTES_MAX` of a record, and the rest is
room for what the record gains while the run lives: its attempts (`ledger.fold` keeps them within
`ATTEMPTS_BYTES_MAX`), notices, and once it is at rest its last heartbeat. Source of `ITEM_BYTES_MAX`: AWS,
"Quotas in Amazon DynamoDB": 400 KB with the names of attributes.
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prime_train.spec.tree import Path

if TYPE_CHECKING:
    from prime_train.runs.run import Attempt
    from prime_train.spec.spec import RunSpec

ITEM_BYTES_MAX = 400 * 1024
RUN_BYTES_MAX = ITEM_BYTES_MAX - 68 * 1024
"""What is left of an item for a run's own JSON: an item of a run at rest also has its lease with the last
heartbeat, whose request had at most 64 KiB.
"""
CONFIG_BYTES_MAX = 128 * 1024
ATTEMPTS_BYTES_MAX = 128 * 1024
"""The most that the attempts which a run lists may take in total, the newest one apart."""
ATTEMPT_BYTES = 1500
"""What an attempt takes without its own words, as text: numbers, times, and the offer that it rented."""
NAMED_MAX = 3
SHORTEN = "put long values into files of the working tree, and read them there"


def config_bytes(spec: "RunSpec") -> int:
    """Return the size in bytes of the config as it is stored."""
    return len(
        json.dumps(spec.model_dump(mode="json"), ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "replace"
        )
    )


def too_large(spec: "RunSpec") -> tuple[Path, str] | None:
    """Return the largest value of a config that is too large to be stored, and what is wrong in words; None
    if the config fits.
    """
    size = config_bytes(spec)
    if size <= CONFIG_BYTES_MAX:
        return None
    largest = sorted(_values(spec.model_dump(mode="json"), ()), key=lambda value: value[1], reverse=True)[
        :NAMED_MAX
    ]
    named = ", ".join(f"{'.'.join(map(str, path))} ({taken:,})" for path, taken in largest)
    words = (
        f"the config takes {size:,} bytes where runs are stored, and at most {CONFIG_BYTES_MAX:,} "
        "fit; "
        f"the most take {named}"
    )
    return largest[0][0], words


def attempt_bytes(attempt: "Attempt") -> int:
    """Return the most that an attempt takes in a run's record, in bytes."""
    return (
        ATTEMPT_BYTES
        + len(attempt.detail.encode("utf-8", "replace"))
        + len(attempt.variant.encode("utf-8", "replace"))
    )


def _values(value: object, path: Path) -> Iterator[tuple[Path, int]]:
    """Yield the size of each value below `path`; a list counts as a whole."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _values(one, (*path, str(name)))
    else:
        yield path, len(str(value).encode("utf-8", "replace"))
