"""Files that a trainer appends rows to."""

import pytest

from prime_train.outputs.rows import loses_rows, steps_of, up_to

TABLE = b"step,acc\n10,0.1\n20,0.2\n30,0.3\n"
OBJECTS = b'{"global_step": 10}\n\n{"global_step": 20.0}\n'


def test_rows_of_later_steps_are_left_out() -> None:
    assert up_to("eval.csv", TABLE, 20) == b"step,acc\n10,0.1\n20,0.2\n"
    assert up_to("eval.tsv", TABLE.replace(b",", b"\t"), 9) == b"step\tacc\n"
    assert up_to("eval.jsonl", OBJECTS, 10) == b'{"global_step": 10}\n\n'


def test_rows_of_a_run_that_counts_epochs_are_told_by_their_epoch() -> None:
    table = b"epoch,step,acc\n4,500,0.1\n5,1000,0.2\n6,1500,0.3\n"
    assert up_to("eval.csv", table, 5, epoch=5) == b"epoch,step,acc\n4,500,0.1\n5,1000,0.2\n"
    assert up_to("eval.csv", b"step,acc\n500,0.1\n", 5, epoch=5) is None, "steps are of another unit"


def test_a_row_that_was_read_while_it_was_written_is_left_out() -> None:
    assert up_to("eval.csv", TABLE + b"3", 100) == TABLE
    assert up_to("eval.jsonl", OBJECTS + b'{"global_', 100) == OBJECTS


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("eval.csv", b"epoch,acc\n1,0.1\n"),
        ("eval.csv", b"step,note\n1,x\nlater,y\n"),
        ("eval.csv", b'step,note\n1,"two\nlines"\n'),
        ("eval.csv", b""),
        ("eval.jsonl", b'{"loss": 1}\n'),
        ("eval.jsonl", b"[" * 100_000 + b"\n"),
        ("eval.csv", b"step\n\xff\n"),
        ("eval.txt", b"step 1\n"),
        ("eval.bin", b"step,acc\n1,2\n"),
    ],
)
def test_where_the_steps_of_rows_cannot_be_told_nothing_is_cut(path: str, data: bytes) -> None:
    assert steps_of(path, data) is None
    assert up_to(path, data, 1) is None


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (TABLE, b"step,acc\n40,0.4\n50,0.5\n60,0.6\n70,0.7\n", True),
        (TABLE, TABLE + b"40,0.4\n", False),
        (TABLE, b"step,acc\n10,0.1\n20,0.7\n", False),
        (TABLE, b"step,acc\n", True),
        (TABLE, b"step,acc\n10,0.5\n", False),
    ],
    ids=[
        "began anew",
        "went on",
        "its last row is made again",
        "nothing yet",
        "trained again from the start",
    ],
)
def test_rows_of_steps_before_its_own_first_one_are_what_a_file_lacks(
    before: bytes, after: bytes, expected: bool
) -> None:
    assert loses_rows("eval.csv", before, after) is expected


@pytest.mark.parametrize(
    ("after", "expected"), [(b"c\n", True), (b"a\nb\n", False), (b"x\ny\nz\nw\n", False)]
)
def test_without_steps_a_smaller_file_that_begins_otherwise_lacks_rows(after: bytes, expected: bool) -> None:
    assert loses_rows("notes.txt", b"a\nb\nc\n", after) is expected


@pytest.mark.parametrize("step", ["inf", "-inf", "nan", "1e999", "1" + 400 * "0"])
def test_an_infinite_step_cuts_nothing_and_stops_nothing(step: str) -> None:
    for path, data in (
        ("eval.csv", f"step,acc\n1,0.1\n{step},0.2\n".encode()),
        ("eval.jsonl", f'{{"step": "{step}"}}\n'.encode()),
    ):
        assert (steps_of(path, data), up_to(path, data, 1)) == (None, None)
        assert loses_rows(path, data, data[:-9]) is False
    for number in ("Infinity", "NaN", "1e999", "1" + 400 * "0"):
        assert steps_of("eval.jsonl", f'{{"step": {number}}}\n'.encode()) is None
