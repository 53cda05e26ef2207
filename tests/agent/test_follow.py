"""A progress file that is truncated, replaced or deleted by its writer."""

from pathlib import Path

from prime_agent.trainer.progress_follower import Follower


def test_lines_are_read_as_they_come_and_a_half_one_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    follower = Follower(path)
    assert follower.read_new() == []
    path.write_text("one\ntw")
    assert follower.read_new() == ["one"]
    with path.open("a") as file:
        file.write("o\nthree")
    assert follower.read_new() == ["two"]
    assert follower.read_new() == []
    assert follower.rest() == ["three"]


def test_what_was_there_before_is_skipped_but_for_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    path.write_text("step,loss\n1,2.0\n2,1.0\n")
    follower = Follower(path)
    assert follower.skip_present() == ["step,loss"]
    assert follower.read_new() == []
    with path.open("a") as file:
        file.write("3,0.5\n")
    assert follower.read_new() == ["3,0.5"]


def test_a_file_that_was_cut_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    path.write_text("one\ntwo\nthree\n")
    follower = Follower(path)
    follower.read_new()
    path.write_text("four\n")
    assert follower.read_new() == ["four"]


def test_a_file_that_was_cut_and_has_grown_past_the_old_place_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    path.write_text("one\ntwo\n")
    follower = Follower(path)
    follower.read_new()
    path.write_text("three\nfour\nfive\n")
    assert follower.read_new() == ["three", "four", "five"]


def test_a_file_that_was_replaced_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    path.write_text("one\n")
    follower = Follower(path)
    follower.read_new()
    (tmp_path / "next").write_text("one\ntwo\n")
    (tmp_path / "next").replace(path)
    assert follower.read_new() == ["one", "two"]


def test_a_file_that_went_away_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    path.write_text("one\n")
    follower = Follower(path)
    follower.read_new()
    path.unlink()
    assert follower.read_new() == []
    path.write_text("two\n")
    assert follower.read_new() == ["two"]
