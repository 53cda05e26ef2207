"""Glob patterns of outputs."""

import time

import pytest

from prime_train.text.globs import initial_positions, matches, next_positions, parts_of


@pytest.mark.parametrize(
    ("pattern", "path", "is_match"),
    [
        ("results/**", "results/a.json", True),
        ("results/**", "results/a/b.json", True),
        ("results/**", "other/results/a.json", False),
        ("results", "results/a/b.json", True),
        ("*.csv", "a.csv", True),
        ("*.csv", "data/a.csv", False),
        ("**/*.csv", "a.csv", True),
        ("**/*.csv", "data/deep/a.csv", True),
        ("**/best/**", "x/best/a/b", True),
        ("**/best/**", "x/worst/a/b", False),
        ("out/?.txt", "out/a.txt", True),
        ("out/?.txt", "out/ab.txt", False),
        ("out/[ab].txt", "out/b.txt", True),
        ("submission.json", "submission.json", True),
        ("submission.json", "Submission.json", False),
    ],
)
def test_stars_stay_within_a_name_and_two_stars_cross_folders(
    pattern: str, path: str, is_match: bool
) -> None:
    assert matches(pattern, path) is is_match


@pytest.mark.parametrize("path", ["results/.draft.json", "results/.cache/a.json", ".results/a.json"])
def test_hidden_files_are_chosen_only_by_a_part_that_begins_with_a_dot(path: str) -> None:
    assert not matches("results/**", path)
    assert not matches("results", path)
    assert not matches("**/*.json", path)
    assert matches(path, path)


def test_a_folder_that_cannot_hold_a_match_is_not_entered() -> None:
    pattern = parts_of("*.csv")
    assert not next_positions(pattern, initial_positions(pattern), "data")


def test_a_pattern_of_many_stars_is_matched_in_no_time() -> None:
    began_s = time.process_time()
    assert not matches("/".join(["**/a"] * 20) + "/b", "/".join(["a"] * 60))
    assert not matches("a*" * 60 + "b", "a" * 250)
    assert time.process_time() - began_s < 5, "exponential"
