"""Progress bars in logs: a line that was overwritten a hundred times is one line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.outputs.logs.log_tail import last_lines
from prime_train.text.overwritten import Overwritten, lines_in_the_end

BAR = "".join(f"\r{percent:3}%|{'#' * (percent // 10):<10}|" for percent in range(101))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("a\nb", ["a", "b"]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("a\n\nb\n", ["a", "", "b"]),
        (f"start\n{BAR}\nend\n", ["start", "100%|##########|", "end"]),
        (f"{BAR}\r", ["100%|##########|"]),
        ("\r1\r2", ["2"]),
    ],
)
def test_a_line_is_shown_as_it_is_in_the_end(text: str, lines: list[str]) -> None:
    assert lines_in_the_end(text) == lines


def test_the_last_lines_of_a_log_are_not_all_of_one_progress_bar() -> None:
    assert last_lines(f"epoch 1\nloss 0.3\n{BAR}\nsaved", 3) == "loss 0.3\n100%|##########|\nsaved"


def test_a_log_that_is_followed_shows_a_bar_once_a_piece() -> None:
    seen = Overwritten()
    assert seen.of("start\n\r 1%\r 2%\r 3") == "start\n 2%\n"
    assert seen.of("%\r 4%\n") == " 4%\n"
    assert seen.of("epoch ") == "epoch "
    assert seen.of("1 of 2\r\n") == "1 of 2\n"
    assert seen.of("\rlast") == ""
    assert seen.end() == "last"


def test_the_end_of_a_line_may_come_in_two_pieces() -> None:
    seen = Overwritten()
    assert seen.of("a\r") + seen.of("\nb\r") + seen.of("\n") + seen.end() == "a\nb\n"


@given(st.lists(st.text(alphabet="ab\n", max_size=6), max_size=6))
def test_a_log_without_bars_passes_as_it_is_and_at_once(pieces: list[str]) -> None:
    seen = Overwritten()
    assert [seen.of(piece) for piece in pieces] == pieces
    assert seen.end() == ""


@given(st.lists(st.text(alphabet="ab\r\n", max_size=6), max_size=6))
def test_no_last_state_is_lost_however_a_log_is_cut(pieces: list[str]) -> None:
    seen = Overwritten()
    shown = "".join(seen.of(piece) for piece in pieces) + seen.end()
    wanted = iter(shown.splitlines())
    assert all(line in wanted for line in lines_in_the_end("".join(pieces)) if line)
