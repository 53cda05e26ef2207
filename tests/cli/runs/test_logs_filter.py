"""`prime-train logs` with a selection of lines, if the machine was this one or no longer exists."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.app.home import Home
from prime_train.buckets.keys import evidence_key
from prime_train.buckets.open import open_bucket
from prime_train.clock import wall_s
from prime_train.runs.change import happened
from prime_train.runs.run import Change, RunState
from tests.builders import run
from tests.cli.inside import Inside
from tests.cli.shell import Shell

POD = "local-0123456789abcdef"


@pytest.fixture
def shell(tmp_path: Path) -> Inside:
    """Return the shell of a run that failed in its second attempt; the machine of the first was lost two
    hours before.
    """
    shell = Inside(tmp_path)
    store, now_s = Home(shell.home, {}).store(), wall_s()
    made = run(RunState.FAILED, attempt=2, created_s=now_s - 10_000)
    first, second = made.attempts
    attempts = (
        replace(first, fenced_s=now_s - 7200, ended_s=now_s - 7100),
        replace(second, fenced_s=now_s - 60, ended_s=now_s - 50),
    )
    queued = run(created_s=now_s - 10_000)
    assert store.create(queued)
    events = (
        happened(replace(made, attempt=1), now_s - 7200, "fenced", "machine lost"),
        happened(made, now_s - 60, "failed", "import error"),
    )
    assert store.save(Change(replace(made, attempts=attempts, version=2), events=events))
    bucket = open_bucket((shell.home / "bucket").as_uri(), make=True)
    for number in (1, 2):
        text = "".join(f"e{number} line {at}\n" for at in range(100))
        bucket.put(evidence_key(made.run_id, number, "trainer.log"), text.encode())
    return shell


def test_an_attempt_is_shown_alone(shell: Inside) -> None:
    output = shell.ok("logs", "tiny-1", "--attempt", "1", "--lines", "2")
    assert "machine lost" in output
    assert "import error" not in output
    assert output.splitlines()[-3:] == ["--- evidence/tiny-1/e1/trainer.log", "e1 line 98", "e1 line 99"]
    assert "e2 line 99" in shell.ok("logs", "tiny-1")


def test_what_is_older_is_left_out_and_a_log_without_times_says_so(shell: Inside) -> None:
    done = shell.run("logs", "tiny-1", "--since", "10m")
    assert "machine lost" not in done.stdout
    assert "import error" in done.stdout
    assert done.stdout.count("e2 line") == 100
    assert "this log has no record of when its lines were written" in done.stderr
    done = shell.run("logs", "tiny-1", "--since", "10m", "--attempt", "1")
    assert done.stdout.splitlines() == ["--- evidence/tiny-1/e1/trainer.log"]
    assert done.stderr == ""


def test_a_text_is_looked_for_as_it_is_spelled_and_a_pattern_in_linear_time(shell: Inside) -> None:
    assert shell.ok("logs", "tiny-1", "--grep", "line 1.", "--lines", "100").splitlines()[1:] == []
    found = shell.ok("logs", "tiny-1", "-E", "--grep", "line 1.", "--lines", "3").splitlines()
    assert found[-3:] == ["e2 line 17", "e2 line 18", "e2 line 19"]
    assert not any("import error" in line for line in found)
    assert "import error" in shell.ok("logs", "tiny-1", "--grep", "error")
    bucket = open_bucket((shell.home / "bucket").as_uri())
    bucket.put(evidence_key("tiny-1", 2, "trainer.log"), b"a" * 100_000 + b"!\n")
    assert "aaa" not in shell.ok("logs", "tiny-1", "-E", "--grep", "^(a+)+$")


def test_what_a_machine_wrote_is_harmless_also_where_it_was_looked_for(shell: Inside) -> None:
    bucket = open_bucket((shell.home / "bucket").as_uri())
    bucket.put(evidence_key("tiny-1", 2, "trainer.log"), b"\x1b]0;title\x07 found\n")
    output = Shell(shell.here).ok("logs", "tiny-1", "--grep", "found")
    assert r"\x1b]0;title\x07 found" in output


def test_lines_on_this_machine_are_chosen_by_the_index_beside_them(shell: Inside) -> None:
    home = Home(shell.home, {})
    record = home.store().load("tiny-1")
    assert record is not None
    logs = shell.home / "pods" / POD / "disk" / "logs"
    logs.mkdir(parents=True)
    attempts = (replace(record.run.attempts[0], pod_id=POD), record.run.attempts[1])
    assert home.store().save(Change(replace(record.run, attempts=attempts, version=3)))
    (logs / "trainer.log").write_text("old\nnew 1\nnew 2\n")
    assert home.local_pods().disk(POD) == logs.parent
    options = ("logs", "tiny-1", "--attempt", "1", "--since", "1h")
    assert "this log has no record of when" in shell.run(*options).stderr
    now_s = int(time.time())
    (logs / "trainer.log.times").write_text(f"{now_s - 7200} 0\n{now_s - 60} 4\n")
    done = shell.run(*options)
    assert done.stdout.splitlines()[-3:] == [f"--- {logs / 'trainer.log'}", "new 1", "new 2"]
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("options", "output"),
    [
        (("--attempt", "3"), "tiny-1 has no attempt 3\n  fix: it has attempts 1 to 2"),
        (("--since", "soon"), "--since: 'soon' is not a duration"),
        (("-E", "--grep", "(a"), "'(a' is not an RE2 regular expression: missing )"),
        (("-E", "--grep", r"(a)\1"), "is not an RE2 regular expression"),
        (("--attempt", "1", "--follow"), "--attempt and --follow cannot be combined"),
    ],
)
def test_a_choice_that_is_none_is_refused(shell: Inside, options: tuple[str, ...], output: str) -> None:
    done = shell.run("logs", "tiny-1", *options)
    assert done.returncode == 2
    assert output in done.stderr
