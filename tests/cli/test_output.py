"""The only way to the terminal: text written by a machine or by other people has no effect there."""

import io
import logging

import pytest
from rich.table import Table
from rich.text import Text

from prime_train.app.logs import FORMAT, OneLine
from prime_train.buckets.keys import evidence_key
from prime_train.buckets.open import open_bucket
from prime_train.checks.report.github import github
from prime_train.runs.run import RunState
from prime_train.runs.wire import Heartbeat, JobExit, Phase
from prime_train.spec.causes import Cause
from prime_train.spec.finding import Finding
from prime_train.stores.sqlite.store import SqliteStore
from prime_train.terminal.console import console
from prime_train.terminal.output import SafeStream
from prime_train.text.safe import defused, lines_of_text, neutralized, without_commands
from tests import builders
from tests.builders import RUN_ID
from tests.cli.shell import Shell
from tests.cli.terminal import terminal

CLIPBOARD, TITLE, CLEAR, HIDE, LINK = (
    "\x1b]52;c;ZXZpbA==\x07",
    "\x1b]0;owned\x07",
    "\x1b[2J\x1b[H",
    "\x1b[8m",
    "\x1b]8;;http://evil\x1b\\\\",
)
C1, BIDI, BELL = "\x9b31m", "\u202egnp.exe\u202c", "\x07\x08"
HOSTILE = (
    f"{CLIPBOARD}{TITLE}{CLEAR}{HIDE}{LINK}{C1}{BIDI}{BELL}[link=http://evil]x[/link][bold "
    "red]y ::error::z ##[error]z"
)
DOING = ("\x1b]", "\x1b[2J", "\x1b[8m", "\x1b[H", "\x9b", "\u202e", "\x07", "\x08", "\x00")
"""Sequences that a terminal would act on and that no command prints."""


def does_nothing(seen: str) -> bool:
    return not [bytes(part, "utf-8") for part in DOING if part in seen]


def opened(*, in_job: bool = False) -> tuple[SafeStream, io.BytesIO]:
    raw = io.BytesIO()
    door = SafeStream(raw, "utf-8", "backslashreplace", newline="\n", write_through=True)
    door.in_job = in_job
    return door, raw


def test_what_passes_the_door_does_nothing_and_can_still_be_read() -> None:
    door, raw = opened()
    assert door.write(f"größe 模型 🙂\tok\n10%\r20%\r\n{HOSTILE}\ud800") > 0
    seen = raw.getvalue().decode()
    assert seen.startswith("größe 模型 🙂\tok\n10%\n20%\n")
    assert does_nothing(seen)
    assert "\\x1b]52;c;" in seen
    assert "\\ud800" in seen


def test_a_console_takes_nobodys_text_for_markup_and_keeps_its_own_colours() -> None:
    door, raw = opened()
    screen = console(file=door, force_terminal=True, color_system="standard", width=400)
    table = Table(title=HOSTILE)
    table.add_column(HOSTILE)
    table.add_row(HOSTILE)
    screen.print(table)
    screen.print(HOSTILE, Text("good", style="green"), Text("there", style="link http://a/\x1b]0;b\x07"))
    seen = raw.getvalue().decode()
    assert "\x1b[32mgood\x1b[0m" in seen
    assert "[link=http://evil]x[/link][bold red]y" in seen
    assert does_nothing(seen)


def test_a_log_line_of_a_job_is_no_command_for_githubs_runner() -> None:
    door, raw = opened(in_job=True)
    door.write("::set-env name=A::b\n  ::error::c\nd ##[group]e\nf::g\n")
    assert raw.getvalue().decode() == ": :set-env name=A::b\n  : :error::c\nd ## [group]e\nf::g\n"
    assert without_commands("##[error]x") == "## [error]x"
    assert "##[" not in github([Finding("PT030", "a ##[error]b", "x.yaml")])


@pytest.mark.parametrize("before", ["\u00a0", "\u3000", "\u2003 ", "\t\ufe0f", "\u115f"])
def test_no_space_that_githubs_runner_trims_or_passes_over_hides_a_command_from_us(before: str) -> None:
    door, raw = opened(in_job=True)
    door.write(f"a\n{before}::add-mask::b\n{before}:\ufe0f:debug::c #\u034f#[error]d\n")
    assert (
        raw.getvalue().decode() == f"a\n{before}: :add-mask::b\n{before}: \ufe0f:debug::c #\u034f# [error]d\n"
    )


def test_a_table_in_a_job_holds_no_command_for_githubs_runner() -> None:
    door, raw = opened(in_job=True)
    table = Table.grid()
    table.add_row("::set-output name=run::mine", "results/##[set-output name=run;]mine")
    console(file=door, width=200).print(table)
    assert ": :set-output" in raw.getvalue().decode()
    assert "## [set-output" in raw.getvalue().decode()


def test_a_long_line_of_blanks_is_looked_through_at_once() -> None:
    blanks = "\u00a0" * 2**20
    assert without_commands(f"{blanks}::") == f"{blanks}: :"
    assert without_commands("\n" * 2**20) == "\n" * 2**20


def test_a_record_of_the_log_is_one_line_whatever_is_in_it() -> None:
    record = logging.LogRecord("x", logging.INFO, "", 0, "step %s", (f"1\n2026 ERROR forged{HOSTILE}",), None)
    output = OneLine(FORMAT).format(record)
    assert "\n" not in output
    assert does_nothing(output)


def test_what_a_machine_says_in_a_heartbeat_is_a_line_of_the_same_length() -> None:
    output = f"a\nb\r\t{HOSTILE}"[:200]
    heartbeat = Heartbeat(
        run=RUN_ID,
        attempt=1,
        seq=1,
        phase=Phase.TRAIN,
        note=output,
        sick=Cause.NOT_FINITE,
        sick_detail=output,
    )
    ended = JobExit(cause=Cause.TRAINER_ERROR, detail=output, log_tail=f"a\n{output}")
    for text in (heartbeat.note, heartbeat.sick_detail, ended.detail):
        assert len(text) == len(output)
        assert text.startswith("a b  ")
        assert does_nothing(text)
    assert ended.log_tail.startswith("a\na\nb")
    assert Heartbeat.model_validate_json(heartbeat.model_dump_json()) == heartbeat
    assert does_nothing(ended.log_tail)


@pytest.mark.parametrize("text", ["plain", "größe", "模型 🙂", "a\tb"])
def test_ordinary_text_is_left_as_it_is(text: str) -> None:
    assert lines_of_text(text) == neutralized(text, keep="\t") == defused(text, keep="\t") == text


@pytest.mark.parametrize("verb", ["status", "logs", "diagnose"])
def test_a_hostile_machine_moves_nothing_on_a_real_terminal(shell: Shell, verb: str) -> None:
    shell.home.mkdir()
    died = builders.new_attempt(state=RunState.FAILED, cause=Cause.TRAINER_ERROR, detail=HOSTILE)
    store = SqliteStore(shell.home / "control.sqlite")
    store.create(builders.run(RunState.FAILED, attempt=1, attempts=(died,), why=HOSTILE))
    store.close()
    bucket = open_bucket((shell.home / "bucket").as_uri(), make=True)
    bucket.put(
        evidence_key(RUN_ID, 1, "trainer.log"), f"Traceback\n{HOSTILE}\nRuntimeError: {HOSTILE}\n".encode()
    )
    with terminal(shell, verb, RUN_ID, columns=200) as screen:
        code = screen.end()
        assert does_nothing(screen.raw.decode(errors="surrogateescape")), screen.raw
    assert code == 0, screen.seen
    assert "owned" in screen.seen, "it is shown, and does nothing"
