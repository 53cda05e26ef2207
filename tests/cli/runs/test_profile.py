"""`prime-train profile` as a user calls it, at 80 columns: for a file, a pod on this machine, a rented one,
and kept evidence.
"""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from prime_train.buckets.keys import evidence_key
from prime_train.buckets.open import open_bucket
from prime_train.runs.run import RunState
from prime_train.runs.wire import Saves
from prime_train.spec.spec import RunSpec
from prime_train.status.profile import summarized
from prime_train.stores.sqlite.store import SqliteStore
from prime_train.trainers.prime_rl.profile.steps import page
from tests import builders as b
from tests.cli.rented import rented
from tests.cli.shell import Shell
from tests.fakes.prime import needs_sshd
from tests.trainers.prime_rl.prime_rl_rows import EMPTY, FULL, Pace, rows, timing
from tests.trainers.prime_rl.prime_rl_spec import FOLDER, prime_rl_spec

POD = "local-0123456789abcdef"
TOOLS = Pace(wait=62, train=37, rollouts=timing(10, 60), engines=EMPTY)
INFERENCE = Pace(wait=62, train=37, rollouts=timing(80, 10), engines=FULL)
HERE = f"work/{FOLDER}/metrics.jsonl"


def text(pace: Pace = TOOLS, *, steps: int = 40) -> str:
    return "".join(f"{line}\n" for line in rows(pace, range(1, steps + 1)))


