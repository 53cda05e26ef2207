"""`# prime-train: ignore[CODE] reason`: what it ignores, and the finding on one without effect."""

import pytest

from prime_train.checks.ignores import apply_ignores, ignores
from prime_train.spec.finding import Finding, Severity


def settled(text: str, *findings: Finding) -> list[tuple[str, int]]:
    return [(finding.code, finding.line) for finding in apply_ignores(findings, {"a.yaml": text})]


def at(line: int, code: str = "HW101") -> Finding:
    return Finding(code, "odd", "a.yaml", line)


@pytest.mark.parametrize(
    "text",
    [
        "x: 1  # prime-train: ignore[HW101] it is meant\n",
        "x: 1  #prime-train:ignore[HW101] it is meant\n",
        "x: 1  # prime-train: ignore[PT020, HW101]: it is meant\n",
        "x: 1  # the reason is told there  # prime-train: ignore[HW101] it is meant\n",
    ],
)
def test_a_comment_on_the_line_ignores_the_finding(text: str) -> None:
    assert ("HW101", 1) not in settled(text, at(1))


def test_a_comment_alone_on_the_line_before_ignores_the_finding() -> None:
    assert settled("a: 1\n  # prime-train: ignore[HW101] it is meant\nx: 1\n", at(3)) == []


def test_two_comments_above_one_line_both_count() -> None:
    text = "# prime-train: ignore[HW101] it is meant\n# prime-train: ignore[PR301] that too\nx: 1\n"
    assert settled(text, at(3), at(3, "PR301")) == []


def test_other_codes_and_other_lines_are_reported_as_before() -> None:
    text = "x: 1  # prime-train: ignore[HW101] it is meant\ny: 2\n"
    assert settled(text, at(1), at(1, "PR301"), at(2)) == [("PR301", 1), ("HW101", 2)]


def test_a_comment_behind_a_value_says_nothing_of_the_next_line() -> None:
    assert settled("x: 1  # prime-train: ignore[HW101] it is meant\ny: 2\n", at(2)) == [
        ("PT092", 1),
        ("HW101", 2),
    ]


def test_an_ignore_without_a_reason_ignores_nothing_and_is_reported() -> None:
    assert settled("x: 1  # prime-train: ignore[HW101]\n", at(1)) == [("HW101", 1), ("PT090", 1)]


@pytest.mark.parametrize("code", ["HW999", "nonsense", "PT004", "PT010"])
def test_an_ignore_of_what_cannot_be_ignored_is_reported(code: str) -> None:
    assert settled(f"x: 1  # prime-train: ignore[{code}] why not\n") == [("PT091", 1)]


def test_an_ignore_without_a_code_is_reported() -> None:
    assert settled("x: 1  # prime-train: ignore of all\n") == [("PT091", 1)]


def test_an_error_in_reading_is_reported_whatever_a_comment_says() -> None:
    assert ("PT010", 1) in settled("x: 1  # prime-train: ignore[PT010] why not\n", at(1, "PT010"))


def test_an_ignore_that_nothing_needs_any_more_is_reported_at_its_place() -> None:
    (note,) = apply_ignores((), {"a.yaml": "x: 1\ny: 2  # prime-train: ignore[HW101] it was meant\n"})
    assert (note.code, note.severity, note.line, note.column) == ("PT092", Severity.NOTE, 2, 7)


def test_what_is_ignored_in_one_file_is_reported_in_another() -> None:
    text = "x: 1  # prime-train: ignore[HW101] it is meant\n"
    found = apply_ignores((at(1), Finding("HW101", "odd", "b.yaml", 1)), {"a.yaml": text, "b.yaml": "x: 1\n"})
    assert [finding.file for finding in found] == ["b.yaml"]


def test_text_that_only_speaks_of_it_is_no_comment() -> None:
    assert list(ignores("a.yaml", "note: see prime-train: ignore[HW101] in the docs\n")) == []
