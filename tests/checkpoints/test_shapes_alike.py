"""Checkpoints of one run are alike, but for numbers in names."""

import pytest

from prime_train.runs.resuming.shapes import Shape, difference, shape_of

KIB = 2**10
TEN = {"global_step10/rank_0.pt": 40 * KIB, "global_step10/rank_1.pt": 40 * KIB, "state.json": 300}


def shape(files: dict[str, int]) -> Shape:
    return shape_of(files.items())


@pytest.mark.parametrize(
    ("files", "what"),
    [
        ({"global_step20/rank_0.pt": 40 * KIB, "global_step20/rank_1.pt": 40 * KIB, "state.json": 20}, ""),
        ({**TEN, "extra.txt": 1}, ""),
        ({"global_step20/rank_0.pt": 40 * KIB, "state.json": 300}, "lacks global_step#/rank_#.pt"),
        ({"global_step20/rank_0.pt": 40 * KIB, "global_step20/rank_1.pt": 40 * KIB}, "lacks state.json"),
        (
            {"global_step20/rank_0.pt": 19 * KIB, "global_step20/rank_1.pt": 19 * KIB, "state.json": 300},
            "has 38912 bytes of",
        ),
        ({}, "lacks global_step#/rank_#.pt, state.json"),
    ],
)
def test_a_checkpoint_that_lacks_what_those_before_had_is_told_from_a_whole_one(
    files: dict[str, int], what: str
) -> None:
    assert difference(shape(files), [shape(TEN)]).startswith(what)
    assert bool(difference(shape(files), [shape(TEN)])) == bool(what)


def test_only_what_all_earlier_ones_had_counts() -> None:
    assert difference(shape({"a": 1}), [shape({"a": 1, "b": 1}), shape({"a": 1})]) == ""
    assert difference(shape({"a": 1}), []) == ""
