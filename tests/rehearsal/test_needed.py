"""A script of one's own is launched on a rented machine only after its rehearsal, or with a waiver."""

from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.launch.preconditions import not_rehearsed
from prime_train.runs.run import RunState
from prime_train.spec.causes import Cause
from prime_train.spec.overrides import config_text
from prime_train.spec.reader import read_text
from prime_train.spec.rehearsed import rehearsal_digest
from prime_train.spec.spec import RunSpec
from prime_train.stores.sqlite.store import SqliteStore
from tests import builders as b
from tests.cli.inside import Inside

CONFIG = """\
name: mine
trainer:
  command: python train.py --lr 1e-3 --epochs 10
  resume: --resume {checkpoint}
  progress: {kind: regex, pattern: 'step (?P<step>\\d+)'}
checkpoints: {folder: out, pattern: "ckpt-{step}.pt"}
hardware: {provider: prime, gpus: [H100_80GB]}
budget: {usd: 5}
"""


@pytest.fixture
def shell(tmp_path: Path) -> Inside:
    shell = Inside(tmp_path)
    shell.write("train.py", "print(1)\n")
    shell.write("mine.yaml", CONFIG)
    return shell


def own(**changes: object) -> RunSpec:
    changes = {"hardware": {"provider": "prime"}, "trainer": {"resume": "--resume {checkpoint}"}} | changes
    return b.spec(**changes)


def needs(spec: RunSpec) -> bool:
    read = read_text(config_text({"name": "tiny"}), "tiny.yaml")
    return bool(not_rehearsed(read, spec))


def test_a_launch_on_a_rented_machine_is_refused_with_what_to_do(shell: Inside) -> None:
    done = shell.run("run", "mine.yaml", PRIME_API_KEY="pit_fake")
    said = done.stdout + done.stderr
    assert done.returncode == 1
    assert "PT028" in said
    assert "prime-train try mine.yaml" in said
    assert "--without-rehearsal" in said
    assert shell.ok("status", "--json").strip() == "[]"


def test_the_waiver_of_one_launch_queues_the_run(shell: Inside) -> None:
    done = shell.run("run", "mine.yaml", "--without-rehearsal", PRIME_API_KEY="pit_fake")
    assert (done.returncode, "is queued" in done.stdout) == (0, True)


def test_the_waiver_in_the_config_queues_the_run(shell: Inside) -> None:
    shell.write("mine.yaml", CONFIG + "rehearsed: waived\n")
    done = shell.run("run", "mine.yaml", PRIME_API_KEY="pit_fake")
    assert (done.returncode, "is queued" in done.stdout) == (0, True)


def test_a_command_without_a_config_is_told_how_to_get_one(shell: Inside) -> None:
    done = shell.run(
        "run", "--usd", "5", "--provider", "prime", "--", "python", "train.py", PRIME_API_KEY="pit_fake"
    )
    assert (done.returncode, "prime-train try -- COMMAND" in done.stdout + done.stderr) == (1, True)


def test_what_would_be_rented_is_shown_of_any_script(shell: Inside) -> None:
    done = shell.run(
        "run", "mine.yaml", "--dry-run", PRIME_API_KEY="pit_fake", PRIME_API_BASE_URL="http://127.0.0.1:9"
    )
    assert "PT028" not in done.stdout + done.stderr


RUNNING = "hardware: {provider: prime, gpus: [H100_80GB]}"


def failed(shell: Inside, config: str) -> str:
    """Store a run of the config that has failed, and return its id."""
    spec = read_text(config, "mine.yaml").spec
    assert spec is not None
    shell.home.mkdir(exist_ok=True)
    run = replace(b.run(RunState.FAILED), run_id="mine-1", spec=spec, cause=Cause.IMPORT_ERROR)
    assert SqliteStore(shell.home / "control.sqlite").create(run)
    return run.run_id


def resumed(shell: Inside, run_id: str, config: str, *options: str) -> str:
    shell.write("mine.yaml", config)
    done = shell.run(
        *("resume", run_id, "--config", "mine.yaml", "--no-background", *options), PRIME_API_KEY="pit_fake"
    )
    return done.stdout + done.stderr


def test_a_run_is_not_resumed_with_another_script_that_was_never_rehearsed(shell: Inside) -> None:
    run_id = failed(shell, CONFIG)
    shell.write("other.py", "print(1)\n")
    other = CONFIG.replace("train.py", "other.py")
    assert "PT028" in resumed(shell, run_id, other)
    assert "queued again" in resumed(shell, run_id, other, "--without-rehearsal")


def test_a_run_of_this_machine_is_not_resumed_on_a_rented_one_without_a_rehearsal(shell: Inside) -> None:
    run_id = failed(shell, CONFIG.replace(RUNNING, "hardware: {provider: local}"))
    assert "PT028" in resumed(shell, run_id, CONFIG)
    assert "queued again" in resumed(shell, run_id, CONFIG + "rehearsed: waived\n")


def test_a_run_that_was_let_through_is_resumed_with_other_numbers(shell: Inside) -> None:
    run_id = failed(shell, CONFIG)
    assert "queued again" in resumed(shell, run_id, CONFIG.replace("1e-3", "1e-4"))


def test_a_rehearsal_holds_for_other_numbers_of_the_command() -> None:
    first = own(trainer={"command": "python train.py --lr 1e-3 --steps 1000 --name run-a"})
    other = own(trainer={"command": "python train.py --lr 3e-4 --steps 20_000 --name run-a"})
    assert rehearsal_digest(first) == rehearsal_digest(other)
    assert not needs(other.model_copy(update={"rehearsed": rehearsal_digest(first)}))


@pytest.mark.parametrize(
    "changes",
    [
        {"trainer": {"command": "python train2.py"}},
        {"trainer": {"command": "python train.py --fast"}},
        {"trainer": {"resume": ""}},
        {"trainer": {"progress": {"first": 0}}},
        {"trainer": {"kind": "torchrun", "command": "train.py"}},
        {"checkpoints": {"folder": "elsewhere"}},
        {"checkpoints": {"pattern": "epoch_{epoch}"}},
        {"checkpoints": {"sentinel": "DONE"}},
    ],
)
def test_another_way_to_start_to_save_or_to_report_needs_another_rehearsal(
    changes: dict[str, object],
) -> None:
    rehearsed = rehearsal_digest(own())
    assert needs(own(**changes).model_copy(update={"rehearsed": rehearsed}))


@pytest.mark.parametrize(
    "changes",
    [
        {"trainer": {"kind": "hf", "command": "train.py"}},
        {"hardware": {"provider": "local"}},
        {"hardware": {"provider": "kubernetes"}, "trainer": {"kind": "lightning", "command": "train.py"}},
    ],
)
def test_kinds_known_by_name_and_machines_of_ones_own_need_none(changes: dict[str, object]) -> None:
    assert not needs(own(**changes))


def test_another_budget_or_machine_needs_no_other_rehearsal() -> None:
    rehearsed = rehearsal_digest(own())
    other = own(budget={"usd": 50, "hours": 3}, hardware={"provider": "prime", "gpus": ["H100_80GB"]})
    assert not needs(other.model_copy(update={"rehearsed": rehearsed}))
