"""`prime-train status` with a selection of runs."""

import json
from pathlib import Path

import pytest

from prime_train.control_plane.wiring.home import Home, wall_s
from tests.builders import run, spec
from tests.cli.inside import Inside


@pytest.fixture
def shell(tmp_path: Path) -> Inside:
    shell = Inside(tmp_path)
    store, now_s = Home(shell.home, {}).store(), wall_s()
    for at, (name, tags) in enumerate((("new", ("paper",)), ("older", ("paper", "ablation")), ("oldest", ()))):
        made = run(run_id=f"{name}-aaaaa", spec=spec(name=name, tags=tags), created_s=now_s - at * 86400 - 60)
        assert store.create(made)
    return shell


def names(shell: Inside, *options: str) -> list[str]:
    return [row["name"] for row in json.loads(shell.ok("status", "--json", *options))]


def test_runs_are_chosen_by_state_name_tag_age_and_number(shell: Inside) -> None:
    assert names(shell) == ["new", "older", "oldest"]
    assert names(shell, "--tag", "paper") == ["new", "older"]
    assert names(shell, "--tag", "paper", "--tag", "ablation") == ["older"]
    assert names(shell, "--name", "old*") == ["older", "oldest"]
    assert names(shell, "--since", "2d") == ["new", "older"]
    assert names(shell, "--state", "training", "--state", "failed") == []
    assert names(shell, "--state", "active", "--limit", "2") == ["new", "older"]


def test_a_table_that_is_cut_says_how_many_it_leaves_out(shell: Inside) -> None:
    output = shell.ok("status", "--limit", "1")
    assert "new-aaaaa" in output
    assert "oldest-aaaaa" not in output
    assert "2 older runs are not shown; --limit 3 shows them" in output
    assert "not shown" not in shell.ok("status")


def test_a_choice_that_means_no_run_says_so_and_not_that_there_are_none(shell: Inside) -> None:
    assert "No run matches these options" in shell.ok("status", "--tag", "none")


@pytest.mark.parametrize(
    ("options", "output"),
    [
        (("--state", "running"), "'running' is not a run state\n  fix: use one of queued"),
        (("--since", "yesterday"), "--since: 'yesterday' is not a duration; write a number with a unit"),
        (("new", "--tag", "paper"), "RUN cannot be combined with options that filter all runs"),
        (("--limit", "0"), "greater than or equal to 1"),
    ],
)
def test_a_choice_that_is_none_is_refused(shell: Inside, options: tuple[str, ...], output: str) -> None:
    done = shell.run("status", *options)
    assert done.returncode == 2
    assert output in done.stderr


def test_the_tags_of_a_run_are_shown_and_a_bad_one_is_reported_with_its_line(shell: Inside) -> None:
    assert "ablation" in shell.ok("status", "older")
    shell.write("bad.yaml", "name: bad\ntrainer: {command: python t.py}\nbudget: {usd: 5}\ntags: [Paper 2]\n")
    output = shell.run("validate", "bad.yaml").stdout
    assert "bad.yaml:4:8: error PT013: tags[0]: must be a word of at most 32 lower-case letters" in output
