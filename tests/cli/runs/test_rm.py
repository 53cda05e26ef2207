"""`prime-train rm`: ended runs are archived, and nothing of them is lost."""

from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.app.home import Home
from prime_train.clock import wall_s
from prime_train.runs.change import resumed
from prime_train.runs.run import Orphan, RunState
from tests.builders import run, spec
from tests.cli.inside import Inside


@pytest.fixture
def shell(tmp_path: Path) -> Inside:
    shell = Inside(tmp_path)
    store = Home(shell.home, {}).store()
    for name, state in (
        ("done", RunState.SUCCEEDED),
        ("broken", RunState.FAILED),
        ("live", RunState.TRAINING),
    ):
        assert store.create(
            replace(run(state), run_id=f"{name}-aaaaa", spec=spec(name=name), created_s=wall_s())
        )
    paid = replace(run(RunState.FAILED), run_id="paid-aaaaa", spec=spec(name="paid"), created_s=wall_s())
    assert store.create(replace(paid, attempts=(replace(paid.attempts[0], ended_s=None),)))
    stray = replace(run(RunState.STOPPED), run_id="stray-aaaaa", spec=spec(name="stray"), created_s=wall_s())
    assert store.create(replace(stray, orphans=(Orphan("pod-9", "pt-stray-aaaaa-e1", 1, 1),)))
    return shell


def names(shell: Inside, *options: str) -> set[str]:
    return {
        line.split()[0].removesuffix("-aaaaa")
        for line in shell.ok("status", *options).splitlines()[1:6]
        if "-aaaaa" in line
    }


def test_an_archived_run_is_left_out_of_the_list_and_is_there_all_the_same(shell: Inside) -> None:
    checkpoint = shell.write("home/bucket/runs/done-aaaaa/manifests/000000000010-e1.json", "{}")
    assert shell.ok("rm", "done", "broken-aaaaa") == "done-aaaaa: archived\nbroken-aaaaa: archived\n"
    assert names(shell) == {"live", "paid", "stray"}
    assert names(shell, "--state", "failed") == {"paid"}
    assert names(shell, "--archived") == {"done", "broken", "live", "paid", "stray"}
    assert "succeeded, archived" in shell.ok("status", "done")
    assert "Only 1 archived runs match. To see them, add --archived." in shell.ok(
        "status", "--state", "succeeded"
    )
    assert "the user archives the run" in shell.ok("logs", "done-aaaaa")
    assert checkpoint.exists()
    shell.ok("rm", "done")
    assert shell.ok("logs", "done").count("the user archives the run") == 1
    assert shell.ok("rm", "--undo", "done") == "done-aaaaa: restored from the archive\n"
    assert names(shell) == {"done", "live", "paid", "stray"}


def test_what_is_still_paid_for_stays_in_sight_and_the_others_are_archived(shell: Inside) -> None:
    done = shell.run("rm", "live", "paid", "stray", "none", "broken")
    assert done.returncode == 2
    assert done.stdout == "broken-aaaaa: archived\n"
    assert (
        "run live-aaaaa is training: only an ended run can be archived\n  fix: prime-train stop live-aaaaa"
        in done.stderr
    )
    for name in ("paid", "stray"):
        assert (
            f"a machine of {name}-aaaaa is still being paid for, so the run must stay listed" in done.stderr
        )
    assert "there is no run none" in done.stderr
    assert "4 of 5 runs could not be archived" in done.stderr
    assert names(shell) == {"done", "live", "paid", "stray"}


def test_a_run_that_goes_on_is_out_of_the_archive(shell: Inside) -> None:
    shell.ok("rm", "broken")
    store = Home(shell.home, {}).store()
    record = store.load("broken-aaaaa")
    assert record is not None
    assert record.run.archived
    assert store.save(resumed(record.run, store.now_s()))
    assert "broken" in names(shell)
