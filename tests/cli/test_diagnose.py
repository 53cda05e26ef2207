"""`prime-train diagnose`: what it concludes from which facts, and the verb on real homes."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prime_train.adapters.bucket import open_bucket
from prime_train.adapters.store_sqlite import SqliteStore
from prime_train.adapters.tracker_wandb import RunSeen
from prime_train.cli.diagnosis import LATE_S, Conclusion, Facts, Kind, conclude
from prime_train.cli.home import wall_s
from prime_train.core.causes import Cause
from prime_train.core.decide.tracking import TRACKER_LAG_S_MAX
from prime_train.core.keys import evidence_key
from prime_train.core.run import Run, RunState
from prime_train.core.verdict import Gone, Healthy, Sick, Silent, Stalled, Unknown, Verdict
from prime_train.core.wire import Phase
from tests import builders as b
from tests.cli.inside import Inside
from tests.fakes.wandb import KEY, FakeRun, FakeWandb

NOW_S = b.T0_S + 5000
WELL = Healthy(Phase.TRAIN, 57)
TRACKED = b.spec(wandb={"project": "train", "entity": "acme"})


def facts(of: Run | None = None, verdict: Verdict | None = None, **changes: Any) -> Facts:
    held = b.held(of, beat=b.beat(7, step=57), beat_s=NOW_S - 12) if (of or b.run(RunState.TRAINING)).attempts else b.held(of)
    return Facts(held, NOW_S, verdict, **changes)


def heard(late_s: int, *, state: str = "running", step: int = 40) -> RunSeen:
    return RunSeen("acme", "train", "tiny-1", "tiny-1", state, NOW_S - late_s, step, "", "https://wandb.test/tiny-1")


def kinds(of: Facts) -> list[Kind]:
    return [one.kind for one in conclude(of)]


def only(of: Facts, kind: Kind) -> Conclusion:
    (one,) = [one for one in conclude(of) if one.kind is kind]
    return one


# ----------------------------------------------------------------------------------------------------------- how it stands


@pytest.mark.parametrize(
    ("verdict", "kind"),
    [
        (WELL, Kind.WELL),
        (Healthy(None, 0), Kind.WAITING),
        (replace(WELL, cut_off=True), Kind.CUT_OFF),
        (Gone("the provider says so"), Kind.LOST),
        (Silent(120, past_limit=False), Kind.SILENT),
        (Stalled(Cause.STALLED, 400, 300), Kind.STALLED),
        (Sick(Cause.GPU_OOM, "CUDA out of memory", exited=True), Kind.SICK),
        (Unknown("HTTP 503"), Kind.UNKNOWN),
    ],
)
def test_how_an_attempt_stands_is_what_a_watcher_would_find(verdict: Verdict, kind: Kind) -> None:
    assert kinds(facts(verdict=verdict)) == [kind]


@pytest.mark.parametrize(
    ("state", "kind", "title"),
    [
        (RunState.SUCCEEDED, Kind.FINISHED, "it has finished"),
        (RunState.FAILED, Kind.ENDED, "it failed"),
        (RunState.STOPPED, Kind.ENDED, "it was stopped"),
        (RunState.CANCELLED, Kind.ENDED, "it was cancelled"),
        (RunState.QUEUED, Kind.WAITING, "it waits for its first machine"),
    ],
)
def test_a_run_without_a_machine_says_why(state: RunState, kind: Kind, title: str) -> None:
    first = conclude(facts(b.run(state)))[0]
    assert (first.kind, first.title) == (kind, title)
    assert first.because


def test_between_two_machines_the_loss_of_the_last_one_is_told() -> None:
    first = conclude(facts(b.run(RunState.QUEUED, epoch=1)))[0]
    assert first.kind is Kind.LOST
    assert "attempt 1: machine taken away" in first.title


# --------------------------------------------------------------------------------------------------------- what else was found


def lost(**changes: Any) -> Run:
    return b.run(RunState.QUEUED, attempts=(b.attempt(1, RunState.QUEUED, **changes),), epoch=1)


def test_steps_that_were_not_in_the_bucket_are_done_again() -> None:
    found = only(facts(lost(last_step=57, durable_step=50)), Kind.INTERRUPTED)
    assert "7 steps are done again" in found.title
    assert "step 57" in found.because
    assert "machine taken away" in found.because


@pytest.mark.parametrize("saved", [{"durable_step": 57}, {"resumed_step": 57, "durable_step": 0}])
def test_nothing_is_interrupted_where_the_last_step_is_in_the_bucket(saved: dict[str, int]) -> None:
    assert Kind.INTERRUPTED not in kinds(facts(lost(last_step=57, **saved)))


def test_attempts_that_died_of_the_same_are_told_with_their_places() -> None:
    ended = tuple(b.attempt(n, RunState.QUEUED, cause=Cause.STALLED, offer=b.offer(f"box-{n}")) for n in (1, 2, 3))
    attempts = (replace(ended[0], cause=Cause.PREEMPTED), *ended[1:])
    found = only(facts(b.run(RunState.QUEUED, attempts=attempts, epoch=3)), Kind.REPEATED)
    assert "2 attempts in a row: no step within its deadline" in found.title
    assert "box-2, box-3" in found.because
    assert Kind.REPEATED not in kinds(facts(lost()))


def test_a_reward_of_0_is_told_from_the_step_where_it_began() -> None:
    rewards = {step: 0.4 if step < 40 else 0.0 for step in range(1, 58)}
    found = only(facts(rewards=rewards), Kind.ZERO_REWARD)
    assert found.title == "reward 0 since step 40"
    assert "0.4 at step 39" in found.because
    assert "never another" in only(facts(rewards=dict.fromkeys(range(1, 9), 0.0)), Kind.ZERO_REWARD).because


@pytest.mark.parametrize("rewards", [{}, dict.fromkeys(range(4), 0.0), dict.fromkeys(range(9), 0.0) | {9: 0.1}])
def test_a_reward_of_0_now_and_then_is_no_finding(rewards: dict[int, float]) -> None:
    assert Kind.ZERO_REWARD not in kinds(facts(rewards=rewards))


# --------------------------------------------------------------------------------------------------------------------- W&B


@pytest.mark.parametrize(
    ("late_s", "kind"),
    [
        (LATE_S, None),
        (LATE_S + 1, Kind.TRACKER_LATE),
        (TRACKER_LAG_S_MAX, Kind.TRACKER_LATE),
        (TRACKER_LAG_S_MAX + 1, Kind.TRACKER_LOST),
    ],
)
def test_a_run_that_beats_is_not_dead_because_its_tracker_is_late(late_s: int, kind: Kind | None) -> None:
    found = kinds(facts(verdict=WELL, tracker=heard(late_s)))
    assert found == [Kind.WELL, kind] if kind is not None else [Kind.WELL]


def test_being_late_is_told_with_both_steps() -> None:
    found = only(facts(verdict=WELL, tracker=heard(1500)), Kind.TRACKER_LATE)
    assert found.because == "its last beat came 12 s ago at step 57, and W&B heard of it 25 min ago at step 40"


def test_a_lost_run_that_w_and_b_calls_running_is_stale_there() -> None:
    gone = Gone("the provider says so")
    assert kinds(facts(verdict=gone, tracker=heard(600))) == [Kind.LOST, Kind.TRACKER_STALE]
    assert kinds(facts(verdict=gone, tracker=heard(600, state="crashed"))) == [Kind.LOST]
    assert kinds(facts(b.run(RunState.SUCCEEDED), tracker=heard(600, state="finished"))) == [Kind.FINISHED]


def test_a_tracker_that_can_not_be_asked_is_told_and_takes_nothing_back() -> None:
    assert kinds(facts(verdict=WELL, tracker="W&B did not answer within 10 s")) == [Kind.WELL, Kind.TRACKER_UNKNOWN]


# ----------------------------------------------------------------------------------------------------------------- the verb


@pytest.fixture(name="shell")
def _shell(tmp_path: Path) -> Inside:
    return Inside(tmp_path)


@pytest.fixture(name="fake")
def _fake(tmp_path: Path) -> Iterator[FakeWandb]:
    pytest.importorskip("wandb", reason="the extra wandb is not installed")
    with FakeWandb() as fake:
        yield fake


def stored(shell: Inside, run: Run) -> None:
    shell.home.mkdir()
    assert SqliteStore(shell.home / "control.sqlite").create(run)


def said(shell: Inside, *words: str, **env: str) -> str:
    done = shell.run("diagnose", "tiny-1", *words, **env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_run_that_failed_says_why_and_what_was_kept(shell: Inside) -> None:
    stored(shell, replace(b.run(RunState.FAILED), why="import error: no module named flash_attn"))
    bucket = open_bucket((shell.home / "bucket").as_uri())
    bucket.put(evidence_key("tiny-1", 1, "trainer.log"), f"ImportError: flash_attn\ntoken hf_{'x' * 30}\n".encode())
    text = said(shell)
    assert text.startswith("tiny-1: failed, attempt 1, step 10, newest committed step 0\n")
    assert "because: import error: no module named flash_attn\n  do: Add the package to `setup`." in text
    assert "interrupted between two checkpoints: 10 steps" in text
    assert "runs/tiny-1/evidence/e1/trainer.log" in text
    assert "ImportError: flash_attn\ntoken (hidden)" in text


def test_a_run_whose_machine_is_gone_is_told_so_before_any_watcher_acts(shell: Inside) -> None:
    stored(shell, b.run(RunState.TRAINING))
    found = json.loads(said(shell, "--json"))
    assert found["run"] == "tiny-1"
    assert found["standing"]["state"] == "training"
    assert found["conclusions"][0]["kind"] == "lost"
    assert found["wandb"] == {"url": "", "seen": None}
    assert found["evidence"] == []


def test_the_rewards_are_the_trainers_own(shell: Inside) -> None:
    stored(shell, replace(b.run(RunState.STOPPED), spec=b.spec(trainer={"progress": {"file": "m.jsonl"}})))
    rows = "".join(json.dumps({"step": step, "reward": 0.5 if step < 20 else 0.0}) + "\n" for step in range(1, 41))
    open_bucket((shell.home / "bucket").as_uri()).put(evidence_key("tiny-1", 1, "metrics.jsonl"), rows.encode())
    assert "reward 0 since step 20" in said(shell)


def test_what_w_and_b_says_is_asked_for_and_linked(shell: Inside, fake: FakeWandb) -> None:
    stored(shell, replace(b.run(RunState.FAILED), spec=TRACKED))
    fake.add(FakeRun("train", "tiny-1", heartbeat_s=wall_s() - 600, step=9))
    env = {"WANDB_API_KEY": KEY, "WANDB_BASE_URL": fake.url, "WANDB_DIR": str(shell.here)}
    text = said(shell, **env)
    assert f"W&B: {fake.url}/acme/train/runs/tiny-1" in text
    assert "W&B still calls it running" in text
    fake.failing = 403
    text = said(shell, **env)
    assert "W&B told nothing" in text
    assert "W&B: https://wandb.ai/acme/train/runs/tiny-1" in text
    assert KEY not in text


def test_without_a_key_w_and_b_is_not_asked(shell: Inside) -> None:
    stored(shell, replace(b.run(RunState.FAILED), spec=TRACKED))
    assert "because: it is not asked: WANDB_API_KEY is not set" in said(shell, WANDB_API_KEY="")


def test_a_run_that_is_not_there_is_a_wrong_word(shell: Inside) -> None:
    done = shell.run("diagnose", "nobody")
    assert done.returncode == 2
    assert "there is no run nobody" in done.stderr
