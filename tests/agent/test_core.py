"""The agent's decisions over histories."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_agent import effects as e
from prime_agent import events as v
from prime_agent.heartbeat_channel import HeartbeatChannel, refused, sent
from prime_agent.state import Job, initial
from prime_agent.state_machine import EXIT_S_MAX, STUCK_S_MAX, next_tick_s, step
from prime_agent.trainer.services import ProbeReply, ServiceHealth
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.wire import Deletions, Order, Outcome, Phase, Reply, Traffic
from prime_train.spec.causes import Action, Cause
from prime_train.trainers.of_spec import Progress
from prime_train.trainers.services import Service
from tests.agent.gpu.gpu_snapshots import BUSY, EMPTY, LOST, sensed
from tests.agent.histories import FENCED, OK, History, ordered, steps
from tests.builders import RUN_ID, digest, spec

WITH_SENTINEL = {"sentinel": "COMPLETE"}
KILL = e.SignalTrainer(e.Force.KILL)
ASK = e.SignalTrainer(e.Force.ASK)
SERVICE = Service("the inference server", Cause.INFERENCE_FAILED, 180, gpus=(0,), ports=(8100,))


# -------------------------------------------------------------------------------------------------------- up
# to training


def test_phases_follow_one_another_and_those_without_work_are_left_out() -> None:
    history = History().begin()
    assert history.of(e.RunPhase) == [
        e.RunPhase(Phase.PREFLIGHT),
        e.RunPhase(Phase.SETUP),
        e.RunPhase(Phase.VERIFY),
    ]
    assert history.of(e.StartTrainer) == [e.StartTrainer()]


def test_smoke_and_restore_are_run_where_there_is_something_to_do() -> None:
    history = History(spec(smoke={"command": "true"}), resume_step=25).begin()
    assert [effect.phase for effect in history.of(e.RunPhase)][-2:] == [Phase.SMOKE, Phase.RESTORE]


def test_the_first_heartbeat_goes_out_at_once_and_each_phase_is_news() -> None:
    history = History().begin()
    assert [(heartbeat.seq, heartbeat.phase, heartbeat.news) for heartbeat in history.heartbeats] == [
        (1, Phase.PREFLIGHT, True),
        (2, Phase.SETUP, True),
        (3, Phase.VERIFY, True),
        (4, Phase.TRAIN, True),
    ]


def test_heartbeats_come_at_the_interval_the_reply_asks_for_give_or_take_a_tenth() -> None:
    history = History().begin()
    before = len(history.heartbeats)
    history.wait(3000)
    assert 90 <= len(history.heartbeats) - before <= 110
    assert not any(heartbeat.news for heartbeat in history.heartbeats[before:])


def test_a_failed_phase_ends_the_attempt_with_its_cause_after_its_log_was_kept() -> None:
    history = History()
    history.hear(v.Started())
    history.hear(v.PhaseDone(Phase.PREFLIGHT))
    failed = history.hear(
        v.PhaseFailed(Phase.SETUP, Cause.SETUP_FAILED, "`pip install x` ended with code 1", "no such package")
    )
    assert e.KeepLog(Phase.SETUP) in failed
    assert not history.of(e.SendExit)
    done = history.hear(v.LogKept())
    (text,) = [effect.heartbeat for effect in done if isinstance(effect, e.SendExit)]
    assert text.phase is Phase.EXITED
    assert text.exit is not None
    assert (text.exit.cause, text.exit.log_tail) == (Cause.SETUP_FAILED, "no such package")
    assert done[-1] == e.Exit(e.Leave.REPORTED)


def test_a_log_that_cannot_be_kept_delays_the_exit_by_half_a_minute_at_most() -> None:
    history = History()
    history.hear(v.Started())
    history.hear(v.PhaseFailed(Phase.PREFLIGHT, Cause.PREFLIGHT_FAILED, "no room"))
    assert e.Exit(e.Leave.REPORTED) in history.wait(31)


def test_the_outcome_of_a_phase_that_is_over_means_nothing() -> None:
    history = History().begin()
    assert not [x for x in history.hear(v.PhaseDone(Phase.SETUP)) if isinstance(x, e.RunPhase)]
    history.hear(v.PhaseFailed(Phase.SETUP, Cause.SETUP_FAILED, "late"))
    assert history.state.running
    assert history.state.flush is None


# ------------------------------------------------------------------------------------------------------------
# progress


def test_the_first_step_is_news_and_the_next_ones_are_not() -> None:
    history = History().begin()
    first = history.hear(steps(1), after_s=60)
    assert [
        (effect.heartbeat.step, effect.heartbeat.news)
        for effect in first
        if isinstance(effect, e.SendHeartbeat)
    ] == [(1, True)]
    assert not [x for x in history.hear(steps(2), after_s=1) if isinstance(x, e.SendHeartbeat)]


def test_the_age_of_a_step_counts_from_its_rise_and_repeated_steps_are_no_rise() -> None:
    history = History().begin().train(1, 2)
    history.hear(steps(2), after_s=20)
    history.hear(steps(1), after_s=20)
    history.wait(40)
    assert history.heartbeats[-1].step == 2
    assert history.heartbeats[-1].step_age_s >= 40


def test_slow_steps_are_learned_from_the_sixth_step_time_on() -> None:
    history = History().begin().train(1, *range(2, 7), each_s=100)
    assert history.state.steps.durations_s == ()
    history.train(*range(7, 26), each_s=2).train(26, each_s=9)
    history.wait(40)
    assert history.heartbeats[-1].step_slow_s == 2
    history.train(27, each_s=9)
    history.wait(40)
    assert history.heartbeats[-1].step_slow_s == 9


def test_steps_read_together_share_the_time() -> None:
    history = History().begin().train(*range(1, 8))
    history.hear(steps(8, 9, 10, 11), after_s=2)
    assert history.state.steps.durations_s[-4:] == (0.5, 0.5, 0.5, 0.5)


@pytest.mark.parametrize("first", [1, 24])
def test_a_trainer_that_starts_over_is_killed_before_it_does_harm(first: int) -> None:
    history = History(resume_step=25).begin()
    assert KILL in history.hear(steps(first), after_s=5)
    history.end(v.TrainerExited(-9, Cause.KILLED))
    (text,) = [heartbeat for heartbeat in history.heartbeats if heartbeat.exit]
    assert text.exit is not None
    assert text.exit.cause is Cause.RESUME_IGNORED
    assert f"step {first}" in text.exit.detail


@pytest.mark.parametrize(
    ("first", "is_killed"),
    [(1, True), (9, True), (10, False), (24, False), (25, False), (26, False), (30, False)],
)
def test_a_resumed_trainer_that_reports_what_no_fresh_start_would_is_left_alone(
    first: int, is_killed: bool
) -> None:
    history = History(resume_step=25).begin()
    history.hear(v.Restored(fresh_below=10))
    assert (KILL in history.hear(steps(first), after_s=5)) is is_killed


def test_the_second_number_of_a_first_attempt_bounds_what_a_fresh_start_would_report() -> None:
    history = History().begin()
    history.hear(steps(5), after_s=1)
    assert history.state.fresh_below is None
    history.hear(steps(5, 10, 15), after_s=1)
    assert history.state.fresh_below == 10


def test_a_trainer_that_started_over_and_reached_the_last_step_before_it_was_killed_has_not_finished() -> (
    None
):
    history = History(spec(trainer={"steps": 40}), resume_step=25).begin()
    history.hear(v.CheckpointsScanned((30,), saving=False))
    history.hear(steps(1), after_s=1)
    history.hear(steps(40))
    history.hear(v.CheckpointsScanned((30, 40), saving=False))
    history.end(v.TrainerExited(0, Cause.FINISHED))
    (text,) = [heartbeat for heartbeat in history.heartbeats if heartbeat.exit]
    assert text.exit is not None
    assert text.exit.cause is Cause.RESUME_IGNORED
    assert not history.of(e.Upload)


def test_the_first_checkpoint_after_a_resume_waits_for_the_first_step_or_a_minute() -> None:
    history = History(resume_step=25).begin()
    assert not history.hear(v.CheckpointsScanned((30,), saving=False)).count(e.Upload(30))
    assert e.Upload(30) in history.hear(steps(26), after_s=1)
    silent = History(resume_step=25).begin()
    silent.hear(v.CheckpointsScanned((30,), saving=False))
    assert e.Upload(30) in silent.wait(60)


def test_a_trainer_that_counts_anew_and_has_loaded_nothing_is_killed() -> None:
    history = History(resume_step=25).begin()
    assert KILL in history.hear(v.ResumeMissed(26))


def test_the_next_step_after_a_resume_is_right() -> None:
    history = History(resume_step=25).begin().train(26, 27)
    assert not history.of(e.SignalTrainer)
    assert history.state.steps.step == 27


def test_a_line_that_only_names_the_resumed_step_is_no_step() -> None:
    history = History(resume_step=25).begin()
    history.hear(steps(25, loss=None), after_s=1)
    assert not history.of(e.SignalTrainer)
    assert history.state.steps.step == 0


def test_ten_zero_rewards_in_a_row_save_first_and_then_stop() -> None:
    history = History().begin()
    history.hear(steps(*range(1, 10), reward=0.0), after_s=1)
    assert not history.of(e.SignalTrainer)
    assert ASK in history.hear(steps(10, reward=0.0), after_s=1)
    history.end(v.TrainerExited(143, Cause.KILLED))
    assert history.heartbeats[-1].exit is not None
    assert history.heartbeats[-1].exit.cause is Cause.ZERO_REWARD


def test_a_reward_above_zero_and_a_step_reported_twice_do_not_count() -> None:
    history = History().begin()
    history.hear(steps(*range(1, 10), reward=0.0), after_s=1)
    history.hear(steps(9, reward=0.0), after_s=1)
    history.hear(steps(10, reward=0.1), after_s=1)
    history.hear(steps(*range(11, 20), reward=0.0), after_s=1)
    history.hear(steps(20), after_s=1)
    assert not history.of(e.SignalTrainer)


def test_zero_rewards_are_nobodys_business_where_the_breaker_is_off() -> None:
    history = History(spec(health={"zero_reward_steps": 0})).begin()
    history.hear(steps(*range(1, 100), reward=0.0), after_s=1)
    assert not history.of(e.SignalTrainer)


# ------------------------------------------------------------------------------------------------------- how
# it comes to an end


def test_exit_code_0_is_reported_as_finished_and_left_to_the_control_plane_to_judge() -> None:
    history = History(spec(trainer={"steps": 100}, checkpoints=WITH_SENTINEL)).begin().train(50)
    history.end(v.TrainerExited(0, Cause.FINISHED))
    text = history.heartbeats[-1]
    assert text.exit is not None
    assert (text.exit.cause, text.exit.code, text.step) == (Cause.FINISHED, 0, 50)
    assert history.of(e.Exit) == [e.Exit(e.Leave.REPORTED)]


def test_a_crash_carries_its_cause_code_and_last_lines_and_its_log_is_kept() -> None:
    history = History().begin().train(1)
    history.end(v.TrainerExited(1, Cause.GPU_OOM, "CUDA out of memory", "Traceback ..."))
    assert e.KeepLog(Phase.TRAIN) in history.effects
    exit_ = history.heartbeats[-1].exit
    assert exit_ is not None
    assert (exit_.cause, exit_.code, exit_.detail, exit_.log_tail) == (
        Cause.GPU_OOM,
        1,
        "CUDA out of memory",
        "Traceback ...",
    )


@pytest.mark.parametrize(
    ("reported", "last", "cause"),
    [(2, 2, Cause.FINISHED), (1, 2, Cause.FINISHED), (2, 3, Cause.TRAINER_ERROR)],
)
def test_a_crash_at_the_exit_after_the_last_step_is_durable_is_a_note_of_a_finished_run(
    reported: int, last: int, cause: Cause
) -> None:
    """The checkpoint of the last step shows that it was reached, although the trainer reports only every few
    steps.
    """
    history = (
        History(spec(trainer={"steps": last}, checkpoints=WITH_SENTINEL))
        .begin()
        .train(*range(1, reported + 1))
    )
    history.look()
    history.hear(v.TrainerExited(139, Cause.TRAINER_ERROR, "killed by SIGSEGV", action=Action.STOP))
    history.hear(v.LogKept())
    history.hear(v.CheckpointsScanned((2,), saving=False))
    history.hear(v.Uploaded(2, "runs/tiny-1/manifests/2"), after_s=30)
    history.hear(v.CommitAnswered(2, OK))
    history.look()
    exit_ = history.of(e.SendExit)[-1].heartbeat.exit
    assert exit_ is not None
    assert (exit_.cause, exit_.code, exit_.detail) == (cause, 139, "killed by SIGSEGV")


def test_a_full_disk_lets_the_janitor_try_before_the_flush() -> None:
    history = History().begin().train(1)
    history.look()
    done = history.hear(v.TrainerExited(1, Cause.DISK_FULL, "No space left on device"))
    assert done.index(e.FreeDiskSpace()) < done.index(e.ScanCheckpoints())


def test_complete_checkpoints_are_flushed_and_committed_before_the_exit_is_reported() -> None:
    history = History().begin().train(1, 2)
    history.look()
    history.hear(v.TrainerExited(1, Cause.CUDA_ERROR))
    history.hear(v.LogKept())
    assert e.Upload(2) in history.hear(v.CheckpointsScanned((2,), saving=False))
    assert not history.of(e.SendExit)
    history.hear(v.Uploaded(2, "runs/tiny-1/manifests/2"), after_s=30)
    assert history.of(e.SendCommit)[-1].commit.step == 2
    assert not history.of(e.SendExit)
    history.hear(v.CommitAnswered(2, OK))
    history.look()
    assert history.of(e.SendExit)[0].heartbeat.uploaded_step == 2


def test_a_look_that_was_under_way_when_the_trainer_ended_is_not_the_last_one() -> None:
    history = History().begin().train(1)
    assert history.state.transfers.scanning
    history.hear(v.TrainerExited(0, Cause.FINISHED))
    history.hear(v.LogKept())
    history.hear(v.CheckpointsScanned((), saving=False))
    assert not history.of(e.SendExit)
    history.hear(v.CheckpointsScanned((), saving=False))
    assert history.of(e.SendExit)


def refuse_uploads(history: History) -> None:
    """Let every scan find step 1, and every upload of it fail, for an hour."""
    for _ in range(1800):
        if history.state.transfers.scanning:
            history.hear(v.CheckpointsScanned((1,), saving=False))
        if history.state.transfers.uploading:
            history.hear(v.UploadFailed(1, "503"))
        history.wait(2)


def test_a_last_checkpoint_the_bucket_does_not_take_is_not_flushed_when_a_drain_presses() -> None:
    history = (
        History(spec(health={"drain_s": 60, "saving_s": 300}, checkpoints=WITH_SENTINEL)).begin().train(1)
    )
    history.look()
    history.hear(v.HeartbeatAnswered(ordered(Order.DRAIN)))
    history.hear(v.TrainerExited(0, Cause.STOPPED_GRACEFULLY))
    begun_s = history.now_s
    refuse_uploads(history)
    assert history.of(e.Exit) == [e.Exit(e.Leave.REPORTED)]
    text = history.of(e.SendExit)[-1].heartbeat
    assert text.exit is not None
    assert (text.exit.cause, text.exit.detail) == (Cause.UPLOAD_FAILED, "step 1 was not uploaded: 503")
    assert history.state.exit_until_s is not None
    assert history.state.exit_until_s - begun_s - 3600 == pytest.approx(60, abs=5)


@pytest.mark.parametrize(
    "limit", [{"deadline_in_s": 600}, {"train_s_max": 600}, {"save_in_s": 600, "spent_in_s": 1200}]
)
def test_at_a_limit_of_its_budget_a_last_checkpoint_that_was_not_uploaded_is_reported(
    limit: dict[str, Any],
) -> None:
    history = (
        History(spec(health={"drain_s": 60, "saving_s": 300}, checkpoints=WITH_SENTINEL), **limit)
        .begin()
        .train(1)
    )
    history.look()
    history.wait(620)
    assert history.of(e.SignalTrainer) == [ASK]
    history.hear(v.TrainerExited(0, Cause.KILLED))
    refuse_uploads(history)
    text = history.of(e.SendExit)[-1].heartbeat
    assert text.exit is not None
    assert (text.exit.cause, text.exit.detail) == (Cause.UPLOAD_FAILED, "step 1 was not uploaded: 503")


def test_a_run_that_has_finished_waits_for_its_last_checkpoint_until_it_is_durable_and_says_so() -> None:
    history = (
        History(spec(health={"drain_s": 60, "saving_s": 60}, checkpoints=WITH_SENTINEL)).begin().train(1)
    )
    history.look()
    history.hear(v.TrainerExited(0, Cause.FINISHED))
    refuse_uploads(history)
    assert not history.of(e.SendExit)
    last = history.heartbeats[-1]
    assert (last.phase, last.upload_pending) == (Phase.FLUSH, True)
    assert "uploads in a row have failed; step 1 was not uploaded: 503" in last.upload_problem
    history.hear(v.LogKept())
    history.look(1)
    history.wait(60)
    history.hear(v.Uploaded(1, "key-1"))
    assert not history.of(e.SendExit)
    history.hear(v.CommitAnswered(1, OK))
    history.look()
    text = history.of(e.SendExit)[-1].heartbeat
    assert text.exit is not None
    assert (text.exit.cause, text.exit.saved_step, text.upload_pending, text.upload_problem) == (
        Cause.FINISHED,
        1,
        False,
        "",
    )


def test_an_ordered_end_of_the_wait_for_the_last_checkpoint_is_no_success() -> None:
    history = (
        History(spec(health={"drain_s": 60, "saving_s": 300}, checkpoints=WITH_SENTINEL)).begin().train(1)
    )
    history.look()
    history.hear(v.TrainerExited(0, Cause.FINISHED))
    history.look(1)
    history.hear(v.HeartbeatAnswered(ordered(Order.DRAIN)))
    refuse_uploads(history)
    text = history.of(e.SendExit)[-1].heartbeat
    assert text.exit is not None
    assert (text.exit.cause, text.exit.saved_step) == (Cause.UPLOAD_FAILED, 1)


@pytest.mark.parametrize(
    ("last_look", "words"),
    [
        (
            v.CheckpointsScanned((), saving=False, removed=True),
            "the trainer's checkpoint of step 9 was removed",
        ),
        (v.CheckpointsScanned((), saving=False, begun=9), "or incomplete"),
    ],
)
def test_a_checkpoint_that_is_gone_when_the_trainer_has_ended_is_no_success(
    last_look: v.CheckpointsScanned, words: str
) -> None:
    history = History(spec(checkpoints=WITH_SENTINEL)).begin().train(*range(1, 10))
    history.look(3)
    history.hear(v.Uploaded(3, "key-3"))
    history.hear(v.CommitAnswered(3, OK))
    history.look()
    while not history.state.transfers.scanning:
        history.wait(1)
    history.hear(v.CheckpointsScanned((), saving=True, begun=9))
    history.hear(v.TrainerExited(0, Cause.FINISHED))
    history.hear(v.LogKept())
    while not history.of(e.SendExit):
        history.hear(last_look) if history.state.transfers.scanning else history.wait(1)
    text = history.of(e.SendExit)[-1].heartbeat.exit
    assert text is not None
    assert (text.cause, text.saved_step) == (Cause.UPLOAD_FAILED, 9)
    assert words in text.detail
    assert "the newest checkpoint in the bucket is of step 3" in text.detail


def test_a_trainer_that_has_removed_its_folder_at_a_later_step_than_the_last_durable_one_is_no_success() -> (
    None
):
    history = History(spec(checkpoints=WITH_SENTINEL)).begin().train(*range(1, 10))
    history.look(3)
    history.hear(v.Uploaded(3, "key-3"))
    history.hear(v.CommitAnswered(3, OK))
    history.hear(v.TrainerExited(0, Cause.FINISHED))
    history.hear(v.LogKept())
    while not history.of(e.SendExit):
        history.hear(
            v.CheckpointsScanned((), saving=False, removed=True)
        ) if history.state.transfers.scanning else history.wait(1)
    text = history.of(e.SendExit)[-1].heartbeat.exit
    assert text is not None
    assert text.cause is Cause.UPLOAD_FAILED
    assert "removed its checkpoint folder at the end, at step 9" in text.detail


# ------------------------------------------------------------------------------------------------- uploads
# that are in trouble


def fail_upload(history: History, step: int) -> None:
    """Let the next upload fail, as soon as a scan has found the step."""
    while history.state.transfers.uploading is None:
        history.hear(
            v.CheckpointsScanned((step,), saving=False)
        ) if history.state.transfers.scanning else history.wait(1)
    history.hear(v.UploadFailed(step, "403"))


def test_uploads_that_fail_again_and_again_are_reported_with_the_reason_until_one_is_committed() -> None:
    history = History(spec(checkpoints=WITH_SENTINEL)).begin().train(1)
    for _ in range(2):
        fail_upload(history, 1)
    history.wait(60)
    assert history.heartbeats[-1].upload_problem == ""
    fail_upload(history, 1)
    history.wait(60)
    assert (
        history.heartbeats[-1].upload_problem
        == "3 uploads in a row have failed; step 1 was not uploaded: 403"
    )
    history.hear(v.CheckpointsScanned((1,), saving=False))
    history.wait(60)
    history.hear(v.Uploaded(1, "key-1"))
    history.wait(60)
    assert history.heartbeats[-1].upload_problem
    history.hear(v.CommitAnswered(1, OK))
    history.wait(60)
    assert history.heartbeats[-1].upload_problem == ""


def save_one(history: History, number: int, *, wait_s: float) -> None:
    history.train(number)
    while not history.state.transfers.scanning:
        history.wait(1)
    history.hear(v.CheckpointsScanned((number,), saving=False))
    history.wait(wait_s)


def test_uploads_that_fall_behind_by_more_than_two_intervals_are_reported() -> None:
    history = History(spec(checkpoints=WITH_SENTINEL)).begin()
    save_one(history, 1, wait_s=100)
    save_one(history, 2, wait_s=80)
    assert history.heartbeats[-1].upload_problem == ""
    for number in (3, 4, 5):
        save_one(history, number, wait_s=100)
    assert "the checkpoint of step 1 was saved" in history.heartbeats[-1].upload_problem
    history.hear(v.Uploaded(1, "key-1"))
    history.hear(v.CommitAnswered(1, OK))
    history.wait(40)
    assert history.heartbeats[-1].upload_problem, "four newer ones are not durable yet"
    history.hear(v.Uploaded(5, "key-5"))
    history.hear(v.CommitAnswered(5, OK))
    history.wait(40)
    assert history.heartbeats[-1].upload_problem == ""


@pytest.mark.parametrize(
    ("code", "requested", "settled"),
    [(0, False, True), (143, True, True), (1, False, False), (-9, False, False)],
)
def test_only_a_crash_leaves_checkpoints_that_must_have_settled_before_it(
    code: int, requested: bool, settled: bool
) -> None:
    history = History(spec()).begin().train(1)
    history.look()
    if requested:
        history.hear(v.HeartbeatAnswered(ordered(Order.DRAIN)))
    history.hear(v.TrainerExited(code, Cause.KILLED))
    assert history.of(e.ScanCheckpoints)[-1] == e.ScanCheckpoints(settled)


def test_what_was_being_written_when_the_trainer_was_killed_is_not_taken_for_complete() -> None:
    history = History(spec(trainer={"stop_s": 10})).begin().train(1)
    history.look()
    history.hear(v.SigTerm())
    history.wait(11)
    history.look()
    history.hear(v.TrainerExited(-9, Cause.KILLED))
    assert history.of(e.ScanCheckpoints)[-1] == e.ScanCheckpoints(settled=False)


# ---------------------------------------------------------------------------------------------------------
# asked to leave


def test_a_drain_asks_the_trainer_to_save_and_kills_it_only_after_its_time() -> None:
    history = History(spec(trainer={"stop_s": 60})).begin().train(1)
    assert ASK in history.hear(v.HeartbeatAnswered(ordered(Order.DRAIN, "user")))
    history.wait(59)
    assert KILL not in history.effects
    history.wait(2)
    assert history.effects.count(KILL) == 1
    history.end(v.TrainerExited(-9, Cause.KILLED))
    exit_ = history.heartbeats[-1].exit
    assert exit_ is not None
    assert (exit_.cause, exit_.detail) == (Cause.STOPPED_GRACEFULLY, "user")


def test_an_order_that_is_repeated_in_every_reply_is_obeyed_once() -> None:
    history = History().begin().train(1)
    for _ in range(5):
        history.hear(v.HeartbeatAnswered(ordered(Order.DRAIN)), after_s=1)
        history.hear(v.HeartbeatAnswered(ordered(Order.EVIDENCE)), after_s=1)
    assert history.effects.count(ASK) == 1
    assert history.effects.count(e.GatherEvidence()) == 1


def test_a_drained_trainer_that_reaches_its_last_step_has_finished() -> None:
    history = History(spec(trainer={"steps": 2}, checkpoints=WITH_SENTINEL)).begin().train(1)
    history.hear(v.HeartbeatAnswered(ordered(Order.DRAIN)))
    history.train(2)
    history.end(v.TrainerExited(0, Cause.FINISHED))
    assert history.heartbeats[-1].exit is not None
    assert history.heartbeats[-1].exit.cause is Cause.FINISHED


@pytest.mark.parametrize("phase", [Phase.PREFLIGHT, Phase.SETUP, Phase.VERIFY])
def test_before_training_a_drain_ends_the_attempt_at_once(phase: Phase) -> None:
    history = History()
    history.hear(v.Started())
    while history.state.phase is not phase:
        history.hear(v.PhaseDone(history.state.phase))
    done = history.hear(v.HeartbeatAnswered(ordered(Order.DRAIN)))
    assert e.CancelPhase() in done
    assert done[-1] == e.Exit(e.Leave.REPORTED)
    assert not history.of(e.StartTrainer)


def test_sigterm_is_reported_at_once_and_the_trainer_saves() -> None:
    history = History().begin().train(1)
    done = history.hear(v.SigTerm(), after_s=3)
    assert ASK in done
    assert [(x.heartbeat.preempting, x.heartbeat.news) for x in done if isinstance(x, e.SendHeartbeat)] == [
        (True, True)
    ]
    history.end(v.TrainerExited(143, Cause.KILLED))
    assert history.heartbeats[-1].exit is not None
    assert history.heartbeats[-1].exit.cause is Cause.PREEMPTED
    assert history.heartbeats[-1].preempting


def test_sigterm_is_tried_even_while_nobody_answers() -> None:
    history = History(answers=False).begin()
    history.hear(v.HeartbeatFailed("refused"))
    assert [x for x in history.hear(v.SigTerm(), after_s=1) if isinstance(x, e.SendHeartbeat)]


def test_sigterm_in_the_middle_of_a_set_up_ends_it() -> None:
    history = History()
    history.hear(v.Started())
    done = history.hear(v.SigTerm())
    assert done[-1] == e.Exit(e.Leave.REPORTED)
    assert history.heartbeats[-1].exit is not None
    assert history.heartbeats[-1].exit.cause is Cause.PREEMPTED


def test_the_hours_count_from_the_first_step_however_long_the_set_up_takes() -> None:
    history = History(train_s_max=600)
    history.hear(v.Started())
    history.hear(v.PhaseDone(Phase.PREFLIGHT))
    history.hear(v.PhaseDone(Phase.SETUP), after_s=900)
    history.hear(v.PhaseDone(Phase.VERIFY), after_s=900)
    history.train(1).wait(590)
    assert not history.of(e.SignalTrainer)
    history.wait(20)
    assert history.of(e.SignalTrainer) == [ASK]
    history.end(v.TrainerExited(143, Cause.KILLED))
    assert history.heartbeats[-1].exit is not None
    assert history.heartbeats[-1].exit.cause is Cause.HOURS_SPENT


def test_the_deadline_is_kept_by_the_agent_itself() -> None:
    history = History(deadline_in_s=600).begin().train(1)
    history.wait(500)
    assert not history.of(e.SignalTrainer)
    history.wait(120)
    assert history.of(e.SignalTrainer) == [ASK]
    history.end(v.TrainerExited(143, Cause.KILLED))
    assert history.heartbeats[-1].exit is not None
    assert history.heartbeats[-1].exit.cause is Cause.DEADLINE


def test_the_dollars_are_kept_by_the_agent_itself_while_the_control_plane_sleeps() -> None:
    history = (
        History(spec(trainer={"stop_s": 100}), save_in_s=600, spent_in_s=650, answers=False).begin().train(1)
    )
    history.wait(590)
    assert not history.of(e.SignalTrainer)
    history.wait(20)
    assert history.of(e.SignalTrainer) == [ASK]
    history.wait(45)  # what the money left does not pay for is not waited for
    assert history.of(e.SignalTrainer) == [ASK, e.SignalTrainer(e.Force.KILL)]
    history.hear(v.TrainerExited(137, Cause.KILLED))
    history.hear(v.HeartbeatFailed("asleep"))
    history.wait(5)
    last = history.of(e.SendExit)[-1].heartbeat.exit
    assert last is not None
    assert (last.cause, last.detail) == (Cause.BUDGET_SPENT, "the budget of $5.00 is nearly spent")
    history.hear(v.HeartbeatFailed("asleep"))
    history.wait(30)
    assert history.of(e.Exit) == [e.Exit(e.Leave.SPENT)]


@pytest.mark.parametrize("phase", [Phase.PREFLIGHT, Phase.SETUP, Phase.VERIFY])
def test_a_set_up_ends_when_the_dollars_do(phase: Phase) -> None:
    history = History(save_in_s=600, spent_in_s=650)
    history.hear(v.Started())
    for done in list(Phase)[: list(Phase).index(phase)]:
        history.hear(v.PhaseDone(done))
    assert history.heartbeats[-1].phase is phase
    history.wait(610)
    assert history.heartbeats[-1].exit is not None
    assert history.heartbeats[-1].exit.cause is Cause.BUDGET_SPENT


def test_a_finished_run_keeps_its_machine_for_its_last_upload_no_longer_than_the_dollars_last() -> None:
    history = History(spec(checkpoints=WITH_SENTINEL), save_in_s=600, spent_in_s=650).begin().train(1)
    history.look()
    history.hear(v.TrainerExited(0, Cause.FINISHED))
    refuse_uploads(history)
    history.wait(700)
    last = history.of(e.SendExit)[-1].heartbeat.exit
    assert last is not None
    assert last.cause is Cause.UPLOAD_FAILED


def test_a_stopping_log_rule_names_its_line() -> None:
    history = History().begin().train(1)
    assert ASK in history.hear(v.RuleFired(Cause.LOG_RULE, "rollout server gone"))
    history.end(v.TrainerExited(143, Cause.KILLED))
    exit_ = history.heartbeats[-1].exit
    assert exit_ is not None
    assert exit_.cause is Cause.LOG_RULE
    assert "rollout server gone" in exit_.detail


def test_the_first_reason_to_stop_is_the_one_that_is_reported() -> None:
    history = History().begin().train(1)
    history.hear(v.RuleFired(Cause.NOT_FINITE, "loss is nan"))
    history.hear(v.SigTerm())
    history.hear(v.HeartbeatAnswered(ordered(Order.DRAIN)))
    history.end(v.TrainerExited(143, Cause.KILLED))
    assert history.heartbeats[-1].exit is not None
    assert history.heartbeats[-1].exit.cause is Cause.NOT_FINITE
    assert history.heartbeats[-1].preempting


def test_a_trainer_that_outlives_sigkill_does_not_hold_up_the_end() -> None:
    history = History(spec(trainer={"stop_s": 10}, checkpoints=WITH_SENTINEL)).begin().train(1)
    history.hear(v.SigTerm())
    history.wait(10 + STUCK_S_MAX + 1)
    history.look()
    exit_ = history.heartbeats[-1].exit
    assert exit_ is not None
    assert "SIGKILL" in exit_.detail


# -------------------------------------------------------------------------------------------------------
# evidence and illness


def test_evidence_is_gathered_when_ordered_and_its_being_there_is_news() -> None:
    history = History().begin().train(1)
    assert e.GatherEvidence() in history.hear(v.HeartbeatAnswered(ordered(Order.EVIDENCE)))
    history.wait(60)
    assert not history.heartbeats[-1].evidence
    history.hear(v.EvidenceDone(kept=True))
    assert (history.heartbeats[-1].evidence, history.heartbeats[-1].news) == (True, True)


def test_a_second_stall_is_answered_with_evidence_of_its_own() -> None:
    history = History().begin().train(1)
    for _ in range(2):
        history.hear(v.HeartbeatAnswered(ordered(Order.EVIDENCE)))
        history.hear(v.EvidenceDone(True, ""))
        history.hear(v.HeartbeatAnswered(OK))
        assert not history.state.evidence
    assert len(history.of(e.GatherEvidence)) == 2


def test_evidence_that_could_not_be_kept_is_not_claimed() -> None:
    history = History().begin().train(1)
    history.hear(v.HeartbeatAnswered(ordered(Order.EVIDENCE)))
    history.hear(v.EvidenceDone(kept=False, why="the bucket answers 503"))
    assert not history.heartbeats[-1].evidence
    assert "503" in history.heartbeats[-1].note


def test_the_control_plane_hears_of_the_machines_traffic() -> None:
    history = History().begin().train(1)
    assert history.heartbeats[-1].traffic is None
    history.hear(v.Sensed(100.0, traffic=Traffic(down_bytes=7, up_bytes=9, seconds=60)))
    history.wait(40)
    assert history.heartbeats[-1].traffic == Traffic(down_bytes=7, up_bytes=9, seconds=60)


def test_the_control_plane_hears_of_what_the_agent_deletes() -> None:
    history = History().begin().train(1)
    assert history.heartbeats[-1].deleted is None
    history.hear(v.Deleted(Deletions(checkpoints=2, newest_step=20, chunk_bytes=7)))
    history.wait(40)
    assert history.heartbeats[-1].deleted == Deletions(checkpoints=2, newest_step=20, chunk_bytes=7)


def test_idle_gpus_make_the_run_sick_but_the_trainer_is_left_alone() -> None:
    history = (
        History(spec(hardware={"gpus": ["H100"]}, health={"gpu_idle_s": 900}, checkpoints=WITH_SENTINEL))
        .begin()
        .train(1)
    )
    for _ in range(91):
        history.hear(sensed(EMPTY, EMPTY), after_s=10)
    history.hear(v.EvidenceDone(kept=True))
    history.wait(1)
    assert (history.heartbeats[-1].sick, history.heartbeats[-1].sick_detail) == (
        Cause.GPU_IDLE,
        "all 2 GPUs are at 0 % with empty memory for 900 s, at step 1",
    )
    assert not history.of(e.SignalTrainer)
    history.hear(sensed(EMPTY, BUSY), after_s=10)
    history.wait(40)
    assert history.heartbeats[-1].sick is None


# -------------------------------------------------------------------------------------------------- the
# control plane is away


def test_training_uploads_and_manifests_go_on_while_nobody_answers() -> None:
    history = History(answers=False).begin()
    history.hear(v.HeartbeatFailed("connection refused"))
    for number in range(1, 40):
        history.hear(steps(number), after_s=60)
        history.look(number)
        history.hear(v.Uploaded(number, f"runs/tiny-1/manifests/{number}"))
        history.hear(v.CommitFailed(number, "connection refused"))
        history.hear(v.HeartbeatFailed("connection refused"))
    assert not history.of(e.SignalTrainer)
    assert [effect.step for effect in history.of(e.Upload)] == list(range(1, 40))


def test_while_nobody_answers_it_is_queried_once_an_interval_even_with_news() -> None:
    history = History(answers=False).begin()
    history.effects.clear()
    requested_s: list[float] = []
    for number in range(600):
        done = history.hear(steps(number), after_s=1)
        if any(isinstance(effect, e.SendHeartbeat) for effect in done):
            requested_s.append(history.now_s)
        if history.state.channel.flying:
            history.hear(v.HeartbeatFailed("connection refused"))
    gaps = [after - before for before, after in pairwise(requested_s[1:])]
    assert min(gaps) >= 27


def test_the_newest_commit_is_caught_up_as_soon_as_there_is_an_answer() -> None:
    history = History(answers=False).begin().train(1)
    history.hear(v.HeartbeatFailed("connection refused"))
    for number in (10, 20, 30):
        history.look(number)
        history.hear(v.Uploaded(number, f"key-{number}"))
        if history.state.transfers.committing:
            history.hear(v.CommitFailed(number, "connection refused"))
    history.wait(40)
    history.hear(v.CommitFailed(30, "connection refused"))
    done = history.hear(v.HeartbeatAnswered(OK))
    assert [effect.commit.step for effect in done if isinstance(effect, e.SendCommit)] == [30]
    assert e.Settle(30) in history.hear(v.CommitAnswered(30, OK))


@pytest.mark.parametrize(
    ("damage", "cause"), [("", Cause.FINISHED), ("weights.bin is missing", Cause.UPLOAD_FAILED)]
)
def test_a_run_succeeds_only_after_all_of_its_last_checkpoint_was_read_back(
    damage: str, cause: Cause
) -> None:
    history = saved_its_last(damage)
    assert history.of(e.VerifyCheckpoint) == [e.VerifyCheckpoint(30)]
    exit_ = history.heartbeats[-1].exit
    assert exit_ is not None
    assert exit_.cause is cause
    assert damage in exit_.detail


def test_where_nothing_is_to_be_read_back_the_run_ends_without_that() -> None:
    history = saved_its_last(verify="off")
    assert not history.of(e.VerifyCheckpoint)
    assert [heartbeat.exit.cause for heartbeat in history.heartbeats if heartbeat.exit] == [Cause.FINISHED]


def saved_its_last(damage: str = "", **checkpoints: object) -> History:
    """Return a history whose trainer has ended after its last checkpoint was committed. `damage`: what is
    damaged of it in the bucket.
    """
    history = (
        History(spec(trainer={"steps": 30}, checkpoints={"sentinel": "COMPLETE"} | checkpoints))
        .begin()
        .train(30)
    )
    history.damage = damage
    history.look(30)
    history.hear(v.Uploaded(30, "key"))
    history.hear(v.CommitAnswered(30, OK))
    history.end(v.TrainerExited(0, Cause.FINISHED))
    return history


def test_a_checkpoint_that_changed_is_uploaded_and_committed_again() -> None:
    history = History().begin().train(30)
    history.look(30)
    history.hear(v.Uploaded(30, "key"))
    history.hear(v.CommitAnswered(30, OK))
    before = len(history.of(e.Upload))
    history.hear(v.CheckpointsScanned((30,), saving=False))
    assert len(history.of(e.Upload)) == before, "a scan from before the upload ended"
    history.hear(v.CheckpointsScanned((30,), saving=False, again=(30,)), after_s=2)
    assert history.of(e.Upload)[before:] == [e.Upload(30)]
    history.hear(v.Uploaded(30, "key"))
    assert [effect.commit.step for effect in history.of(e.SendCommit)] == [30, 30]


def test_news_that_was_not_heard_is_reported_again() -> None:
    history = History(answers=False)
    history.hear(v.Started())
    history.hear(v.HeartbeatFailed("timeout"))
    history.wait(40)
    assert [(heartbeat.seq, heartbeat.news) for heartbeat in history.heartbeats] == [(1, True), (2, True)]
    history.hear(v.HeartbeatAnswered(OK))
    history.wait(40)
    assert [heartbeat.news for heartbeat in history.heartbeats] == [True, True, False]


def test_the_exit_is_repeated_until_it_is_heard() -> None:
    history = History(answers=False)
    history.hear(v.Started())
    history.hear(v.HeartbeatAnswered(OK))
    history.hear(v.PhaseFailed(Phase.PREFLIGHT, Cause.PREFLIGHT_FAILED, "no room"))
    history.hear(v.HeartbeatAnswered(OK))
    history.hear(v.LogKept())
    for _ in range(10):
        history.wait(40)
        history.hear(v.HeartbeatFailed("connection refused"))
    assert len(history.of(e.SendExit)) >= 10
    assert not history.of(e.Exit)
    history.wait(40)
    assert history.hear(v.HeartbeatAnswered(OK)) == [e.Exit(e.Leave.REPORTED)]


def test_an_exit_nobody_hears_for_an_hour_ends_the_agent_all_the_same() -> None:
    history = History(answers=False)
    history.hear(v.Started())
    history.hear(v.HeartbeatFailed("connection refused"))
    history.hear(v.PhaseFailed(Phase.PREFLIGHT, Cause.PREFLIGHT_FAILED, "no room"))
    history.hear(v.LogKept())
    for _ in range(EXIT_S_MAX // 20):
        history.wait(30)
        history.hear(v.HeartbeatFailed("connection refused"))
    assert history.of(e.Exit) == [e.Exit(e.Leave.UNHEARD)]


def test_a_commit_that_waits_for_the_control_plane_comes_before_the_exit() -> None:
    history = (
        History(spec(health={"drain_s": 60, "saving_s": 60}, checkpoints=WITH_SENTINEL), answers=False)
        .begin()
        .train(1)
    )
    history.look(5)
    history.hear(v.Uploaded(5, "key-5"))
    history.hear(v.CommitFailed(5, "connection refused"))
    history.hear(v.HeartbeatFailed("connection refused"))
    history.end(v.TrainerExited(0, Cause.FINISHED))
    history.wait(300)
    assert not history.of(e.SendExit)
    history.hear(v.CommitFailed(5, "connection refused"))
    history.hear(v.HeartbeatAnswered(OK))
    assert not history.of(e.SendExit)
    history.hear(v.CommitAnswered(5, OK))
    history.hear(v.HeartbeatAnswered(OK))
    assert history.of(e.SendExit)


def test_a_number_that_was_used_before_is_left_far_behind() -> None:
    history = History(answers=False)
    history.hear(v.Started())
    done = history.hear(v.HeartbeatAnswered(Reply(outcome=Outcome.REPEATED)))
    (again,) = [effect.heartbeat for effect in done if isinstance(effect, e.SendHeartbeat)]
    assert again.seq > 1000
    assert again.news


# ------------------------------------------------------------------------------------------------------------
# checkpoints


def test_the_newest_checkpoint_goes_first_and_one_at_a_time() -> None:
    history = History().begin().train(1)
    assert e.Upload(30) in history.hear(v.CheckpointsScanned((10, 20, 30), saving=False))
    history.wait(10)
    history.hear(v.CheckpointsScanned((30, 40), saving=False))
    assert history.of(e.Upload) == [e.Upload(30)]
    done = history.hear(v.Uploaded(30, "key-30"))
    assert e.Upload(40) in done


def test_looking_into_the_folder_takes_a_small_part_of_the_time() -> None:
    history = History().begin()
    history.effects.clear()
    history.hear(v.CheckpointsScanned((), saving=False, took_s=2.0))
    history.wait(99)
    assert not history.of(e.ScanCheckpoints)
    history.wait(2)
    assert history.of(e.ScanCheckpoints)


def test_an_upload_that_fails_is_tried_again_less_and_less_often() -> None:
    history = History().begin().train(1)
    tried_s: list[float] = []
    while len(tried_s) < 8:
        if history.state.transfers.scanning:
            history.hear(v.CheckpointsScanned((10,), saving=False))
        if history.state.transfers.uploading is not None:
            tried_s.append(history.now_s)
            history.hear(v.UploadFailed(10, "503"))
        history.wait(1)
    gaps = [after - before for before, after in pairwise(tried_s)]
    assert gaps == sorted(gaps)
    assert gaps[0] <= 5
    assert gaps[-1] >= 60
    assert "503" in history.heartbeats[-1].note


def test_a_save_under_way_is_reported() -> None:
    history = History().begin().train(1)
    history.hear(v.CheckpointsScanned((), saving=True))
    history.wait(40)
    assert history.heartbeats[-1].saving


# ------------------------------------------------------------------------------------------------------------
# fenced


@pytest.mark.parametrize("how", [v.HeartbeatAnswered(FENCED), v.CommitAnswered(10, FENCED)])
def test_fenced_kills_at_once_and_nothing_follows(how: v.Event) -> None:
    history = History().begin().train(1)
    history.hear(v.CheckpointsScanned((10,), saving=False))
    history.hear(v.Uploaded(10, "key-10"))
    assert history.hear(how) == [KILL, e.Exit(e.Leave.FENCED)]
    for event in (
        v.Uploaded(20, "key-20"),
        v.TrainerExited(-9, Cause.KILLED),
        v.SigTerm(),
        v.Tick(),
        v.HeartbeatAnswered(OK),
    ):
        assert history.hear(event, after_s=100) == []


def test_fenced_in_the_middle_of_a_set_up_calls_it_off() -> None:
    history = History(answers=False)
    history.hear(v.Started())
    assert history.hear(v.HeartbeatAnswered(FENCED)) == [e.CancelPhase(), e.Exit(e.Leave.FENCED)]


# ---------------------------------------------------------------------------------------------- promises over
# any history


def progress_rows() -> st.SearchStrategy[v.StepsReported]:
    row = st.builds(
        Progress, st.integers(0, 200), st.none() | st.just(1.0), st.none() | st.sampled_from([0.0, 0.5])
    )
    return st.builds(v.StepsReported, st.lists(row, min_size=1, max_size=4).map(tuple))


REPLIES = [
    OK,
    FENCED,
    ordered(Order.DRAIN),
    ordered(Order.EVIDENCE),
    Reply(outcome=Outcome.REPEATED),
    Reply(outcome=Outcome.OK, heartbeat_s=1),
]
KIND = [Phase.PREFLIGHT, Phase.SETUP, Phase.VERIFY, Phase.SMOKE, Phase.RESTORE]
EVENTS = st.one_of(
    st.just(v.Tick()),
    st.sampled_from(KIND).map(v.PhaseDone),
    st.builds(v.PhaseFailed, st.sampled_from(KIND), st.just(Cause.SETUP_FAILED), st.just("x")),
    progress_rows(),
    st.builds(v.RuleFired, st.sampled_from([Cause.LOG_RULE, Cause.RESUME_IGNORED]), st.just("line")),
    st.builds(v.ResumeMissed, st.integers(1, 50)),
    st.builds(
        v.TrainerExited,
        st.sampled_from([0, 1, -9]),
        st.sampled_from([Cause.FINISHED, Cause.DISK_FULL, Cause.KILLED]),
    ),
    st.sampled_from([sensed(EMPTY), sensed(BUSY), sensed(LOST), sensed()]),
    st.just(v.ServicesFound((ServiceHealth(SERVICE),))),
    st.sampled_from([v.ServiceAnswered(SERVICE.name, answer) for answer in ProbeReply]),
    st.sampled_from(REPLIES).map(v.HeartbeatAnswered),
    st.just(v.HeartbeatFailed("x")),
    st.builds(
        v.CheckpointsScanned,
        st.lists(st.integers(1, 50), max_size=3).map(lambda s: tuple(sorted(s))),
        st.booleans(),
    ),
    st.builds(v.Uploaded, st.integers(1, 50), st.just("key")),
    st.builds(v.UploadFailed, st.integers(1, 50), st.just("x")),
    st.builds(v.CommitAnswered, st.integers(1, 50), st.sampled_from([OK, FENCED])),
    st.builds(v.CommitFailed, st.integers(1, 50), st.just("x")),
    st.builds(v.EvidenceDone, st.booleans()),
    st.just(v.LogKept()),
    st.just(v.SigTerm()),
)
STORIES = st.lists(st.tuples(EVENTS, st.sampled_from([0.0, 0.1, 1.0, 30.0, 200.0])), max_size=60)
JOBS = st.builds(
    Job,
    st.just(RUN_ID),
    st.just(1),
    st.sampled_from(
        [
            spec(checkpoints=WITH_SENTINEL),
            spec(trainer={"steps": 20}, smoke={"command": "true"}, hardware={"gpus": ["H100"]}),
        ]
    ),
    st.none() | st.just(10),
    st.none() | st.just(300),
)


def reported(job: Job, story: list[tuple[v.Event, float]]) -> list[tuple[v.Event, tuple[e.Effect, ...]]]:
    state, now_s = initial(job), 1000.0
    state, first = step(state, v.Started(), now_s)
    found: list[tuple[v.Event, tuple[e.Effect, ...]]] = [(v.Started(), first)]
    for event, later_s in story:
        now_s += later_s
        state, effects = step(state, event, now_s)
        assert next_tick_s(state, now_s) > now_s
        found.append((event, effects))
    return found


def is_fence(event: v.Event) -> bool:
    return isinstance(event, v.HeartbeatAnswered | v.CommitAnswered) and event.reply.outcome is Outcome.FENCED


@settings(max_examples=400, deadline=None)
@given(JOBS, STORIES)
def test_after_fenced_nothing_is_sent_uploaded_or_committed(
    job: Job, story: list[tuple[v.Event, float]]
) -> None:
    fenced = False
    for event, effects in reported(job, story):
        fenced = fenced or is_fence(event)
        if fenced:
            assert not [
                x
                for x in effects
                if isinstance(
                    x, e.Upload | e.SendCommit | e.SendHeartbeat | e.SendExit | e.StartTrainer | e.Settle
                )
            ]


@settings(max_examples=400, deadline=None)
@given(JOBS, STORIES)
def test_numbers_rise_and_the_end_comes_once_and_last(job: Job, story: list[tuple[v.Event, float]]) -> None:
    effects = [effect for _, done in reported(job, story) for effect in done]
    numbers = [x.heartbeat.seq for x in effects if isinstance(x, e.SendHeartbeat | e.SendExit)]
    assert all(before < after for before, after in pairwise(numbers))
    ends = [index for index, x in enumerate(effects) if isinstance(x, e.Exit)]
    assert ends in ([], [len(effects) - 1])
    assert sum(isinstance(x, e.StartTrainer) for x in effects) <= 1


SILENCE = st.one_of(
    st.just(v.Tick()),
    st.just(v.HeartbeatFailed("x")),
    st.builds(v.CommitFailed, st.integers(1, 50), st.just("x")),
    st.builds(v.UploadFailed, st.integers(1, 50), st.just("x")),
    st.builds(v.Uploaded, st.integers(1, 50), st.just("key")),
    st.builds(v.CheckpointsScanned, st.lists(st.integers(1, 50), max_size=3).map(tuple), st.booleans()),
    st.integers(11, 10**6).map(lambda n: v.StepsReported((Progress(n, 1.0, 1.0),))),
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(SILENCE, st.sampled_from([1.0, 60.0, 5000.0])), max_size=60), st.none() | st.just(10)
)
def test_silence_alone_never_stops_a_healthy_trainer(
    story: list[tuple[v.Event, float]], resume_step: int | None
) -> None:
    history = History(answers=False, resume_step=resume_step).begin()
    for event, later_s in story:
        done = history.hear(event, after_s=later_s)
        assert not [x for x in done if isinstance(x, e.SignalTrainer | e.Exit | e.CancelPhase)]


@settings(max_examples=300, deadline=None)
@given(JOBS, STORIES)
def test_whatever_happened_the_attempt_ends_once_the_trainer_has(
    job: Job, story: list[tuple[v.Event, float]]
) -> None:
    history = History(job.spec, resume_step=job.resume_step, train_s_max=job.train_s_max, answers=False)
    history.hear(v.Started())
    for event, later_s in story:
        history.hear(event, after_s=later_s)
    history.hear(v.SigTerm())
    for _ in range(200):
        if history.state.running:
            history.hear(v.TrainerExited(-15, Cause.KILLED))
        if history.state.transfers.scanning:
            history.hear(v.CheckpointsScanned((), saving=False))
        if history.state.transfers.committing:
            history.hear(v.CommitAnswered(99, OK))
        if history.state.channel.flying:
            history.hear(v.HeartbeatAnswered(OK))
        history.wait(30)
    assert len(history.of(e.Exit)) == 1


def test_an_agent_whose_numbers_were_all_used_before_comes_past_them_without_end_of_numbers() -> None:
    channel = HeartbeatChannel(heartbeat_s=5)
    for _ in range(30):
        channel = refused(sent(channel, 0.0, salt="a"))
    assert channel.seq > 10_000_000
    for _ in range(1000):
        channel = refused(sent(channel, 0.0, salt="a"))
    assert channel.seq < 2**53


def test_after_a_fall_back_uploads_and_the_committed_step_go_on_from_what_was_restored() -> None:
    history = History(resume_step=40)
    history.hear(v.Started())
    older = ResumePoint(step=30, attempt=1, key="runs/tiny-1/manifests/30")
    done = history.hear(v.FellBack(older, 40, frozenset({digest(1)}), "step 40 is damaged"))
    assert e.FallBack(older, frozenset({digest(1)})) in done
    assert (
        history.state.job.resume_step,
        history.state.committed_step,
        history.state.transfers.uploaded_step,
    ) == (30, 30, 30)
    history.hear(v.HeartbeatAnswered(OK.model_copy(update={"committed_step": 40})))
    assert history.state.committed_step == 30, "what the control plane calls committed cannot be restored"
    history.hear(v.HeartbeatAnswered(OK.model_copy(update={"committed_step": 50})))
    assert history.state.committed_step == 50


def test_after_a_fall_back_all_steps_after_training_are_repeated_because_the_model_is_another_one() -> None:
    after = [{"name": "evaluate", "run": "true", "evaluate_every": 10}, {"name": "publish", "run": "true"}]
    history = History(
        spec(checkpoints={"sentinel": "COMPLETE"}, after=after),
        resume_step=40,
        trained=True,
        after_done=1,
        after_failed="evaluate failed: no space",
    )
    history.hear(v.Started())
    older = ResumePoint(step=30, attempt=1, key="runs/tiny-1/manifests/30")
    history.hear(v.FellBack(older, 40, frozenset({digest(1)}), "step 40 is damaged"))
    assert (history.state.after.done, history.state.after.failed, history.state.evaluations.newest) == (
        0,
        "",
        (30, 30),
    )


def test_a_heartbeat_says_in_how_many_seconds_the_steps_after_the_first_one_were_made() -> None:
    history = History().begin().train(1).train(2, 3, 4, each_s=7)
    history.wait(40)
    assert (
        history.heartbeats[-1].step,
        history.heartbeats[-1].timed_steps,
        history.heartbeats[-1].timed_s,
    ) == (4, 3, 21)


def test_a_heartbeat_says_how_much_steps_differ_also_if_several_are_seen_at_a_time() -> None:
    even = History().begin().train(1).train(2, 3, 4, each_s=7)
    uneven = History().begin().train(1).train(2, each_s=4).train(3, each_s=10).train(4, each_s=7)
    jumps = History().begin().train(100).train(200, each_s=300).train(300, each_s=320)
    found = []
    for history in (even, uneven, jumps):
        history.wait(40)
        found.append(history.heartbeats[-1].timed_spread_s)
    # Sums of a hundred steps differ ten times as much as single steps do: 14.14 s, the deviation of 300 and
    # 320 s.
    assert found == [0, pytest.approx(3), pytest.approx(1.414, abs=1e-3)]


def test_before_a_second_step_nothing_is_timed() -> None:
    history = History().begin().train(1)
    history.wait(40)
    assert (
        history.heartbeats[-1].step,
        history.heartbeats[-1].timed_steps,
        history.heartbeats[-1].timed_s,
    ) == (1, 0, None)


def test_of_a_resumed_attempt_only_its_own_steps_are_timed() -> None:
    history = History(resume_step=100).begin().train(101).train(102, each_s=5)
    history.wait(40)
    assert (history.heartbeats[-1].timed_steps, history.heartbeats[-1].timed_s) == (1, 5)
