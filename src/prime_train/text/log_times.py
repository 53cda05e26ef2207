"""The index of when each part of a log was written. The agent keeps it beside the log, because few trainers
print times.

A line of the index is `SECOND OFFSET`: bytes written in that second, or up to `EVERY_S` later, begin at that
offset of the log. The seconds are those of the machine that holds the log, and are compared only with its own
clock.
"""

SUFFIX = ".times"
"""Suffix that the log's name gets in the name of the index."""
EVERY_S = 5


def entry(at_s: int, offset: int) -> str:
    return f"{at_s} {offset}\n"


def offset_since(index: str, after_s: int) -> int | None:
    """Return the offset in the log at which the output written since second `after_s` begins; up to `EVERY_S`
    seconds of earlier output may be included. None if nothing was written since.
    """
    for line in index.splitlines():
        at_s, _, offset = line.partition(" ")
        # The last line may be incomplete, and a full disk may have truncated any line.
        if at_s.isdecimal() and offset.isdecimal() and int(at_s) + EVERY_S >= after_s:
            return int(offset)
    return None
