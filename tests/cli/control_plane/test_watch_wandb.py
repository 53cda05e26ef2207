"""`prime-train watch --wandb`: runs that have fallen silent in W&B are reported, and nothing else is done."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.clock import wall_s
from prime_train.runs.run import RunState
from prime_train.spec.causes import Cause
from prime_train.stores.sqlite.store import SqliteStore
from tests import builders as b
from tests.chaos.history import CLOCK
from tests.cli.inside import Inside
from tests.cli.shell import Shell
from tests.fakes.prime import FakePrime
from tests.fakes.prime.client import create
from tests.fakes.wandb import KEY, FakeRun, FakeWandb

OLD_S = 3 * 3600


@pytest.fixture(name="shell")
def _shell(tmp_path: Path) -> Inside:
    return Inside(tmp_path)


@pytest.fixture(name="fake")
def _fake() -> Iterator[FakeWandb]:
    now_s = wall_s()
    stale = FakeRun("train", "x7k2m9qa", display_name="math-8b\x1b", heartbeat_s=now_s - OLD_S, step=40)
    others = (
        FakeRun("train", "lively", heartbeat_s=now_s - 600),
        FakeRun("train", "done", "finished", now_s - OLD_S),
        FakeRun("train", "begun"),
    )
    with FakeWandb(stale, *others) as fake:
        yield fake


def env(shell: Inside, fake: FakeWandb) -> dict[str, str]:
    return {"WANDB_API_KEY": KEY, "WANDB_BASE_URL": fake.url, "WANDB_DIR": str(shell.here)}


def looked(shell: Inside, fake: FakeWandb, *words: str, code: int = 1, **more: str) -> str:
    done = shell.run("watch", "--wandb", "acme/train", "--once", *words, **(env(shell, fake) | more))
    assert done.returncode == code, done.stderr
    return done.stdout


def test_a_run_that_fell_silent_is_reported_and_left_alone(shell: Inside, fake: FakeWandb) -> None:
    text = looked(shell, fake)
    assert "acme/train/x7k2m9qa (math-8b): W&B shows it as running, but last received data 3 h ago" in text
    assert "no machine that is visible from here has this run's name" in text
    assert "WANDB_RUN_ID=x7k2m9qa WANDB_RESUME=must; nothing was changed" in text
    assert "lively" not in text
    assert "train/done" not in text
    assert "train/begun" not in text
    assert text.endswith("1 silent in acme/train\n")
    assert "UpdateRunState" not in fake.requested
    assert not shell.home.exists() or not (shell.home / "control.sqlite").exists()


def test_w_and_b_being_half_an_hour_late_is_no_reason_unless_it_is_requested(
    shell: Inside, fake: FakeWandb
) -> None:
    assert "lively" in looked(shell, fake, "--stale-min", "5")
    fake.runs.pop(("train", "x7k2m9qa"))
    assert looked(shell, fake, code=0) == "0 silent in acme/train\n"


def test_a_run_that_w_and_b_hears_is_not_reported_as_silent_from_a_machine_whose_clock_is_ahead(
    tmp_path: Path, fake: FakeWandb
) -> None:
    shell = Shell(tmp_path)
    shell.home.mkdir()
    SqliteStore(shell.home / "control.sqlite").now_s()
    (tmp_path / "ahead").write_text("86400")
    clock = {
        "PYTHONPATH": str(CLOCK),
        "PT_CLOCKS": json.dumps({"prime-train watch": str(tmp_path / "ahead")}),
    }
    plane = {"WANDB_API_KEY": KEY, "WANDB_BASE_URL": fake.url, "WANDB_DIR": str(shell.here)}
    done = shell.run("watch", "--wandb", "acme/train", "--once", **clock, **plane)
    assert "1 silent in acme/train" in done.stdout, done.stderr
    assert "lively" not in done.stdout


def test_a_run_of_ours_that_spent_its_budget_is_reported_with_the_option_that_lets_it_go_on(
    shell: Inside, fake: FakeWandb
) -> None:
    shell.home.mkdir()
    spent = replace(b.run(RunState.STOPPED, run_id="tiny-spent"), cause=Cause.HOURS_SPENT)
    spent = replace(
        spent, spec=b.spec(wandb={"project": "train", "entity": "acme"}, budget={"usd": 5.0, "hours": 1.0})
    )
    assert SqliteStore(shell.home / "control.sqlite").create(spent)
    fake.add(FakeRun("train", "tiny-spent", heartbeat_s=wall_s() - OLD_S))
    assert "to continue it: prime-train resume tiny-spent --hours " in looked(shell, fake)


def test_ours_are_reported_only_when_nobody_looks_after_them(shell: Inside, fake: FakeWandb) -> None:
    shell.home.mkdir()
    store = SqliteStore(shell.home / "control.sqlite")
    spec = b.spec(wandb={"project": "train", "entity": "acme"})
    for state in (RunState.TRAINING, RunState.STOPPED, RunState.SUCCEEDED):
        assert store.create(replace(b.run(state, run_id=f"tiny-{state.value}"), spec=spec))
        fake.add(FakeRun("train", f"tiny-{state.value}", heartbeat_s=wall_s() - OLD_S))
    text = looked(shell, fake)
    assert "here the run is stopped; to continue it: prime-train resume tiny-stopped" in text
    assert "here the run has succeeded" in text
    assert "tiny-training" not in text


def test_a_machine_that_is_named_like_it_is_shown_whoever_rented_it(
    shell: Inside, fake: FakeWandb, tmp_path: Path
) -> None:
    with FakePrime(tmp_path / "prime", machines=False) as prime:
        rented = create(prime, name="math-8b-box")
        text = looked(
            shell, fake, PRIME_API_KEY=prime.api_key, PRIME_API_BASE_URL=prime.url, HOME=str(shell.here)
        )
        assert f"machine math-8b-box ({rented}) is " in text
        assert {request.method for request in prime.requests[1:]} == {"GET"}


def test_machines_that_cannot_be_queried_are_not_called_absent(shell: Inside, fake: FakeWandb) -> None:
    text = looked(
        shell, fake, PRIME_API_KEY="k", PRIME_API_BASE_URL="http://127.0.0.1:1", HOME=str(shell.here)
    )
    assert "it cannot be determined whether a machine of this run is left" in text


@pytest.mark.parametrize("place", ["acme", "acme/", "/train", "acme/train/x"])
def test_what_is_no_project_is_a_wrong_word(shell: Inside, fake: FakeWandb, place: str) -> None:
    done = shell.run("watch", "--wandb", place, "--once", **env(shell, fake))
    assert done.returncode == 2
    assert "write --wandb ENTITY/PROJECT" in done.stderr


def test_a_missing_key_and_a_refusal_are_distinguished(shell: Inside, fake: FakeWandb) -> None:
    words = ("watch", "--wandb", "acme/nowhere", "--once")
    assert shell.run(*words, **(env(shell, fake) | {"WANDB_API_KEY": ""})).returncode == 2
    assert shell.run(*words, **env(shell, fake)).returncode == 4


@pytest.mark.parametrize("state", ["crashed", "preempting", "preempted", "killed"])
def test_a_run_that_w_and_b_says_was_cut_off_is_reported_by_its_state(
    shell: Inside, fake: FakeWandb, state: str
) -> None:
    fake.runs.clear()
    fake.add(FakeRun("train", "cut-off", state, wall_s() - 1800))
    fake.add(FakeRun("train", "just-now", state, wall_s() - 60))
    fake.add(FakeRun("train", "long-ago", state, wall_s() - 30 * 86_400))
    text = looked(shell, fake)
    assert f"acme/train/cut-off: W&B calls it {state}, and last received data 30 min" in text
    assert text.endswith("1 silent in acme/train\n")


def test_a_run_of_this_home_that_ended_is_no_news_if_w_and_b_calls_it_crashed(
    shell: Inside, fake: FakeWandb
) -> None:
    fake.runs.clear()
    fake.add(FakeRun("train", "tiny-1", "crashed", wall_s() - OLD_S))
    shell.home.mkdir()
    run = b.run(RunState.STOPPED, run_id="tiny-1", spec=b.spec(wandb={"project": "train", "entity": "acme"}))
    assert SqliteStore(shell.home / "control.sqlite").create(run)
    assert looked(shell, fake, code=0) == "0 silent in acme/train\n"
