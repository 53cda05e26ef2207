"""`prime-train resume`: larger limits, another config with the current code, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.buckets.keys import code_key
from prime_train.buckets.open import open_bucket
from prime_train.checkpoints.manifest import Manifest
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.run import Run, RunState, Totals
from prime_train.spec.causes import Cause
from prime_train.stores.sqlite.store import SqliteStore
from tests import builders as b
from tests.cli.inside import Inside
from tests.cli.shell import CONFIG

SPENT = Totals(attempts=2, paid_s=9000, useful_s=7200, usd=4.99)


@pytest.fixture
def shell(tmp_path: Path) -> Inside:
    return Inside(tmp_path)


def failed(shell: Inside, **changes: object) -> Run:
    """Store a run of `CONFIG`, as far as it applies, that failed at an import."""
    spec = b.spec(name="small", trainer={"steps": 20}, budget={"usd": 5.0, "hours": 2.0})
    run = replace(b.run(RunState.FAILED), run_id="small-1", spec=spec, cause=Cause.IMPORT_ERROR, **changes)  # type: ignore[arg-type]  # its fields
    shell.home.mkdir(exist_ok=True)
    assert SqliteStore(shell.home / "control.sqlite").create(run)
    return run


@pytest.mark.parametrize(
    ("is_chosen", "start"), [(True, "step 10"), (False, "its newest checkpoint, if there is one")]
)
def test_what_a_run_resumes_from_is_named_only_if_it_is_known(
    shell: Inside, is_chosen: bool, start: str
) -> None:
    failed(shell, resume=ResumePoint(step=10, attempt=0, key="k"), resume_chosen=is_chosen)
    assert f"small-1 is queued again and will resume from {start}\n" in shell.ok("resume", "small-1")


def with_checkpoint(shell: Inside, step: int) -> None:
    (shell.home / "bucket").mkdir(exist_ok=True)
    bucket = open_bucket((shell.home / "bucket").as_uri())
    file = b.stored_file("weights", step, size=4)
    manifest = Manifest(
        run="small-1", attempt=1, step=step, created_s=1, folder=f"step_{step}", files=(file,)
    )
    bucket.put(f"runs/small-1/blobs/{b.digest(step)}", b"good")
    bucket.put(manifest.key, manifest.model_dump_json().encode())


def test_a_person_chooses_the_step_to_resume_from_and_one_that_is_not_there_is_refused_with_those_that_are(
    shell: Inside,
) -> None:
    failed(shell)
    for step in (10, 20):
        with_checkpoint(shell, step)
    refused = shell.run("resume", "small-1", "--step", "15")
    assert refused.returncode == 2
    assert "no complete checkpoint of step 15" in refused.stderr
    assert "steps there: 20, 10" in refused.stderr
    assert stored(shell).state is RunState.FAILED
    assert "will resume from step 10\n" in shell.ok("resume", "small-1", "--step", "10")
    assert (stored(shell).step_asked, stored(shell).resume_chosen) == (10, False)


def stored(shell: Inside) -> Run:
    record = SqliteStore(shell.home / "control.sqlite").load("small-1")
    assert record is not None
    return record.run


def test_a_failed_run_goes_on_with_a_mended_config_and_the_code_as_it_is_now(shell: Inside) -> None:
    failed(shell)
    config = shell.config(CONFIG.replace("--batch-size 8", "--batch-size 4"))
    assert "small-1 is queued again" in shell.ok("resume", "small-1", "--config", config)
    run = stored(shell)
    assert (run.state, run.revision) == (RunState.QUEUED, 1)
    assert run.spec.trainer.command.endswith("--batch-size 4")
    stat = open_bucket((shell.home / "bucket").as_uri()).stat(code_key("small-1", 1))
    assert stat is not None
    assert stat.size > 0
    assert len(run.code_sha256) == 64


@pytest.mark.parametrize(
    ("change", "output"),
    [
        (("name: small", "name: other"), "is the config of other, but small-1 is a run of small"),
        (
            ("checkpoints: {", "checkpoints: {pattern: 'at-{step}', "),
            "checkpoints.pattern may not change when a run is resumed: it is at-{step} here and step_{step} "
            "in run small-1",
        ),
        (("budget:", "budgett:"), "budgett"),
    ],
)
def test_a_config_that_is_wrong_or_another_runs_changes_nothing(
    shell: Inside, change: tuple[str, str], output: str
) -> None:
    before = failed(shell)
    done = shell.run("resume", "small-1", "--config", shell.config(CONFIG.replace(*change)))
    assert done.returncode in (1, 2)
    assert output in done.stdout + done.stderr
    assert (stored(shell).state, stored(shell).spec) == (RunState.FAILED, before.spec)


def test_a_run_that_was_launched_under_another_name_is_resumed_with_its_config_and_that_name(
    shell: Inside,
) -> None:
    failed(shell)
    config = shell.config(
        CONFIG.replace("name: small", "name: other").replace("--batch-size 8", "--batch-size 4")
    )
    refused = shell.run("resume", "small-1", "--config", config)
    assert refused.returncode == 2
    fix = refused.stderr.split("fix: ")[1].split("prime-train ")[1].split("\n")[0].split()
    assert fix == ["resume", "small-1", "--config", config, "--name", "small"]
    wrong = shell.run("resume", "small-1", "--config", config, "--name", "smal")
    assert "the name 'smal' was given, but small-1 is a run of small" in wrong.stderr
    assert shell.run("resume", "small-1", "--name", "small").returncode == 2
    assert "queued again" in shell.ok(*fix)
    assert (stored(shell).spec.name, "--batch-size 4" in stored(shell).spec.trainer.command) == (
        "small",
        True,
    )


def test_a_config_that_ends_before_the_newest_checkpoint_is_refused_and_no_step_reads_118_of_20(
    shell: Inside,
) -> None:
    failed(shell, durable_step=118)
    done = shell.run("resume", "small-1", "--config", shell.config())
    assert done.returncode == 2
    assert "trainer.steps is 20, but run small-1 already has a checkpoint of step 118" in done.stderr
    assert stored(shell).state is RunState.FAILED


def test_a_resume_within_a_spent_budget_is_refused_with_what_is_needed(shell: Inside) -> None:
    failed(shell, folded=SPENT)
    done = shell.run("resume", "small-1")
    assert done.returncode == 2
    assert "the budget of $5.00 is spent; the budget's 2 hours of training are spent" in done.stderr
    fix = done.stderr.split("fix: prime-train ")[1].split("\n")[0].split()
    assert [word for word in fix if word.startswith("--")] == ["--usd", "--hours"]
    assert "queued again" in shell.ok(*fix)
    assert stored(shell).state is RunState.QUEUED


@pytest.mark.parametrize("option", ["--usd", "--hours"])
@pytest.mark.parametrize("value", ["1e308", "inf", "nan", "0", "-1"])
def test_a_limit_that_no_budget_may_have_is_refused_and_the_store_stays_readable(
    shell: Inside, option: str, value: str
) -> None:
    failed(shell)
    done = shell.run("resume", "small-1", f"{option}={value}")
    assert done.returncode == 2
    assert f"{option.removeprefix('--')} must be" in done.stderr
    assert stored(shell).state is RunState.FAILED


@pytest.mark.parametrize("value", ["tomorrow", "2026-13-01", "2099-01-01T10:00"])
def test_a_deadline_that_is_none_or_lacks_its_offset_is_refused(shell: Inside, value: str) -> None:
    failed(shell)
    done = shell.run("resume", "small-1", "--deadline", value)
    assert done.returncode == 2
    assert "deadline" in done.stderr
    assert "2026-12-01" in done.stderr or "offset" in done.stderr


def test_a_deadline_is_kept_and_shown(shell: Inside) -> None:
    failed(shell)
    shell.ok("resume", "small-1", "--deadline", "2099-01-01T10:00+02:00")
    assert json.loads(shell.ok("status", "small-1", "--json"))["deadline"] == "2099-01-01T10:00+02:00"
    assert "2099-01-01T10:00+02:00, in " in shell.ok("status", "small-1")


def test_a_run_that_goes_on_takes_no_other_config(shell: Inside) -> None:
    run = b.run(RunState.QUEUED)
    shell.home.mkdir()
    assert SqliteStore(shell.home / "control.sqlite").create(
        replace(run, run_id="small-1", spec=b.spec(name="small"))
    )
    done = shell.run("resume", "small-1", "--config", shell.config())
    assert done.returncode == 2
    assert "small-1 is queued: resume is not possible in this state" in done.stderr
    # It goes on as soon as somebody watches it.
    assert "no control plane serves this home" in done.stderr
    assert "prime-train serve --background" in done.stderr
