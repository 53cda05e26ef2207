"""When a script counts as started: what loads its modules for long is not told to save sooner meanwhile."""

from prime_train.rehearsal.observe import START_S_MAX, first_sign_s
from tests.rehearsal.recorded import Recorder


def test_a_script_has_started_with_its_first_line() -> None:
    made = Recorder()
    made.after(9.0)
    made.line("building the model")
    made.after(1.0)
    made.line("step 1")
    assert first_sign_s(made.recording) == 9.0


def test_a_script_has_started_with_its_first_file() -> None:
    made = Recorder()
    made.after(3.0)
    made.begin("out/log.txt")
    made.after(9.0)
    made.line("step 1")
    assert first_sign_s(made.recording) == 3.0


def test_one_that_says_nothing_counts_as_started_after_a_while() -> None:
    assert first_sign_s(Recorder().recording) == START_S_MAX
