"""A finding is a value with a code from the table."""

import pytest

from prime_train.spec.finding import CODES, Finding, Severity, has_errors, in_order


def test_a_code_outside_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="PT999"):
        Finding("PT999", "odd", "a.yaml")


def test_a_row_has_all_that_a_program_needs() -> None:
    row = Finding("PT010", "unknown key 'nmae'", "a.yaml", 3, 5, fix="did you mean name?").row()
    wanted = {
        "code": "PT010",
        "severity": "error",
        "file": "a.yaml",
        "line": 3,
        "column": 5,
        "fix": "did you mean name?",
    }
    assert wanted.items() <= row.items()


def test_findings_come_in_the_order_of_the_file_and_each_once() -> None:
    first, second = Finding("PT012", "x", "a.yaml", 2, 9), Finding("PT010", "y", "a.yaml", 10, 1)
    assert in_order([second, first, second]) == (first, second)


@pytest.mark.parametrize(
    ("severity", "fatal"), [(Severity.ERROR, True), (Severity.WARNING, False), (Severity.NOTE, False)]
)
def test_only_errors_keep_a_run_from_being_launched(severity: Severity, fatal: bool) -> None:
    assert has_errors((Finding("PT030", "z", ".", severity=severity),)) is fatal


def test_every_code_says_what_it_stands_for() -> None:
    assert all(code.startswith("PT") and len(code) == 5 and words for code, words in CODES.items())
