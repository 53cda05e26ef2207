"""A clock that continues while the machine sleeps."""

import pytest

from prime_train.elapsed import Elapsed


@pytest.mark.parametrize(
    ("monotonic", "wall", "passed_s"),
    [
        ([5, 7, 7], [1000, 1002, 1002], 2),
        ([5, 6, 6], [1000, 4600, 4600], 3600),  # it slept
        ([5, 65, 70], [1000, 400, 405], 65),  # somebody has set the wall clock back
        ([5, 6, 66], [1000, 4600, 4000], 3660),  # it slept, then somebody did
    ],
)
def test_what_passes_is_what_either_clock_says(
    monotonic: list[float], wall: list[float], passed_s: float
) -> None:
    elapsed = Elapsed(lambda: monotonic.pop(0), lambda: wall.pop(0))
    readings = [elapsed(), elapsed()]
    assert readings == sorted(readings)
    assert readings[-1] == passed_s


def test_it_goes_on_by_itself() -> None:
    elapsed = Elapsed()
    first = elapsed()
    while elapsed() == first:
        pass
    assert elapsed() > first
