"""`prime-train diagnose`: its conclusions from given facts, and the command on real homes."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prime_train.buckets.keys import evidence_key
from prime_train.buckets.open import open_bucket
from prime_train.clock import wall_s
from prime_train.runs.decide.tracker_alerts import TRACKER_LAG_S_MAX
from prime_train.runs.run import Run, RunState
from prime_train.runs.verdict import Gone, Healthy, Sick, Silent, Stalled, Unknown, Verdict
from prime_train.runs.wire import Phase
from prime_train.spec.causes import Cause
from prime_train.status.diagnosis.diagnosis_model import Diagnosis, DiagnosisKind, Facts
from prime_train.status.diagnosis.explanations import LATE_S, diagnosis_of
from prime_train.stores.sqlite.store import SqliteStore
from prime_train.text.invocations import worded
from prime_train.tracker.tracked_run import TrackerRun
from tests import builders as b
from tests.cli.inside import Inside
from tests.fakes.http import ALWAYS
from tests.fakes.wandb import KEY, FakeRun, FakeWandb, unwell

NOW_S = b.T0_S + 5000
WELL = Healthy(Phase.TRAIN, 57)
TRACKED = b.spec(wandb={"project": "train", "entity": "acme"})
TRAINS = replace(b.run(RunState.TRAINING), spec=TRACKED)


def facts(of: Run | None = None, verdict: Verdict | None = None, **changes: Any) -> Facts:
    trains = of or b.run(RunState.TRAINING)
    record = (
        b.record(of, heartbeat=b.heartbeat(7, step=57), heartbeat_s=NOW_S - 12)
        if trains.attempts
        else b.record(of)
    )
    return Facts(record, NOW_S, verdict, **changes)


def received(late_s: int, *, state: str = "running", step: int = 40) -> TrackerRun:
    return TrackerRun(
        "acme", "train", "tiny-1", "tiny-1", state, NOW_S - late_s, step, "", "https://wandb.test/tiny-1"
    )


def kinds(of: Facts) -> list[DiagnosisKind]:
    return [one.kind for one in diagnosis_of(of)]


def only(of: Facts, kind: DiagnosisKind) -> Diagnosis:
    (one,) = [one for one in diagnosis_of(of) if one.kind is kind]
    return one


# -----------------------------------------------------------------------------------------------------------
# how it stands


@pytest.mark.parametrize(
    ("verdict", "kind"),
    [
        (WELL, DiagnosisKind.WELL),
        (Healthy(None, 0), DiagnosisKind.WAITING),
        (replace(WELL, cut_off=True), DiagnosisKind.CUT_OFF),
        (Gone("the provider says so"), DiagnosisKind.LOST),
        (Silent(120, past_limit=False), DiagnosisKind.SILENT),
        (Stalled(Cause.STALLED, 400, 300), DiagnosisKind.STALLED),
        (Sick(Cause.GPU_OOM, "CUDA out of memory", exited=True), DiagnosisKind.SICK),
        (Unknown("HTTP 503"), DiagnosisKind.UNKNOWN),
    ],
)
def test_how_an_attempt_stands_is_what_a_watcher_would_find(verdict: Verdict, kind: DiagnosisKind) -> None:
    assert kinds(facts(verdict=verdict))[0] is kind


@pytest.mark.parametrize(
    "verdict",
    [Silent(120, past_limit=False), Silent(900, past_limit=True), Gone("it says so"), Healthy(None, 0)],
)
def test_where_nobody_serves_it_nothing_is_promised(verdict: Verdict) -> None:
    first, second, *_ = diagnosis_of(facts(verdict=verdict, served=False))
    assert second.kind is DiagnosisKind.UNSERVED
    assert not [
        word for word in ("replaced", "given up", "resumes") if word in first.because + worded(first.advice)
    ]


@pytest.mark.parametrize(
    ("state", "kind", "title"),
    [
        (RunState.SUCCEEDED, DiagnosisKind.FINISHED, "it has finished"),
        (RunState.FAILED, DiagnosisKind.ENDED, "it failed"),
        (RunState.STOPPED, DiagnosisKind.ENDED, "it has stopped and needs a person"),
        (RunState.CANCELLED, DiagnosisKind.ENDED, "it was cancelled at the user's request"),
        (RunState.QUEUED, DiagnosisKind.WAITING, "it waits for its first machine"),
    ],
)
def test_a_run_without_a_machine_says_why(state: RunState, kind: DiagnosisKind, title: str) -> None:
    first = diagnosis_of(facts(b.run(state)))[0]
    assert (first.kind, first.title) == (kind, title)
    assert first.because


def test_between_two_machines_the_loss_of_the_last_one_is_reported() -> None:
    first = diagnosis_of(facts(b.run(RunState.QUEUED, attempt=1)))[0]
    assert first.kind is DiagnosisKind.LOST
    assert "attempt 1: machine preempted" in first.title


# ---------------------------------------------------------------------------------------------------------
# what else was found


def lost(**changes: Any) -> Run:
    return b.run(RunState.QUEUED, attempts=(b.new_attempt(1, RunState.QUEUED, **changes),), attempt=1)


def test_steps_that_were_not_in_the_bucket_are_done_again() -> None:
    found = only(facts(lost(last_step=57, durable_step=50)), DiagnosisKind.INTERRUPTED)
    assert "7 steps are repeated" in found.title
    assert "step 57" in found.because
    assert "machine preempted" in found.because


@pytest.mark.parametrize("saved", [{"durable_step": 57}, {"resumed_step": 57, "durable_step": 0}])
def test_nothing_is_interrupted_where_the_last_step_is_in_the_bucket(saved: dict[str, int]) -> None:
    assert DiagnosisKind.INTERRUPTED not in kinds(facts(lost(last_step=57, **saved)))


def test_attempts_that_died_of_the_same_are_reported_with_their_places() -> None:
    ended = tuple(
        b.new_attempt(n, RunState.QUEUED, cause=Cause.STALLED, offer=b.offer(f"box-{n}")) for n in (1, 2, 3)
    )
    attempts = (replace(ended[0], cause=Cause.PREEMPTED), *ended[1:])
    found = only(facts(b.run(RunState.QUEUED, attempts=attempts, attempt=3)), DiagnosisKind.REPEATED)
    assert "2 attempts in a row: no step within its deadline" in found.title
    assert "box-2, box-3" in found.because
    assert DiagnosisKind.REPEATED not in kinds(facts(lost()))


def test_a_reward_of_0_is_reported_from_the_step_where_it_began() -> None:
    rewards = {step: 0.4 if step < 40 else 0.0 for step in range(1, 58)}
    found = only(facts(rewards=rewards), DiagnosisKind.ZERO_REWARD)
    assert found.title == "reward 0 since step 40"
    assert (
        found.because == "18 steps in a row, up to step 57; the last reward other than 0 was 0.4, at step 39"
    )
    assert (
        "no step had another reward"
        in only(facts(rewards=dict.fromkeys(range(1, 9), 0.0)), DiagnosisKind.ZERO_REWARD).because
    )


@pytest.mark.parametrize(
    "rewards", [{}, dict.fromkeys(range(4), 0.0), dict.fromkeys(range(9), 0.0) | {9: 0.1}]
)
def test_a_reward_of_0_now_and_then_is_no_finding(rewards: dict[int, float]) -> None:
    assert DiagnosisKind.ZERO_REWARD not in kinds(facts(rewards=rewards))


def test_a_loss_that_is_over_and_cost_no_step_is_still_reported() -> None:
    attempts = (
        b.new_attempt(
            1,
            RunState.QUEUED,
            first_step_s=None,
            last_step=0,
            cause=Cause.BOOT_TIMEOUT,
            detail="waited 20 min",
        ),
        b.new_attempt(2),
    )
    found = only(facts(b.run(RunState.TRAINING, attempts=attempts, attempt=2), WELL), DiagnosisKind.REPLACED)
    assert found.title.startswith("attempt 1 ended ")
    assert found.title.endswith(" ago: machine never became reachable")
    assert found.because == "waited 20 min; it had completed no step"


def test_a_machine_that_is_gone_says_what_will_have_to_be_done_again() -> None:
    of = Facts(
        b.record(heartbeat=b.heartbeat(7, step=57), heartbeat_s=NOW_S - 60, committed_step=50),
        NOW_S,
        Gone("the provider says so"),
    )
    found = only(of, DiagnosisKind.INTERRUPTED)
    assert found.title == "between two checkpoints: 7 steps would be repeated"
    assert found.because == "attempt 1 has reached step 57, and step 50 is in the bucket"


def test_a_run_that_diverged_is_said_to_go_on_from_before_the_divergence() -> None:
    lost = b.new_attempt(
        1, RunState.FAILED, last_step=22, durable_step=20, cause=Cause.NOT_FINITE, not_finite_since=13
    )
    found = only(
        Facts(b.record(b.run(RunState.FAILED, attempts=(lost,))), NOW_S, None), DiagnosisKind.INTERRUPTED
    )
    assert (
        found.title
        == "interrupted by a divergence: the run goes on from the newest checkpoint before step 13"
    )
    assert "its checkpoints from step 13 on, up to step 20, hold figures that are not finite" in found.because


@pytest.mark.parametrize(("now", "tense"), [(40, "are"), (57, "were"), (None, "would be")])
def test_steps_are_not_called_lost_any_more_once_they_were_done_again(now: int | None, tense: str) -> None:
    lost = b.new_attempt(1, RunState.QUEUED, last_step=57, durable_step=50)
    state, verdict = (RunState.FAILED, None) if now is None else (RunState.TRAINING, WELL)
    next_one = b.new_attempt(
        2, state, last_step=57, durable_step=0, cause=Cause.FINISHED if now is None else None
    )
    held = b.record(
        b.run(state, attempts=(lost, replace(next_one, last_step=now or 57)), attempt=2),
        heartbeat=b.heartbeat(7, attempt=2, step=now or 57),
    )
    found = only(Facts(held, NOW_S, verdict), DiagnosisKind.INTERRUPTED)
    assert found.title == f"interrupted between two checkpoints: 7 steps {tense} repeated"


@pytest.mark.parametrize(
    ("offers", "steps", "words"),
    [
        (
            ("box", "box"),
            (11, 11),
            "all on box, so it may be that machine; each at step 11, so check what happens at that step",
        ),
        (("a", "b"), (11, 12), "on a, b, so it is not one machine; at steps 11, 12"),
        (("a", "b"), (0, 0), "on a, b, so it is not one machine; none completed a step"),
    ],
)
def test_what_alike_ends_share_points_to_the_machine_or_to_the_code(
    offers: tuple[str, str], steps: tuple[int, int], words: str
) -> None:
    ended = [
        b.new_attempt(
            n, RunState.QUEUED, cause=Cause.TRAINER_ERROR, detail="", offer=b.offer(offer), last_step=step
        )
        for n, (offer, step) in enumerate(zip(offers, steps, strict=True), 1)
    ]
    assert (
        only(facts(b.run(RunState.STOPPED, attempts=tuple(ended), attempt=2)), DiagnosisKind.REPEATED).because
        == words
    )


def test_what_was_reported_of_attempts_that_ended_alike_is_reported() -> None:
    output = ["the open-file limit is 20000", "the open-file limit is 20000", "the disk has 3 GiB"]
    ended = [
        b.new_attempt(n, RunState.QUEUED, cause=Cause.PREFLIGHT_FAILED, detail=text)
        for n, text in enumerate(output, 1)
    ]
    two, three = (b.run(RunState.STOPPED, attempts=tuple(ended[:count]), attempt=count) for count in (2, 3))
    assert only(facts(two), DiagnosisKind.REPEATED).because.endswith(
        "; each said: the open-file limit is 20000"
    )
    assert only(facts(three), DiagnosisKind.REPEATED).because.endswith("; the last said: the disk has 3 GiB")


def test_what_is_no_longer_done_by_itself_is_no_advice() -> None:
    (ended, *_) = diagnosis_of(facts(replace(b.run(RunState.STOPPED), cause=Cause.PREFLIGHT_FAILED)))
    assert worded(ended.advice).startswith("Then prime-train resume")


def test_what_to_do_is_reported_once_and_names_the_run() -> None:
    why = "the budget of $5.00 is spent. Raise budget.usd."
    (ended, *_) = diagnosis_of(facts(replace(b.run(RunState.STOPPED), cause=Cause.BUDGET_SPENT, why=why)))
    assert ended.because == "the budget of $5.00 is spent (attempt 1, at step 10)"
    assert worded(ended.advice).startswith("Raise budget.usd. Then prime-train resume tiny-1 --usd ")


@pytest.mark.parametrize(
    ("cause", "option"),
    [
        (Cause.BUDGET_SPENT, "--usd"),
        (Cause.HOURS_SPENT, "--hours"),
        (Cause.DEADLINE, "--deadline"),
        (Cause.IMPORT_ERROR, "--config FILE"),
    ],
)
def test_the_advice_names_the_option_that_helps_and_no_other(cause: Cause, option: str) -> None:
    advice = worded(diagnosis_of(facts(replace(b.run(RunState.STOPPED), cause=cause)))[0].advice)
    assert f"prime-train resume tiny-1 {option}" in advice
    assert advice.count("--") == 1
    assert "launch it anew" not in advice


def test_a_reward_that_went_with_a_resume_says_so() -> None:
    resumed = b.run(
        RunState.TRAINING,
        attempt=2,
        attempts=(b.new_attempt(1, RunState.QUEUED), b.new_attempt(2, resumed_step=39)),
    )
    rewards = {step: 0.4 if step < 40 else 0.0 for step in range(1, 58)}
    assert only(facts(resumed, WELL, rewards=rewards), DiagnosisKind.ZERO_REWARD).because.endswith(
        "attempt 2 resumed there"
    )


# ------------------------------------------------------------------------------------------------------------
# W&B


@pytest.mark.parametrize(
    ("late_s", "kind"),
    [
        (LATE_S, None),
        (LATE_S + 1, DiagnosisKind.TRACKER_LATE),
        (TRACKER_LAG_S_MAX, DiagnosisKind.TRACKER_LATE),
        (TRACKER_LAG_S_MAX + 1, DiagnosisKind.TRACKER_LOST),
    ],
)
def test_a_run_that_sends_heartbeats_is_not_dead_because_its_tracker_is_late(
    late_s: int, kind: DiagnosisKind | None
) -> None:
    found = kinds(facts(TRAINS, WELL, tracker=received(late_s)))
    assert found == [DiagnosisKind.WELL, kind] if kind is not None else [DiagnosisKind.WELL]


def test_being_late_is_reported_with_both_steps() -> None:
    found = only(facts(TRAINS, WELL, tracker=received(1500)), DiagnosisKind.TRACKER_LATE)
    assert (
        found.because
        == "its last heartbeat came 12 s ago at step 57, and W&B last received data 25 min ago at step 40"
    )


def test_a_lost_run_that_w_and_b_calls_running_is_stale_there() -> None:
    gone = Gone("the provider says so")
    assert DiagnosisKind.TRACKER_STALE in kinds(facts(TRAINS, gone, tracker=received(600)))
    assert DiagnosisKind.TRACKER_STALE not in kinds(
        facts(TRAINS, gone, tracker=received(600, state="crashed"))
    )
    assert kinds(
        facts(replace(b.run(RunState.SUCCEEDED), spec=TRACKED), tracker=received(600, state="finished"))
    ) == [DiagnosisKind.FINISHED]


def test_a_tracker_that_cannot_be_queried_is_reported_and_takes_nothing_back() -> None:
    assert kinds(facts(TRAINS, WELL, tracker_error="W&B did not answer within 10 s")) == [
        DiagnosisKind.WELL,
        DiagnosisKind.TRACKER_UNKNOWN,
    ]


def test_a_run_that_has_trained_and_that_w_and_b_never_heard_of_is_reported_so() -> None:
    found = only(facts(TRAINS, WELL), DiagnosisKind.TRACKER_LOST)
    assert found.title == "W&B has never received data from it"
    assert "WANDB_RUN_ID" in worded(found.advice)
    assert kinds(facts(replace(b.run(RunState.STARTING), spec=TRACKED), Healthy(Phase.SETUP, 0))) == [
        DiagnosisKind.WELL
    ]


def test_a_machine_that_is_only_silent_is_not_yet_dead_for_w_and_b() -> None:
    assert DiagnosisKind.TRACKER_STALE not in kinds(
        facts(TRAINS, Silent(120, past_limit=False), tracker=received(600))
    )


# ------------------------------------------------------------------------------------------------------------
# the verb


@pytest.fixture(name="shell")
def _shell(tmp_path: Path) -> Inside:
    return Inside(tmp_path)


@pytest.fixture(name="fake")
def _fake(tmp_path: Path) -> Iterator[FakeWandb]:
    with FakeWandb() as fake:
        yield fake


def stored(shell: Inside, run: Run) -> None:
    shell.home.mkdir()
    assert SqliteStore(shell.home / "control.sqlite").create(run)


def output(shell: Inside, *words: str, **env: str) -> str:
    done = shell.run("diagnose", "tiny-1", *words, **env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_run_that_failed_says_why_and_what_was_kept(shell: Inside) -> None:
    stored(shell, replace(b.run(RunState.FAILED), why="import error: no module named flash_attn"))
    bucket = open_bucket((shell.home / "bucket").as_uri(), make=True)
    bucket.put(
        evidence_key("tiny-1", 1, "trainer.log"), f"ImportError: flash_attn\ntoken hf_{'x' * 30}\n".encode()
    )
    text = output(shell)
    assert text.startswith("tiny-1: failed, attempt 1, step 10, newest checkpoint: none yet\n")
    advice = "Add the package to `setup`, or pin versions that fit one another."
    assert (
        f"because: import error: no module named flash_attn (attempt 1, at step 10)\n  do: {advice} Then "
        in text
    )
    assert "interrupted between two checkpoints: 10 steps" in text
    assert "evidence/tiny-1/e1/trainer.log" in text
    assert "ImportError: flash_attn\ntoken (hidden)" in text


def test_a_run_whose_machine_is_gone_is_reported_so_before_any_watcher_acts(shell: Inside) -> None:
    stored(shell, b.run(RunState.TRAINING))
    found = json.loads(output(shell, "--json"))
    assert found["run"] == "tiny-1"
    assert found["status"]["state"] == "training"
    assert found["conclusions"][0]["kind"] == "lost"
    assert found["wandb"] == {"url": "", "seen": None}
    assert found["evidence"] == []


def test_the_rewards_are_the_trainers_own(shell: Inside) -> None:
    stored(shell, replace(b.run(RunState.STOPPED), spec=b.spec(trainer={"progress": {"file": "m.jsonl"}})))
    rows = "".join(
        json.dumps({"step": step, "reward": 0.5 if step < 20 else 0.0}) + "\n" for step in range(1, 41)
    )
    open_bucket((shell.home / "bucket").as_uri(), make=True).put(
        evidence_key("tiny-1", 1, "metrics.jsonl"), rows.encode()
    )
    assert "reward 0 since step 20" in output(shell)


def test_what_w_and_b_says_is_requested_and_linked(shell: Inside, fake: FakeWandb) -> None:
    stored(shell, replace(b.run(RunState.FAILED), spec=TRACKED))
    fake.add(FakeRun("train", "tiny-1", heartbeat_s=wall_s() - 600, step=9))
    env = {"WANDB_API_KEY": KEY, "WANDB_BASE_URL": fake.url, "WANDB_DIR": str(shell.here)}
    text = output(shell, **env)
    assert f"W&B: {fake.url}/acme/train/runs/tiny-1" in text
    assert "W&B still shows it as running" in text
    fake.fail(unwell(403), times=ALWAYS)
    text = output(shell, **env)
    assert "W&B did not answer" in text
    assert "W&B: https://wandb.ai/acme/train/runs/tiny-1" in text
    assert KEY not in text


def test_without_a_key_w_and_b_is_not_queried(shell: Inside) -> None:
    stored(shell, replace(b.run(RunState.FAILED), spec=TRACKED))
    assert "because: not checked, because WANDB_API_KEY is not set" in output(shell, WANDB_API_KEY="")


def test_a_run_that_is_not_there_is_a_wrong_word(shell: Inside) -> None:
    done = shell.run("diagnose", "nobody")
    assert done.returncode == 2
    assert "there is no run nobody" in done.stderr
