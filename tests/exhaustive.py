"""Selects the points that a quick run of the test suite tries: a few of them, spread over all. A complete run
tries every one.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def some_of(points: Iterable[Any], *, one_in: int) -> Sequence[Any]:
    """Return parameters for `pytest.mark.parametrize`, of which a quick run takes the first, and then one in
    this many. A point may be a tuple of several values, or a `pytest.param`.
    """
    return [point if number % one_in == 0 else _rarely(point) for number, point in enumerate(points)]


def _rarely(point: Any) -> Any:
    if hasattr(point, "marks"):
        return pytest.param(*point.values, id=point.id, marks=[*point.marks, pytest.mark.exhaustive])
    values = point if isinstance(point, tuple) else (point,)
    return pytest.param(*values, marks=pytest.mark.exhaustive)
