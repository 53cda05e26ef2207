"""`prime-train status` with a selection of runs."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.app.home import Home
from prime_train.buckets.keys import METRICS_EVIDENCE, NO_IDENTITY, evidence_key
from prime_train.buckets.open import open_bucket
from prime_train.clock import wall_s
from prime_train.exit_codes import Exit
from prime_train.outputs.results.numbers import AttemptResults, ResultSource, number
from prime_train.runs.breaker import listen
from prime_train.runs.run import RunState
from tests.builders import new_attempt, run, spec
from tests.cli.documented import check
from tests.cli.inside import Inside


@pytest.fixture
def shell(tmp_path: Path) -> Inside:
    shell = Inside(tmp_path)
    store, now_s = Home(shell.home, {}).store(), wall_s()
    for at, (name, tags) in enumerate(
        (("new", ("paper",)), ("older", ("paper", "ablation")), ("oldest", ()))
    ):
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


def test_a_provider_that_does_not_answer_the_watchers_is_shown_by_status_and_doctor(shell: Inside) -> None:
    store = Home(shell.home, {}).store()
    now_s = store.now_s()
    for version, at_s in enumerate((now_s - 720, now_s)):
        watch, _ = listen(store.watch(), canary=True, silent_s={}, active={}, now_s=at_s, unlisted=["runpod"])
        assert store.save_watch(replace(watch, version=version + 1), version=version)
    said = "the list of machines at runpod could not be read for 12 min"
    assert said[1:] in " ".join(shell.ok("status").split())
    doctor = shell.run("doctor")
    assert f"wrong  watching runpod: {said}" in doctor.stdout
    assert doctor.returncode == Exit.FINDINGS


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


def with_criteria(shell: Inside, state: RunState, metrics: str) -> None:
    wanted = {"loss_below": 3.2, "reward_above": 0.6, "tokens_per_s_min": 1000}
    judged = run(
        state,
        run_id="judged-aaaaa",
        spec=spec(name="judged", success=wanted, trainer={"progress": {"file": "progress.jsonl"}}),
    )
    home = Home(shell.home, {})
    assert home.store().create(judged)
    home.make_bucket()
    home.bucket().put(evidence_key("judged-aaaaa", 1, METRICS_EVIDENCE), metrics.encode())


def test_the_criteria_of_a_run_that_is_over_are_judged_by_the_last_values_of_its_metrics(
    shell: Inside,
) -> None:
    rows = [
        '{"step": 1, "loss": 9, "reward": 0.1, "tokens_per_s": 5}',
        '{"step": 2, "loss": 2.5, "reward": 0.5}',
        '{"step": 3, "loss": NaN}',
    ]
    with_criteria(shell, RunState.SUCCEEDED, "\n".join(rows) + "\n")
    row = json.loads(shell.ok("status", "judged", "--json"))
    check("status RUN", row)
    assert [
        (one["name"], one["wanted"], one["seen"], one["step"], one["outcome"]) for one in row["success"]
    ] == [
        ("loss_below", 3.2, None, 3, "not met"),
        ("reward_above", 0.6, 0.5, 2, "not met"),
        ("tokens_per_s_min", 1000.0, 5.0, 1, "not met"),
    ]
    assert row["state"] == "succeeded"
    shown = shell.ok("status", "judged")
    assert "loss below 3.2" in shown
    assert "not met: 0.5 at step 2" in shown
    assert [one["success"] for one in json.loads(shell.ok("status", "--json"))] == [None] * 4


def test_a_criterion_without_a_value_is_unknown_and_never_met(shell: Inside) -> None:
    with_criteria(shell, RunState.FAILED, '{"step": 1, "reward": 0.7}\n')
    found = {
        one["name"]: (one["outcome"], one["why"])
        for one in json.loads(shell.ok("status", "judged", "--json"))["success"]
    }
    nothing = ("unknown", "there is no such value in the metrics")
    assert found == {"loss_below": nothing, "reward_above": ("met", ""), "tokens_per_s_min": nothing}


def test_the_criteria_of_a_bucket_that_is_away_are_unknown_with_the_reason(shell: Inside) -> None:
    with_criteria(shell, RunState.SUCCEEDED, '{"step": 1, "loss": 1}\n')
    (shell.home / "bucket").rename(shell.here / "elsewhere")
    found = json.loads(shell.ok("status", "judged", "--json"))["success"]
    assert {one["outcome"] for one in found} == {"unknown"}
    assert "the metrics cannot be read: " in found[0]["why"]


def test_a_run_that_is_not_over_is_not_judged(shell: Inside) -> None:
    with_criteria(shell, RunState.TRAINING, '{"step": 1, "loss": 1}\n')
    assert json.loads(shell.ok("status", "judged", "--json"))["success"] is None


def test_a_section_without_a_criterion_is_refused(shell: Inside) -> None:
    shell.write("bad.yaml", "name: bad\ntrainer: {command: python t.py}\nbudget: {usd: 5}\nsuccess: {}\n")
    assert (
        "success: names no criterion; set loss_below, reward_above or tokens_per_s_min"
        in shell.run("validate", "bad.yaml").stdout
    )


def test_the_results_of_steps_after_training_are_shown_with_the_step_that_failed_on_every_display(
    shell: Inside,
) -> None:
    home = Home(shell.home, {})
    steps = [
        {"name": "evaluate", "run": "x", "evaluate_every": 10},
        {"name": "publish", "run": "y"},
        {"name": "tidy", "run": "z"},
    ]
    failed = "publish failed: it ended with code 3: <b>no token</b>"
    first, last = (
        new_attempt(1, RunState.STOPPED),
        new_attempt(2, RunState.TRAINING, identity="b" * 16, resumed_step=20),
    )
    made = run(
        RunState.TRAINING,
        run_id="steps-aaaaa",
        spec=spec(name="steps", after=steps),
        attempts=(first, last),
        attempt=2,
    )
    made = replace(made, state=RunState.FINISHING, trained_step=40, after_done=2, after_failed=failed)
    assert home.store().create(made)
    by_attempt = {
        (1, NO_IDENTITY): [
            number("f1", 0.2, ResultSource.EVALUATION, step=20),
            number("lost", 9.0, ResultSource.EVALUATION, step=30),
        ],
        (2, "b" * 16): [
            number("f1", 0.3, ResultSource.EVALUATION, step=30),
            number("accuracy", 0.5, ResultSource.AFTER, by="evaluate", step=40),
        ],
    }
    bucket = open_bucket(home.bucket_url, make=True)
    for (attempt, identity), numbers in by_attempt.items():
        results = AttemptResults(run="steps-aaaaa", attempt=attempt, identity=identity).with_numbers(numbers)
        bucket.put(results.key, results.data)
    shown = shell.ok("status", "steps")
    assert "2 of 3 done; publish failed: it ended with code 3" in shown
    assert "left: tidy" in shown
    assert "0.5 at step 40 (evaluate)" in shown
    assert "0.3 at step 30 (evaluation)" in shown
    row = json.loads(shell.ok("status", "steps", "--json"))
    check("status", [row])
    assert row["after"] == {"trained": True, "done": 2, "failed": failed, "left": ["tidy"]}
    assert [(one["name"], one["value"]) for one in row["results"]] == [("accuracy", 0.5), ("f1", 0.3)]
    told = shell.ok("diagnose", "steps")
    assert "a step after training failed" in told
    assert "prime-train logs steps-aaaaa" in told
    page = shell.here / "page.html"
    shell.ok("page", "steps", "--out", str(page))
    html = page.read_text()
    assert "0.5 at step 40 (evaluate)" in html
    assert "no token&lt;/b&gt;" in html


def test_the_tags_of_a_run_are_shown_and_a_bad_one_is_reported_with_its_line(shell: Inside) -> None:
    assert "ablation" in shell.ok("status", "older")
    shell.write("bad.yaml", "name: bad\ntrainer: {command: python t.py}\nbudget: {usd: 5}\ntags: [Paper 2]\n")
    output = shell.run("validate", "bad.yaml").stdout
    assert "bad.yaml:4:8: error PT013: tags[0]: must be a word of at most 32 lower-case letters" in output


def test_a_run_that_cannot_be_read_is_named_by_status_and_doctor_and_hides_no_other(shell: Inside) -> None:
    with closing(sqlite3.connect(shell.home / "control.sqlite")) as sql, sql:
        sql.execute(
            "UPDATE runs SET run = json_set(run, '$.spec.trainer.brand_new', 1) WHERE run_id = 'older-aaaaa'"
        )
    why = "the record of run older-aaaaa cannot be read: spec.trainer.brand_new: "
    assert why in " ".join(shell.ok("status").split())
    listed = shell.run("status", "--json")
    assert [row["name"] for row in json.loads(listed.stdout)] == ["new", "oldest"]
    assert f"warning: {why}" in listed.stderr
    for name in ("older-aaaaa", "older"):
        for options in ((), ("--json",)):
            one = shell.run("status", name, *options)
            assert (one.returncode, one.stdout) == (Exit.EXTERNAL_REFUSED, "")
            assert why in one.stderr
            assert "use the version of prime-train that wrote it, or a newer one" in one.stderr
    doctor = shell.run("doctor")
    assert doctor.returncode == Exit.FINDINGS
    assert f"wrong  store: {why}" in doctor.stdout
