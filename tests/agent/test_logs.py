"""Bounded logs, splitting bytes into lines, and a reader that nothing stops."""

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from prime_agent.trainer.logs import LINE_BYTES_MAX, LINES_KEPT, BoundedLog, Drain, Lines
from prime_train.text.log_times import offset_since
from tests.waiting import HANG_S


def test_a_log_never_takes_more_than_its_files_and_keeps_the_newest(tmp_path: Path) -> None:
    log = BoundedLog(tmp_path / "log", bytes_max=1000)
    for number in range(1000):
        log.write(b"line %04d\n" % number)
    log.close()
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["log", "log.1", "log.2", "log.times"]
    assert all((tmp_path / name).stat().st_size <= 1000 for name in files)
    assert (tmp_path / "log").read_bytes().endswith(b"line 0999\n")
    complete = b"".join((tmp_path / name).read_bytes() for name in reversed(files[:3]))
    assert complete == b"".join(b"line %04d\n" % number for number in range(1000 - len(complete) // 10, 1000))


def test_a_log_goes_on_where_an_earlier_agent_left_it(tmp_path: Path) -> None:
    for line in (b"one\n", b"two\n"):
        log = BoundedLog(tmp_path / "log")
        log.write(line)
        log.close()
    assert (tmp_path / "log").read_text() == "one\ntwo\n"


def test_a_full_disk_costs_lines_and_not_the_trainer(tmp_path: Path) -> None:
    """/dev/full refuses every write, like a full disk."""
    (tmp_path / "log").symlink_to("/dev/full")
    log = BoundedLog(tmp_path / "log")
    log.write(b"twelve bytes")
    log.write(b"12345678")
    assert log.dropped_bytes == 20
    log.close()


def test_output_is_read_on_when_looking_at_it_fails(tmp_path: Path) -> None:
    reader, writer = os.pipe()

    def fails(lines: list[str]) -> None:
        raise RuntimeError("a bug")

    drain = Drain(reader, BoundedLog(tmp_path / "log"), fails, name="test")
    for number in range(1000):
        os.write(writer, b"%d\n" % number)
    os.close(writer)
    assert drain.join(HANG_S)
    assert drain.tail() == [str(number) for number in range(1000 - LINES_KEPT, 1000)]


@given(
    st.lists(st.text(alphabet="aé€ ", min_size=1, max_size=8), min_size=1),
    st.integers(1, 5),
    st.sampled_from(["\n", "\r", "\r\n"]),
)
def test_lines_come_out_complete_however_the_bytes_were_cut(texts: list[str], size: int, ending: str) -> None:
    data = "".join(text + ending for text in texts).encode()
    lines = Lines()
    found = [line for start in range(0, len(data), size) for line in lines.feed(data[start : start + size])]
    assert found + lines.end() == texts


def test_a_line_without_end_is_cut_and_bounded() -> None:
    lines = Lines()
    found = [line for _ in range(100) for line in lines.feed(b"x" * 1000)]
    assert found
    assert all(len(line) <= LINE_BYTES_MAX for line in found)


def test_an_index_tells_from_which_byte_on_a_log_was_written_since_a_moment(tmp_path: Path) -> None:
    moments = iter([1000.0, 1003.0, 1004.9, 1600.2, 1601.0, 1900.0])
    log = BoundedLog(tmp_path / "log", now_s=lambda: next(moments))
    for text in (b"a\n", b"b\n", b"c\n", b"d\n", b"e\n", b"f\n"):
        log.write(text)
    log.close()
    index = (tmp_path / "log.times").read_text()
    assert index == "1000 0\n1600 6\n1900 10\n"
    complete = (tmp_path / "log").read_bytes()
    since = {after_s: offset_since(index, after_s) for after_s in (0, 1005, 1006, 1601, 1606, 1900, 1906)}
    assert {at: complete[offset:] if offset is not None else None for at, offset in since.items()} == {
        0: complete,
        1005: complete,
        1006: b"d\ne\nf\n",
        1601: b"d\ne\nf\n",
        1606: b"f\n",
        1900: b"f\n",
        1906: None,
    }


def test_the_index_of_a_log_begins_anew_with_each_file_and_where_the_clock_was_set_back(
    tmp_path: Path,
) -> None:
    moments = iter([1000.0, 1010.0, 500.0])
    log = BoundedLog(tmp_path / "log", bytes_max=8, now_s=lambda: next(moments))
    log.write(b"12345678")
    log.write(b"9\n")
    log.write(b"10\n")
    log.close()
    assert (tmp_path / "log.times").read_text() == "1010 0\n500 2\n"
    assert offset_since("garbled\n12 x\n\n1000 7\n10", 990) == 7