def narrow(shell: Shell, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return shell.run("profile", *words, **({"COLUMNS": "80"} | env))


def stored(shell: Shell, spec: RunSpec) -> Path:
    """Store a run in training on a pod of this machine, and return the pod's disk."""
    made = b.run(RunState.TRAINING, spec=spec)
    shell.home.mkdir()
    assert SqliteStore(shell.home / "control.sqlite").create(
        replace(made, attempts=(replace(made.attempts[0], pod_id=POD),))
    )
    disk = shell.home / "pods" / POD / "disk"
    disk.mkdir(parents=True)
    return disk


def put(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


# ------------------------------------------------------------------------------------------------------------
# a file


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_file_says_what_holds_its_run_up_and_what_to_change(shell: Shell, columns: int) -> None:
    done = narrow(shell, "--file", str(shell.write("m.jsonl", text())), COLUMNS=str(columns))
    assert done.returncode == 0, done.stderr
    output = " ".join(done.stdout.split())
    for words in (
        "their tools and environments take long (sure)",
        "latency-bound",
        "at most 2.6x as fast",
        "wait for batch",
    ):
        assert words in output, done.stdout
    assert max(map(len, done.stdout.splitlines())) <= columns
    assert ("█" in done.stdout) is (columns >= 80)


def test_the_same_as_json(shell: Shell) -> None:
    done = narrow(shell, "--file", str(shell.write("m.jsonl", text(INFERENCE))), "--json", "--steps", "20")
    reported = json.loads(done.stdout)
    diagnosis = reported["diagnosis"]
    assert (diagnosis["bottleneck"], diagnosis["bound"], diagnosis["certainty"]) == (
        "inference",
        "throughput",
        "sure",
    )
    assert diagnosis["critical_path"] == "rollouts"
    assert reported["times"]["steps"] == 20
    assert reported["times"]["parts"]["wait_for_batch"]["median_s"] == 62
    assert reported["advice"][0]["gain"] == 2.0


def test_where_nothing_can_be_concluded_it_says_why_and_leaves_with_1(shell: Shell) -> None:
    done = narrow(shell, "--file", str(shell.write("m.jsonl", text(steps=4))))
    assert done.returncode == 1
    assert "2 steps are too few" in done.stdout
    assert "what to change" not in done.stdout
    garbage = narrow(shell, "--file", str(shell.write("g.jsonl", "a\nb\nc\n")))
    assert garbage.returncode == 1
    assert "3 lines could not be read" in garbage.stdout
    assert "the trainer's metrics do not contain time/wait_for_batch" in " ".join(garbage.stdout.split())


def test_what_is_not_reported_is_named(shell: Shell) -> None:
    done = narrow(shell, "--file", str(shell.write("m.jsonl", text(Pace(wait=62, train=37)))))
    assert "it is unknown whether engines or tools are slow" in " ".join(done.stdout.split())
    assert "kv_cache_usage_perc" in done.stdout


@pytest.mark.parametrize(
    ("words", "output"),
    [
        ((), "no run was given"),
        (("--file", "none.jsonl"), "No such file"),
        (("--file", "."), "Is a directory"),
        (("x", "--steps", "4"), "greater than or equal to 5"),
    ],
)
def test_a_wish_that_cannot_be_met_is_refused(shell: Shell, words: tuple[str, ...], output: str) -> None:
    done = narrow(shell, *words)
    assert done.returncode == 2
    assert output in done.stderr


# ------------------------------------------------------------------------------------------------------------
# a run


def test_the_metrics_of_a_run_are_read_on_its_machine_and_later_in_the_bucket(shell: Shell) -> None:
    disk = stored(shell, prime_rl_spec())
    none = narrow(shell, "tiny-1")
    assert none.returncode == 2
    assert "there are no metrics of tiny-1" in none.stderr

    open_bucket((shell.home / "bucket").as_uri(), make=True).put(
        evidence_key("tiny-1", 1, "metrics.jsonl"), text(INFERENCE).encode()
    )
    kept = narrow(shell, "tiny-1")
    assert "evidence/tiny-1/e1/metrics.jsonl" in "".join(kept.stdout.split())
    assert "the inference engines are full (sure)" in " ".join(kept.stdout.split())

    put(disk / HERE, text())
    here = narrow(shell, "tiny-1")
    assert "their tools and environments take long (sure)" in " ".join(here.stdout.split())


@needs_sshd
def test_the_metrics_of_a_rented_machine_are_read_there(shell: Shell) -> None:
    with rented(shell, prime_rl_spec()) as on:
        on.moved()
        put(on.disk / HERE, text())
        done = narrow(shell, "tiny-1", **on.env)
        assert done.returncode == 0, done.stderr
        assert "from the machine of attempt 1" in done.stdout
        assert "their tools and environments take long (sure)" in " ".join(done.stdout.split())


# ------------------------------------------------------------------------------------------------------------
# other trainers


def progress(count: int) -> str:
    """Return progress lines in which a step takes a second, and every fifth one three."""
    now_s, lines = 1_700_000_000.0, list[str]()
    for step in range(1, count + 1):
        now_s += 3.0 if step % 5 == 0 else 1.0
        lines.append(json.dumps({"step": step, "loss": 0.5, "time": now_s}))
    return "".join(f"{line}\n" for line in lines)


def test_of_another_trainer_its_steps_are_reported_and_that_no_more_is_known(shell: Shell) -> None:
    disk = stored(shell, b.spec(trainer={"progress": {"file": "progress.jsonl"}}))
    put(disk / "work" / "progress.jsonl", progress(60))
    done = narrow(shell, "tiny-1")
    assert done.returncode == 0, done.stderr
    assert "a step takes 1.0 s (median), 3.0 s at the slow end (p90), over 50 steps" in done.stdout
    assert "no more is known" in done.stdout
    reported = json.loads(narrow(shell, "tiny-1", "--json").stdout)
    assert (reported["kind"], reported["steps"], reported["median_s"]) == ("command", 50, 1.0)


def test_of_a_trainer_whose_rows_bear_no_time_nothing_is_invented(shell: Shell) -> None:
    disk = stored(shell, b.spec(trainer={"progress": {"file": "progress.jsonl"}}))
    put(disk / "work" / "progress.jsonl", '{"step": 1}\n{"step": 2}\ngarbage\n{"step": 3, "time": "x"}\n')
    done = narrow(shell, "tiny-1")
    assert done.returncode == 1
    assert "the time of a step is unknown" in done.stdout


def test_what_the_agent_tells_of_saves_and_slow_steps_is_reported_too() -> None:
    record = b.record(b.run(RunState.TRAINING), heartbeat_s=b.T0_S + 160)
    reported = Saves(interval_s=100.0, stall_s=4.0)
    record = replace(
        record,
        lease=replace(record.lease, heartbeat=b.heartbeat(7, step=61, step_slow_s=2.5, saves=reported)),
    )
    found = summarized(record, None)
    assert found.mean_s == pytest.approx(100 / 60)
    assert (found.slow_s, found.save_share) == (2.5, 0.04)
    console = Console(width=80)
    with console.capture() as output:
        console.print(page(found))
    assert "a step takes 1.7 s (mean of the newest attempt), 2.5 s at the slow end (p95)" in output.get()
    assert "saves take 4 % of the time: 4.0 s every 100 s" in output.get()
