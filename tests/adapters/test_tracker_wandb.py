"""W&B as a training process writes to it and as a watcher reads it, both with the real package, against a
fake of W&B's server.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from prime_train.errors import PermanentError, TemporaryError
from prime_train.runs.run import Attempt, Run, RunState
from prime_train.runs.verdict import UNHEARD, TrackerObserved
from prime_train.spec.causes import Cause
from prime_train.tracker.wandb import WandbTracker, tracker_from
from prime_train.tracker.wandb_client import WandbClient
from prime_train.tracker.wandb_process import ApiProcess
from prime_train.trainers.of_spec import trainer_for
from tests import builders as b
from tests.fakes.http import ALWAYS, Delay, Response
from tests.fakes.wandb import KEY, FakeRun, FakeWandb, unwell
from tests.reconcile.ports import Outside
from tests.waiting import HANG_S

HEARD_S = 1_700_000_000
CALL_S = 1
TRAIN = """
import signal, sys, threading, wandb
leaving = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: leaving.set())
run = wandb.init()
for step in range(3):
    run.log({"loss": 1 / (step + 1)})
print("trains", flush=True)
if sys.argv[1:] == ["forever"]:
    leaving.wait()
    run.mark_preempting()  # what is there is sent at once, not with the next piece of the stream
    threading.Event().wait()
run.finish()
"""


class Clock:
    """A clock that advances only when a test advances it."""

    def __init__(self) -> None:
        self.at_s = 0.0

    def __call__(self) -> float:
        return self.at_s


def a_run(run_id: str = "tiny-1", **wandb: str) -> Run:
    return b.run(
        RunState.TRAINING, run_id=run_id, spec=b.spec(wandb={"project": "train", "entity": "acme"} | wandb)
    )


def tracked(**changes: object) -> FakeRun:
    """Return W&B's data of a run that trains."""
    return replace(FakeRun("train", "tiny-1", heartbeat_s=HEARD_S, step=7), **changes)  # type: ignore[arg-type]


@pytest.fixture(name="fake")
def _fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWandb]:
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    with FakeWandb(tracked()) as fake:
        yield fake


@pytest.fixture(name="wandb")
def _wandb(fake: FakeWandb) -> WandbClient:
    return WandbClient(KEY, url=fake.url, call_s=CALL_S)


def tracker(wandb: WandbClient, clock: Clock | None = None, **changes: float) -> WandbTracker:
    return WandbTracker(
        wandb, clock=clock or Clock(), now=lambda: HEARD_S + 60.0, **({"wait_s": 30.0} | changes)
    )


# ------------------------------------------------------------------------------------------------------------
# a look


def test_a_look_brings_the_step_and_when_it_last_spoke(fake: FakeWandb, wandb: WandbClient) -> None:
    looking = tracker(wandb)
    assert looking.look(a_run()) == TrackerObserved(7, HEARD_S)
    assert looking.problem("tiny-1") == ""


def test_many_looks_ask_once_until_the_answer_is_old(fake: FakeWandb, wandb: WandbClient) -> None:
    clock = Clock()
    looking = tracker(wandb, clock)
    assert {looking.look(a_run()) for _ in range(100)} == {TrackerObserved(7, HEARD_S)}
    assert fake.requested.count("Run") == 1
    fake.add(tracked(step=8))
    clock.at_s = 20.0
    assert looking.look(a_run()) == TrackerObserved(8, HEARD_S)


def test_a_run_that_is_not_tracked_is_not_queried(fake: FakeWandb, wandb: WandbClient) -> None:
    assert tracker(wandb).look(b.run(RunState.TRAINING)) is None
    assert not fake.requested


@pytest.mark.parametrize(
    ("reported", "seen", "why"),
    [
        ({"name": "other"}, UNHEARD, "received no data from it"),
        ({"heartbeat_s": None}, UNHEARD, "received no data from it"),
        ({"heartbeat_s": HEARD_S + 3600.0}, None, "3540 s in the future"),
    ],
)
def test_what_proves_nothing_is_no_sign_of_life(
    fake: FakeWandb, wandb: WandbClient, reported: dict[str, object], seen: TrackerObserved | None, why: str
) -> None:
    fake.runs.clear()
    fake.add(tracked(**reported))
    looking = tracker(wandb)
    assert looking.look(a_run()) == seen
    assert why in looking.problem("tiny-1")


