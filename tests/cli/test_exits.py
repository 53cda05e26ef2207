"""Exit codes of the command, and that it never prints a traceback unless requested."""

import signal
import subprocess

import pytest

from prime_train.errors import NoCapacity, PermanentError, TemporaryError, UsageError
from prime_train.exit_codes import Exit
from prime_train.runs.run import Event, IllegalMove, RunState
from prime_train.terminal.exits import guarded
from tests.cli.shell import PROGRAM, Shell
from tests.waiting import HANG_S


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (UsageError("no such run", fix="look"), Exit.USAGE, "no such run\n  fix: look"),
        (UsageError("later", code=Exit.EXTERNAL_FAILED), Exit.EXTERNAL_FAILED, "later"),
        (TemporaryError("busy"), Exit.EXTERNAL_FAILED, "busy (it may work later)"),
        (NoCapacity("none left"), Exit.EXTERNAL_FAILED, "none left"),
        (PermanentError("forbidden"), Exit.EXTERNAL_REFUSED, "forbidden"),
        (
            IllegalMove("a-1", RunState.SUCCEEDED, Event.RESUME),
            Exit.USAGE,
            "run a-1 is succeeded: resume is not possible in this state",
        ),
        (
            FileNotFoundError(2, "No such file or directory", "a/b"),
            Exit.EXTERNAL_REFUSED,
            "a/b: No such file",
        ),
        (ModuleNotFoundError("no", name="fastapi"), Exit.EXTERNAL_REFUSED, "fastapi is not installed"),
        (KeyError("x"), Exit.BUG, "this is a bug in prime-train: KeyError: 'x'"),
        (KeyboardInterrupt(), Exit.INTERRUPTED, "interrupted"),
    ],
)
def test_each_kind_of_error_has_its_exit_code(
    error: BaseException, code: Exit, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def verb() -> None:
        raise error

    with pytest.raises(SystemExit) as left:
        guarded(verb)()
    assert left.value.code == code
    output = capsys.readouterr().err
    assert words in output
    assert "Traceback" not in output


def test_a_bug_shows_where_it_is_when_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    def verb() -> None:
        raise KeyError("x")

    monkeypatch.setenv("PRIME_TRAIN_DEBUG", "1")
    with pytest.raises(KeyError):
        guarded(verb)()


@pytest.mark.parametrize(("returned", "code"), [(None, 0), (Exit.OK, 0), (Exit.FINDINGS, 1)])
def test_what_a_verb_returns_is_its_exit_code(returned: Exit | None, code: int) -> None:
    with pytest.raises(SystemExit) as left:
        guarded(lambda: returned)()
    assert left.value.code == code


@pytest.mark.parametrize(
    "args", [["nope"], ["validate", "--nope", "a"], ["run"], ["logs", "a", "--lines", "many"]]
)
def test_a_wrong_call_is_a_usage_error(shell: Shell, args: list[str]) -> None:
    done = shell.run(*args)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_help_lists_every_verb_and_version_is_reported(shell: Shell) -> None:
    output = shell.ok("--help")
    verbs = [
        "init",
        "validate",
        "lint",
        "rules",
        "verify-model",
        "memory",
        "cost",
        "find",
        "run",
        "status",
        "logs",
        "profile",
        "ssh",
        "checkpoints",
        "stop",
        "resume",
        "watch",
        "serve",
        "demo",
        "schema",
        "config",
        "models",
    ]
    assert all(f"\n  {verb} " in output for verb in verbs)
    assert "..." not in output.split("Runs:")[1]
    assert shell.ok("--version").startswith("prime-train ")


def test_ctrl_c_leaves_with_130_and_a_word(shell: Shell) -> None:
    with shell.started("status", "--watch", until="There are no runs yet") as process:
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG_S) == 130
    assert "interrupted" in shell.output
    assert "Traceback" not in shell.output


def test_a_reader_that_leaves_early_is_no_error(shell: Shell) -> None:
    line = f"{PROGRAM} schema | head -c 10; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=shell.here,
        env=shell.env,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.stdout == '{\n  "$sche'
    assert "Traceback" not in done.stderr
    assert "Error" not in done.stderr


def test_a_home_that_cannot_be_made_is_reported_plainly(shell: Shell) -> None:
    shell.write("taken", "")
    done = shell.run("status", PRIME_TRAIN_HOME=str(shell.here / "taken" / "home"))
    assert done.returncode == 4
    assert "set PRIME_TRAIN_HOME" in done.stderr
