"""The page of a rehearsal: what a reader sees first, and what the picture shows on a narrow screen."""

from pathlib import Path

from prime_train.rehearsal.dress import Dressed
from prime_train.rehearsal.page import page_html
from prime_train.rehearsal.rehearsal import Rehearsal, Started
from tests.rehearsal.rehearsals import request_of


def page_of(folder: Path) -> str:
    starts = [
        Started("first run", 0.0, 20.0, ((5.0, 1), (15.0, 8)), ((9.0, 4),), "SIGTERM"),
        Started("resumed with --resume", 20.0, 10.0, ((6.0, 5),)),
    ]
    found = Rehearsal(
        request_of(folder, "--steps", "8"), starts=starts, seconds=30.0, dressed=Dressed(seconds=70.0)
    )
    return page_html(found, [], "name: mine\n")


def test_the_time_counts_the_run_by_prime_train_too(tmp_path: Path) -> None:
    assert "in 1 min 40 s" in page_of(tmp_path)


def test_the_command_is_no_heading_of_many_lines(tmp_path: Path) -> None:
    page = page_of(tmp_path)

    assert "<h1>rehearsal</h1>" in page
    assert "<code>python train.py --steps 8</code>" in page


def test_a_narrow_screen_gets_numbers_and_their_names_below(tmp_path: Path) -> None:
    narrow = page_of(tmp_path).partition("<div class=narrow>")[2]

    picture, _, names = narrow.partition("<ol ")
    assert "resumed with" not in picture
    assert "<li>first run</li><li>resumed with --resume</li>" in names
