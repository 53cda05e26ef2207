"""Whether a checkpoint has the files that the run's other checkpoints have.

Nothing marks a folder without a sentinel as complete, and a sentinel may come too early. But the checkpoints
of one run are alike: a set of files that lacks what all earlier ones had, or is much smaller, is most likely
a save that was cut off. Numbers in names are left out of the comparison, because they count steps, processes
and parts.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

SMALLER_SHARE = 0.5
"""Share of the smallest earlier size below which files count as much smaller."""
COMPARED_BYTES_MIN = 16 * 2**10
"""Size from which on files are compared by size: small ones, such as texts and figures, may shrink."""
NAMES_SHOWN_MAX = 3

Shape = Mapping[str, tuple[int, int]]
"""The number of files and their bytes together, by name without its numbers."""

_NUMBER = re.compile(r"\d+")


def shape_of(files: Iterable[tuple[str, int]]) -> Shape:
    """Return the shape of a checkpoint with these files: path and size in bytes of each."""
    shape: dict[str, tuple[int, int]] = {}
    for path, size in files:
        name = _NUMBER.sub("#", path)
        count, total = shape.get(name, (0, 0))
        shape[name] = count + 1, total + size
    return shape


def difference(shape: Shape, earlier: Sequence[Shape]) -> str:
    """Return what the checkpoint lacks that all `earlier` ones of the run had, as a predicate; "" if
    nothing.
    """
    if not earlier:
        return ""
    common = set(earlier[0]).intersection(*earlier[1:])
    lacking = [
        name for name in sorted(common) if shape.get(name, (0, 0))[0] < min(one[name][0] for one in earlier)
    ]
    if lacking:
        more = f" and {len(lacking) - NAMES_SHOWN_MAX} more" if len(lacking) > NAMES_SHOWN_MAX else ""
        return f"lacks {', '.join(lacking[:NAMES_SHOWN_MAX])}{more}, which the checkpoints before it had"
    for name in sorted(common):
        least, size = min(one[name][1] for one in earlier), shape[name][1]
        if least >= COMPARED_BYTES_MIN and size < SMALLER_SHARE * least:
            return f"has {size} bytes of {name}, and the checkpoints before it had {least} or more"
    return ""
