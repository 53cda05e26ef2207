"""Two runs are compared on the command line by the numbers in the bucket, and the exit code says whether what
is required is met.
"""

import json
from collections.abc import Sequence

import pytest

from prime_train.app.home import Home
from prime_train.buckets.keys import METRICS_STREAM, piece_key
from prime_train.runs.run import Origin, RunState
from tests.builders import run, spec
from tests.cli.documented import check
from tests.cli.inside import Inside


@pytest.fixture
def shell(shell: Inside) -> Inside:
    Home(shell.home, {}).make_bucket()
    return shell


def ended(
    shell: Inside, run_id: str, loss: str, *, require: Sequence[str] = (), base: str | None = None
) -> None:
    home = Home(shell.home, {})
    branch = "change" if base else "main"
    origin = Origin(
        "acme/models", "c" * 40, "configs/a.yaml", run_id, 1 if base else None, branch=branch, base=base or ""
    )
    state, wanted = RunState.SUCCEEDED, spec(name=run_id.rpartition("-")[0], require=list(require))
    made = run(
        state, run_id=run_id, spec=wanted, commit="c" * 40, origin=origin if base is not None else None
    )
    assert home.store().create(made)
    key = piece_key(run_id, 1, made.attempts[0].identity, METRICS_STREAM, 1)
    home.bucket().put(key, f"step,time_s,loss\n1,1,9\n7,1,{loss}\n".encode())


def test_a_run_is_compared_with_the_base_branch_and_what_is_not_met_is_an_exit_code(shell: Inside) -> None:
    ended(shell, "old-aaaaa", "2.0", base="")
    ended(shell, "new-aaaaa", "2.5", base="main", require=["loss <= base * 1.02", "acc > 0"])
    done = shell.run("compare", "new-aaaaa")
    assert done.returncode == 1
    for words in (
        "Base: old-aaaaa, step",
        "at commit cccccccccccc",
        "One run is compared with one run",
        "+0.5 (+25.0%)",
        "(2.04)",
    ):
        assert words in done.stdout
    assert "acc > 0: the run has no result named acc; it has loss." in done.stdout
    done = shell.run("compare", "new-aaaaa", "--json")
    check("compare", json.loads(done.stdout))
    found = json.loads(done.stdout)
    assert (found["run"]["run"], found["base"]["run"], found["outcome"]) == (
        "new-aaaaa",
        "old-aaaaa",
        "not met",
    )
    assert [one["outcome"] for one in found["requirements"]] == ["not met", "not met"]


def test_what_is_required_but_cannot_be_judged_yet_is_an_exit_code_too(shell: Inside) -> None:
    ended(shell, "first-aaaaa", "2.5", base="main", require=["loss <= base"])
    done = shell.run("compare", "first-aaaaa")
    assert done.returncode == 1
    assert "there is no base run to compare with" in done.stdout


def test_any_two_runs_are_compared_by_name(shell: Inside) -> None:
    ended(shell, "one-aaaaa", "2.0", require=["loss <= base"])
    ended(shell, "two-aaaaa", "nan")
    assert shell.run("compare", "one-aaaaa", "two-aaaaa").returncode == 1, (
        "a number that is not finite is no limit"
    )
    assert "not finite" in shell.ok("compare", "two-aaaaa", "one-aaaaa")
    alone = shell.run("compare", "one-aaaaa")
    assert alone.returncode == 2
    assert "was not launched from a branch on GitHub" in alone.stderr


def test_a_run_without_results_is_named(shell: Inside) -> None:
    assert (
        Home(shell.home, {})
        .store()
        .create(run(RunState.TRAINING, run_id="busy-aaaaa", spec=spec(name="busy")))
    )
    done = shell.run("compare", "busy-aaaaa", "busy-aaaaa")
    assert done.returncode == 2
    assert "busy-aaaaa has no results: it has not ended" in done.stderr
