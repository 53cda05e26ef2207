"""Findings on a terminal: lines that fit it, and a caret under the position."""

import unicodedata

import pytest

from tests.cli.shell import Shell
from tests.cli.terminal import terminal

FAULTY = (
    "name: My Run With A Name That Is Too Long\ntrainer: {comand: python x}\nhardware: "
    "{spot: "
    "no}\nbudgett: {usd: 1}\n"
)


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_no_line_is_longer_than_the_terminal_and_what_goes_on_is_indented(shell: Shell, columns: int) -> None:
    shell.write("run.yaml", FAULTY)
    with terminal(shell, "validate", "run.yaml", columns=columns) as seen:
        assert seen.end() == 1
    lines = seen.seen.splitlines()
    assert max(map(len, lines)) <= columns
    starts = [line for line in lines if line and not line.startswith(" ")]
    assert all(line.startswith("run.yaml:") for line in starts[:-1])
    assert starts[-1] == f"{len(starts) - 1} findings in 1 file"


def test_what_is_no_terminal_gets_complete_lines(shell: Shell) -> None:
    shell.write("run.yaml", FAULTY)
    lines = shell.run("validate", "run.yaml").stdout.splitlines()
    assert "" not in lines
    assert all(
        line.startswith(("run.yaml:", "       | ", "       fix: ")) or line[:6].strip().isdigit()
        for line in lines
    )


def test_the_caret_stands_under_its_place_behind_wide_characters_too(shell: Shell) -> None:
    shell.write(
        "run.yaml", 'name: a\ntrainer: {command: x}\nbudget: {usd: 1}\nenvironment: {A: "値段é", B: [1]}\n'
    )
    lines = shell.run("validate", "run.yaml").stdout.splitlines()
    at = next(
        number for number, line in enumerate(lines) if line.endswith("^") and "B: [1]" in lines[number - 1]
    )
    before = lines[at - 1][: lines[at - 1].index("[1]")]
    assert lines[at].index("^") == sum(
        2 if unicodedata.east_asian_width(char) == "W" else 1 for char in before
    )
