"""W&B through its real SDK, as a training process writes and as a watcher reads, against a fake of its server."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.adapters.tracker_wandb import Wandb, WandbTracker, tracker_from
from prime_train.core.causes import Cause
from prime_train.core.run import Run, RunState
from prime_train.core.verdict import TrackerSeen
from prime_train.ports import PermanentError, TemporaryError
from prime_train.trainers import trainer_for
from tests import builders as b
from tests.fakes.wandb import KEY, FakeRun, FakeWandb
from tests.reconcile.ports import Outside

pytest.importorskip("wandb", reason="the extra wandb is not installed")

HEARD_S = 1_700_000_000
CALL_S = 1
TRAIN = """
import sys, threading, wandb
run = wandb.init()
for step in range(3):
    run.log({"loss": 1 / (step + 1)})
if sys.argv[1:] == ["forever"]:
    run.mark_preempting()  # what is there is sent at once, not with the next piece of the stream
    threading.Event().wait()
run.finish()
"""


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.at_s = 0.0

    def __call__(self) -> float:
        return self.at_s


def a_run(run_id: str = "tiny-1", **wandb: str) -> Run:
    return b.run(RunState.TRAINING, run_id=run_id, spec=b.spec(wandb={"project": "train", "entity": "acme"} | wandb))


def tracked(**changes: object) -> FakeRun:
    """As W&B tells of it while it trains."""
    return replace(FakeRun("train", "tiny-1", heartbeat_s=HEARD_S, step=7), **changes)  # type: ignore[arg-type]


@pytest.fixture(name="fake")
def _fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWandb]:
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    with FakeWandb(tracked()) as fake:
        yield fake


@pytest.fixture(name="wandb")
def _wandb(fake: FakeWandb) -> Wandb:
    return Wandb(KEY, url=fake.url, call_s=CALL_S)


def tracker(wandb: Wandb, clock: Clock | None = None, **changes: float) -> WandbTracker:
    return WandbTracker(wandb, clock=clock or Clock(), now=lambda: HEARD_S + 60.0, **({"wait_s": 30.0} | changes))


# --------------------------------------------------------------------------------------------------------------- a look


def test_a_look_brings_the_step_and_when_it_last_spoke(fake: FakeWandb, wandb: Wandb) -> None:
    looking = tracker(wandb)
    assert looking.look(a_run()) == TrackerSeen(7, HEARD_S)
    assert looking.trouble("tiny-1") == ""


def test_many_looks_ask_once_until_the_answer_is_old(fake: FakeWandb, wandb: Wandb) -> None:
    clock = Clock()
    looking = tracker(wandb, clock)
    assert {looking.look(a_run()) for _ in range(100)} == {TrackerSeen(7, HEARD_S)}
    assert fake.asked.count("Run") == 1
    fake.add(tracked(step=8))
    clock.at_s = 20.0
    assert looking.look(a_run()) == TrackerSeen(8, HEARD_S)


def test_a_run_that_is_not_tracked_is_not_asked_about(fake: FakeWandb, wandb: Wandb) -> None:
    assert tracker(wandb).look(b.run(RunState.TRAINING)) is None
    assert not fake.asked


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"name": "other"}, "heard nothing of it"),
        ({"heartbeat_s": None}, "heard nothing of it"),
        ({"heartbeat_s": HEARD_S + 3600.0}, "3540 s in the future"),
    ],
)
def test_what_proves_nothing_is_no_sign_of_life(fake: FakeWandb, wandb: Wandb, told: dict[str, object], why: str) -> None:
    fake.runs.clear()
    fake.add(tracked(**told))
    looking = tracker(wandb)
    assert looking.look(a_run()) is None
    assert why in looking.trouble("tiny-1")


def test_nobody_waits_for_a_tracker_that_does_not_answer(fake: FakeWandb, wandb: Wandb, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    looking = tracker(wandb, clock)
    fake.hold()
    runs = [a_run(f"tiny-{number}") for number in range(1, 101)]
    assert [looking.look(run) for run in runs] == [None] * 100
    assert "did not answer within 1 s" in looking.trouble("tiny-1")
    assert "left alone" in looking.trouble("tiny-100")
    assert caplog.text.count("did not answer") == 1
    fake.let_go()
    assert looking.look(runs[0]) is None
    clock.at_s = 30.0
    assert looking.look(runs[0]) == TrackerSeen(7, HEARD_S)
    assert looking.trouble("tiny-1") == ""


def test_a_run_that_is_cut_off_is_left_alone_as_long_as_w_and_b_hears_of_it(fake: FakeWandb, wandb: Wandb) -> None:
    w = Outside({"wandb": {"project": "train", "entity": "acme"}}).trains()
    w.world = replace(w.world, tracker=WandbTracker(wandb, wait_s=30.0, clock=lambda: w.now_s, now=lambda: w.now_s))
    for _ in range(20):
        fake.add(tracked(heartbeat_s=w.now_s + 30))
        w.after(60).sweep()
    assert (w.run().state, w.run().epoch) == (RunState.TRAINING, 1)
    w.sweeps(600)
    assert w.run().attempts[0].cause is Cause.SILENT


def test_an_answer_that_comes_late_is_there_for_a_later_look(fake: FakeWandb, wandb: Wandb) -> None:
    looking = tracker(wandb, wait_s=0.0)
    fake.hold()
    assert looking.look(a_run()) is None
    fake.let_go()
    end_s = time.monotonic() + 30
    while (found := looking.look(a_run())) is None and time.monotonic() < end_s:
        time.sleep(0.01)  # there is no event: the answer comes on a thread of the tracker's
    assert found == TrackerSeen(7, HEARD_S)


# -------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_is_told_once_and_without_the_key(fake: FakeWandb, wandb: Wandb, status: int, caplog: pytest.LogCaptureFixture) -> None:
    wandb.run("train", "tiny-1", entity="acme")
    fake.failing = status  # with an answer that repeats what it was asked with
    clock = Clock()
    looking = tracker(wandb, clock)
    for _ in range(3):
        assert looking.look(a_run()) is None
        clock.at_s += 60
    why = looking.trouble("tiny-1")
    assert "W&B refused" in why
    assert caplog.text.count("W&B refused") == 1
    assert fake.refused == 1, "it is not asked again each minute"
    clock.at_s += 300
    fake.failing = None
    assert looking.look(a_run()) is not None
    for text in (caplog.text, why):
        assert KEY not in text
        assert "YXBpO" not in text


def test_a_project_that_is_refused_keeps_no_other_from_being_looked_at(fake: FakeWandb, wandb: Wandb) -> None:
    looking = tracker(wandb)
    fake.secret.add("hidden")
    assert looking.look(a_run("tiny-2", project="hidden")) is None
    assert "permission" in looking.trouble("tiny-2")
    assert looking.look(a_run()) == TrackerSeen(7, HEARD_S)


@pytest.mark.parametrize(("key", "why"), [("b" * 40, "invalid API key"), ("short", "40")])
def test_a_wrong_key_is_refused_without_being_repeated(fake: FakeWandb, key: str, why: str) -> None:
    with pytest.raises(PermanentError, match=why) as refused:
        Wandb(key, url=fake.url, call_s=CALL_S).run("train", "tiny-1")
    assert key not in str(refused.value)


def test_a_server_that_fails_may_work_later(fake: FakeWandb, wandb: Wandb) -> None:
    fake.failing = 503
    with pytest.raises(TemporaryError, match="did not answer"):
        wandb.run("train", "tiny-1")


def test_there_is_no_tracker_without_a_key() -> None:
    assert tracker_from({}) is None
    assert tracker_from({"WANDB_API_KEY": " "}) is None
    assert tracker_from({"WANDB_API_KEY": KEY}) is not None


# ----------------------------------------------------------------------------------------------------------------- writing


def test_a_lost_run_is_marked_once(fake: FakeWandb, wandb: Wandb) -> None:
    looking = tracker(wandb)
    assert looking.mark_lost(a_run())
    assert fake.runs["train", "tiny-1"].state == "failed"
    assert not looking.mark_lost(a_run())
    assert not looking.mark_lost(a_run("tiny-2"))
    assert not looking.mark_lost(b.run(RunState.TRAINING))


def test_what_is_called_running_in_a_project_is_listed_over_all_pages(fake: FakeWandb, wandb: Wandb) -> None:
    for number in range(2, 62):
        fake.add(tracked(name=f"tiny-{number}", state="finished" if number == 2 else "running"))
    found = wandb.running("train", entity="acme")
    assert len(found) == 60
    assert {run.state for run in found} == {"running"}
    with pytest.raises(PermanentError, match="nowhere"):
        wandb.running("nowhere", entity="acme")


@pytest.mark.parametrize(("state", "quiet_s", "stale"), [("running", 59, True), ("running", 60, False), ("crashed", 59, False)])
def test_a_running_run_with_an_old_heartbeat_is_stale(fake: FakeWandb, wandb: Wandb, state: str, quiet_s: int, stale: bool) -> None:
    fake.add(tracked(state=state))
    found = wandb.run("train", "tiny-1")
    assert found is not None
    assert found.is_stale(HEARD_S + 60, quiet_s) is stale


# -------------------------------------------------------------------------------------------------------------- for real


def training(fake: FakeWandb, folder: Path, epoch: int, *words: str) -> "subprocess.Popen[bytes]":
    """A process that trains, with the environment that its agent gives it."""
    run = a_run()
    ours = trainer_for(run.spec).environment(run.spec, epoch=epoch, run_id=run.run_id)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}
    env = (
        kept
        | ours
        | {
            "WANDB_BASE_URL": fake.url,
            "WANDB_API_KEY": KEY,
            "WANDB_DIR": str(folder),
            "WANDB_CONSOLE": "off",
            "WANDB__FILE_STREAM_TRANSMIT_INTERVAL": "0.1",
        }
    )
    log = (folder / f"said-{epoch}.log").open("wb")
    with log:
        return subprocess.Popen([sys.executable, "-c", TRAIN, *words], env=env, cwd=folder, stdout=log, stderr=log, start_new_session=True)


def test_a_killed_run_goes_on_being_called_running_and_its_next_attempt_goes_on_with_it(tmp_path: Path) -> None:
    with FakeWandb() as fake:
        first = training(fake, tmp_path, 1, "forever")
        try:
            assert fake.wait_for(lambda: any(run.step == 2 for run in fake.runs.values())), (tmp_path / "said-1.log").read_text()
        finally:
            os.killpg(first.pid, signal.SIGKILL)  # with the process that writes for it, as when a machine is lost
            first.wait()
        wandb = Wandb(KEY, url=fake.url)
        lost = wandb.run("train", "tiny-1", entity="acme")
        assert lost is not None
        assert (lost.state, lost.step) == ("running", 2)
        assert lost.is_stale(lost.heard_s + 301, 300)
        assert "tiny-1" in lost.notes
        fake.runs["train", "tiny-1"].notes = "what somebody wrote there since"
        assert training(fake, tmp_path, 2).wait() == 0, (tmp_path / "said-2.log").read_text()
        done = wandb.run("train", "tiny-1", entity="acme")
        assert done is not None
        assert (done.state, done.step, len(fake.runs)) == ("finished", 5, 1)
        assert done.notes == "what somebody wrote there since"