def test_nobody_waits_for_a_tracker_that_does_not_answer(
    fake: FakeWandb, wandb: WandbClient, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    looking = tracker(wandb, clock)
    fake.fail(Delay(), times=ALWAYS)
    runs = [a_run(f"tiny-{number}") for number in range(1, 101)]
    assert [looking.look(run) for run in runs] == [None] * 100
    assert "answer" in looking.problem("tiny-1")
    assert "not queried for a while" in looking.problem("tiny-100")
    assert caplog.text.count("its tracker cannot be queried") == 1
    fake.heal()
    assert looking.look(runs[0]) is None
    clock.at_s = 30.0
    assert looking.look(runs[0]) == TrackerObserved(7, HEARD_S)
    assert looking.problem("tiny-1") == ""


def test_a_run_that_is_cut_off_is_left_alone_as_long_as_w_and_b_hears_of_it(
    fake: FakeWandb, wandb: WandbClient
) -> None:
    w = Outside({"wandb": {"project": "train", "entity": "acme"}}).trains()
    w.world = replace(
        w.world, tracker=WandbTracker(wandb, wait_s=30.0, clock=lambda: w.now_s, now=lambda: w.now_s)
    )
    for _ in range(20):
        fake.add(tracked(heartbeat_s=w.now_s + 30))
        w.after(60).sweep()
    assert (w.run().state, w.run().attempt) == (RunState.TRAINING, 1)
    w.sweeps(600)
    assert w.run().attempts[0].cause is Cause.SILENT


def test_an_answer_that_comes_late_is_there_for_a_later_look(fake: FakeWandb, wandb: WandbClient) -> None:
    looking = tracker(wandb, wait_s=0.0)
    fake.fail(Delay(), times=ALWAYS)
    assert looking.look(a_run()) is None
    fake.heal()
    end_s = time.monotonic() + 30
    while (found := looking.look(a_run())) is None and time.monotonic() < end_s:
        time.sleep(0.01)  # there is no event: the answer comes on a thread of the tracker's
    assert found == TrackerObserved(7, HEARD_S)


# ------------------------------------------------------------------------------------------------------------
# refusals


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_is_reported_once_and_without_the_key(
    fake: FakeWandb, wandb: WandbClient, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    wandb.run("train", "tiny-1", entity="acme")
    fake.fail(unwell(status), times=ALWAYS)
    clock = Clock()
    looking = tracker(wandb, clock)
    for _ in range(3):
        assert looking.look(a_run()) is None
        clock.at_s += 60
    why = looking.problem("tiny-1")
    assert "W&B refused" in why
    assert caplog.text.count("W&B refused") == 1
    assert [request.status for request in fake.requests_to("POST", "/graphql")].count(status) == 1, (
        "it is not asked again each minute"
    )
    clock.at_s += 300
    fake.heal()
    assert looking.look(a_run()) is not None
    for text in (caplog.text, why):
        assert KEY not in text
        assert "YXBpO" not in text


def test_a_project_that_is_refused_keeps_no_other_from_being_looked_at(
    fake: FakeWandb, wandb: WandbClient
) -> None:
    looking = tracker(wandb)
    fake.secret.add("hidden")
    assert looking.look(a_run("tiny-2", project="hidden")) is None
    assert "permission" in looking.problem("tiny-2")
    assert looking.look(a_run()) == TrackerObserved(7, HEARD_S)


@pytest.mark.parametrize(("key", "why"), [("b" * 40, "invalid API key"), ("short", "40|invalid API key")])
def test_a_wrong_key_is_refused_without_being_repeated(fake: FakeWandb, key: str, why: str) -> None:
    with pytest.raises(PermanentError, match=why) as refused:
        WandbClient(key, url=fake.url, call_s=CALL_S).run("train", "tiny-1")
    assert key not in str(refused.value)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_fails_may_work_later(fake: FakeWandb, wandb: WandbClient, status: int) -> None:
    wandb.run("train", "tiny-1", entity="acme")
    fake.fail(unwell(status), times=ALWAYS)
    with pytest.raises(
        TemporaryError, match=r"W&B (could not be queried|did not answer within 1 s)"
    ) as failed:
        wandb.run("train", "tiny-1", entity="acme")
    assert KEY not in str(failed.value)
    assert "YXBpO" not in str(failed.value)


def test_the_reason_of_a_server_that_fails_is_told(fake: FakeWandb) -> None:
    wandb = WandbClient(KEY, url=fake.url, call_s=int(HANG_S))
    wandb.run("train", "tiny-1", entity="acme")
    fake.fail(unwell(503), times=ALWAYS)
    with pytest.raises(TemporaryError, match="HTTP 503: it is unwell") as failed:
        wandb.run("train", "tiny-1", entity="acme")
    assert "YXBpO" not in str(failed.value)


def test_a_server_that_is_silent_is_told_from_one_that_fails(fake: FakeWandb, wandb: WandbClient) -> None:
    wandb.run("train", "tiny-1", entity="acme")
    fake.fail(Delay(), times=ALWAYS)
    with pytest.raises(TemporaryError, match="did not answer within 1 s"):
        wandb.run("train", "tiny-1", entity="acme")


@pytest.mark.parametrize(
    "body",
    [
        b"<html>sign in</html>",
        b"[]",
        b'{"data": {"project": {"run": {"name": "tiny-1", "state"',
        b'{"data": {"project": 7}}',
        b'{"data": {"project": {"run": {"name": "tiny-1"}}}}',
        b'{"data": {"project": {"run": {"name": "tiny-1", "state": "running"}}}}',
    ],
)
def test_what_is_no_answer_is_not_taken_for_a_run_that_nobody_has_heard_of(
    fake: FakeWandb, wandb: WandbClient, body: bytes
) -> None:
    wandb.run("train", "tiny-1", entity="acme")
    fake.fail(Response(200, body), times=ALWAYS)
    with pytest.raises(TemporaryError, match=r"cannot be parsed|could not be queried"):
        wandb.run("train", "tiny-1", entity="acme")


@pytest.mark.parametrize(
    "body", [b'{"data": {"project": 7}}', b'{"data": {"project": {"runs": {"edges": [{}]}}}}']
)
def test_a_damaged_list_is_not_taken_for_a_project_without_silent_runs(
    fake: FakeWandb, wandb: WandbClient, body: bytes
) -> None:
    wandb.run("train", "tiny-1", entity="acme")
    fake.fail(Response(200, body), times=ALWAYS)
    with pytest.raises(TemporaryError, match="cannot be parsed"):
        wandb.running("train", entity="acme")


def test_a_project_that_is_not_there_is_a_run_that_nobody_has_heard_of(
    fake: FakeWandb, wandb: WandbClient
) -> None:
    wandb.run("train", "tiny-1", entity="acme")
    fake.fail(Response(200, b'{"data": {"project": null}}'), times=ALWAYS)
    assert wandb.run("train", "tiny-1", entity="acme") is None


def test_a_run_that_changes_is_not_shown_as_it_was(fake: FakeWandb, wandb: WandbClient) -> None:
    for step in (8, 9):
        fake.add(tracked(step=step))
        found = wandb.run("train", "tiny-1", entity="acme")
        assert found is not None
        assert found.step == step


def test_there_is_no_tracker_without_a_key() -> None:
    assert tracker_from({}) is None
    assert tracker_from({"WANDB_API_KEY": " "}) is None
    assert tracker_from({"WANDB_API_KEY": KEY}) is not None


# ------------------------------------------------------------------------------------------------------------
# writing


def fenced(after_s: int) -> tuple[Run, Attempt]:
    """Return a run whose attempt was fenced this long after its last report, and that waits for a machine."""
    attempt = b.new_attempt(1, RunState.QUEUED, fenced_s=HEARD_S + after_s)
    run = replace(a_run(), state=RunState.QUEUED, attempts=(attempt,))
    return run, attempt


def test_a_lost_run_is_marked_once(fake: FakeWandb, wandb: WandbClient) -> None:
    looking = tracker(wandb)
    assert looking.mark_lost(*fenced(120))
    assert fake.runs["train", "tiny-1"].state == "failed"
    assert looking.mark_lost(*fenced(120))
    assert fake.requested.count("UpdateRunState") == 1


@pytest.mark.parametrize(
    ("reported", "after_s"), [({}, -1), ({"state": "finished"}, 120), ({"name": "other"}, 120)]
)
def test_a_run_that_spoke_since_or_has_ended_or_is_not_there_is_left_as_it_is(
    fake: FakeWandb, wandb: WandbClient, reported: dict[str, object], after_s: int
) -> None:
    fake.runs.clear()
    fake.add(tracked(**reported))
    assert tracker(wandb).mark_lost(*fenced(after_s))
    assert "UpdateRunState" not in fake.requested


def test_marking_waits_for_nobody_and_is_done_when_w_and_b_is_back(
    fake: FakeWandb, wandb: WandbClient
) -> None:
    clock = Clock()
    looking = tracker(wandb, clock)
    fake.fail(unwell(503), times=ALWAYS)
    assert not looking.mark_lost(*fenced(120))
    fake.heal()
    assert not looking.mark_lost(*fenced(120)), "is not queried for a while"
    clock.at_s = 30.0
    assert looking.mark_lost(*fenced(120))
    assert fake.runs["train", "tiny-1"].state == "failed"


def summarized() -> Run:
    """Return a run that is over."""
    return replace(a_run(), state=RunState.SUCCEEDED, ended_s=HEARD_S + 60)


GONE = {"prime_train/deleted": "2 checkpoints", "prime_train/deleted_checkpoints": 2}


def test_what_was_deleted_is_added_to_the_summary_of_a_run_that_is_over(
    fake: FakeWandb, wandb: WandbClient
) -> None:
    fake.runs["train", "tiny-1"].state, fake.runs["train", "tiny-1"].heartbeat_s = "finished", HEARD_S - 3600
    fake.runs["train", "tiny-1"].summary = {"loss": 0.5, "prime_train/deleted_checkpoints": 1}
    looking = tracker(wandb)
    assert looking.summarize(summarized(), GONE)
    assert fake.runs["train", "tiny-1"].summary == {"loss": 0.5} | GONE
    assert fake.runs["train", "tiny-1"].state == "finished"
    assert tracker(wandb).summarize(summarized(), GONE)
    assert fake.requested.count("UpsertBucket") == 1, "nothing is new the second time"


def test_the_summary_of_a_run_that_something_still_reports_to_is_left_to_it(
    fake: FakeWandb, wandb: WandbClient
) -> None:
    fake.runs["train", "tiny-1"].heartbeat_s = time.time()
    fake.runs["train", "tiny-1"].summary = {"loss": 0.5}
    looking = WandbTracker(wandb, wait_s=30)
    assert not looking.summarize(summarized(), GONE)
    assert fake.runs["train", "tiny-1"].summary == {"loss": 0.5}


def test_a_summary_that_cannot_be_read_is_not_replaced(fake: FakeWandb, wandb: WandbClient) -> None:
    fake.runs["train", "tiny-1"].heartbeat_s = HEARD_S - 3600
    fake.runs["train", "tiny-1"].summary = ["odd"]  # type: ignore[assignment]
    assert not tracker(wandb).summarize(summarized(), GONE)
    assert "UpsertBucket" not in fake.requested


def test_a_run_that_w_and_b_does_not_have_needs_no_summary(fake: FakeWandb, wandb: WandbClient) -> None:
    fake.runs.clear()
    assert tracker(wandb).summarize(summarized(), GONE)


def test_many_marks_wait_for_a_silent_w_and_b_once(fake: FakeWandb) -> None:
    looking = tracker(WandbClient(KEY, url=fake.url), wait_s=0.05)
    fake.fail(Delay(), times=ALWAYS)
    run, attempt = fenced(120)
    assert not any(looking.mark_lost(replace(run, run_id=f"tiny-{number}"), attempt) for number in range(100))
    asking = [thread for thread in threading.enumerate() if thread.name.startswith("wandb-mark-")]
    fake.heal()
    assert len(asking) == 1


def test_a_mark_that_is_refused_is_not_requested_again(fake: FakeWandb, wandb: WandbClient) -> None:
    looking = tracker(wandb)
    fake.secret.add("train")
    assert looking.mark_lost(*fenced(120))
    assert "permission" in looking.problem("tiny-1")


def test_what_is_called_running_in_a_project_is_listed_over_all_pages(
    fake: FakeWandb, wandb: WandbClient
) -> None:
    for number in range(2, 62):
        fake.add(tracked(name=f"tiny-{number}", state="finished" if number == 2 else "running"))
    found = wandb.running("train", entity="acme")
    assert len(found) == 60
    assert {run.state for run in found} == {"running"}
    with pytest.raises(PermanentError, match="nowhere"):
        wandb.running("nowhere", entity="acme")


@pytest.mark.parametrize(
    ("state", "quiet_s", "stale"), [("running", 59, True), ("running", 60, False), ("crashed", 59, False)]
)
def test_a_running_run_with_an_old_heartbeat_is_stale(
    fake: FakeWandb, wandb: WandbClient, state: str, quiet_s: int, stale: bool
) -> None:
    fake.add(tracked(state=state))
    found = wandb.run("train", "tiny-1")
    assert found is not None
    assert found.is_stale(HEARD_S + 60, quiet_s) is stale


def test_w_and_b_is_left_alone_for_longer_each_time_that_it_fails(
    fake: FakeWandb, wandb: WandbClient
) -> None:
    clock = Clock()
    looking = tracker(wandb, clock)
    assert looking.look(a_run()) is not None
    fake.fail(unwell(503), times=ALWAYS)
    for pause_s in (30, 60, 120, 240, 300, 300):
        clock.at_s += 20  # what was found is old
        assert looking.look(a_run()) is None
        asked = len(fake.requests)
        clock.at_s += pause_s - 1
        assert looking.look(a_run()) is None
        assert len(fake.requests) == asked
        clock.at_s += 1
    fake.heal()
    assert looking.look(a_run()) is not None
    fake.fail(unwell(503), times=ALWAYS)
    clock.at_s += 20
    assert looking.look(a_run()) is None
    fake.heal()
    clock.at_s += 30
    assert looking.look(a_run()) is not None, "it starts anew once W&B has answered"


# ------------------------------------------------------------------------------------------------------------
# for real


def test_nothing_of_wandb_is_left_in_a_process_that_asks_it(fake: FakeWandb, tmp_path: Path) -> None:
    """The package's process ends with the one that asks, writes nothing, and sends nothing but the
    queries.
    """
    ask = """
import os, sys
from prime_train.tracker.wandb_client import WandbClient
print(WandbClient(sys.argv[2], url=sys.argv[1]).run("train", "tiny-1", entity="acme").state)
print(*[name for name in os.environ if name.startswith("WANDB")], *[name for name in sys.modules if name.startswith("wandb")])
"""
    env = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")} | {
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
    }
    fake.fail(unwell(503), first=3)
    with tempfile.TemporaryDirectory() as folder:  # the name of a socket in it must be short
        env |= {"HOME": str(tmp_path), "TMPDIR": folder}
        asked = subprocess.run(
            [sys.executable, "-c", ask, fake.url, KEY], env=env, check=True, capture_output=True, text=True
        )
        assert (asked.stdout, asked.stderr) == ("running\n\n", "")
        assert {request.path for request in fake.requests} == {"/graphql"}
        assert not list(Path(folder).iterdir())
        assert not list(tmp_path.iterdir())


def test_a_run_of_which_the_process_of_wandb_was_killed_is_looked_at_again(
    fake: FakeWandb, wandb: WandbClient
) -> None:
    wandb.run("train", "tiny-1", entity="acme")
    (process,) = [
        one for one in psutil.Process().children() if any("wandb_script" in word for word in one.cmdline())
    ]
    process.kill()
    process.wait(HANG_S)
    assert wandb.run("train", "tiny-1", entity="acme") is not None


def test_without_the_package_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(PermanentError, match=r"install it as prime-train\[wandb\]"):
        ApiProcess().ask({})


def training(fake: FakeWandb, folder: Path, attempt: int, *words: str) -> "subprocess.Popen[bytes]":
    """Start a training process with the environment that the agent gives it."""
    run = a_run()
    ours = trainer_for(run.spec).environment(run.spec, attempt=attempt, run_id=run.run_id)
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
    log = (folder / f"said-{attempt}.log").open("wb")
    with log:
        command = [sys.executable, "-c", TRAIN, *words]
        return subprocess.Popen(
            command, env=env, cwd=folder, stdout=subprocess.PIPE, stderr=log, start_new_session=True
        )


def test_a_run_says_that_its_machine_is_taken_away_stays_running_and_is_gone_on_with_by_its_next_attempt(
    tmp_path: Path,
) -> None:
    with FakeWandb() as fake:
        with training(fake, tmp_path, 1, "forever") as first:
            try:
                assert first.stdout is not None
                assert first.stdout.readline() == b"trains\n", (tmp_path / "said-1.log").read_text()
                os.killpg(first.pid, signal.SIGTERM)  # as its agent does when the machine is taken away
                with fake.changed:
                    is_preempting = fake.changed.wait_for(lambda: fake.runs["train", "tiny-1"].preempting, 60)
                assert is_preempting, (tmp_path / "said-1.log").read_text()
            finally:
                # with the process that writes for it, as when a machine is lost
                os.killpg(first.pid, signal.SIGKILL)
        wandb = WandbClient(KEY, url=fake.url)
        lost = wandb.run("train", "tiny-1", entity="acme")
        assert lost is not None
        assert (lost.state, lost.step) == ("running", 2)
        assert lost.is_stale(lost.received_s + 301, 300)
        assert "tiny-1" in lost.notes
        assert wandb.mark_failed("train", "tiny-1", entity="acme", received_by_s=lost.received_s)
        fake.runs["train", "tiny-1"].notes = "what somebody wrote there since"
        with training(fake, tmp_path, 2) as second:
            assert second.wait() == 0, (tmp_path / "said-2.log").read_text()
        done = wandb.run("train", "tiny-1", entity="acme")
        assert done is not None
        assert (done.state, done.step, len(fake.runs)) == ("finished", 5, 1)
        assert done.notes == "what somebody wrote there since"
