"""When outputs are uploaded, and what an attempt's end waits for."""

from typing import Any

import pytest

from prime_agent import effects as e
from prime_agent import events as v
from prime_train.runs.wire import JobExit, Order, Phase
from prime_train.spec.causes import Cause
from tests.agent.histories import History, ordered
from tests.builders import spec

DONE = v.OutputsUploaded()
FAILS = v.OutputsUploaded(failed="the bucket answered 503")
REFUSED = v.OutputsUploaded(refused="big.bin has 3 GiB, more than output_file_gib_max (2 GiB)")


def with_outputs(**changes: Any) -> History:
    return (
        History(spec(**{"outputs": ["results/**"], "health": {"drain_s": 60, "saving_s": 300}} | changes))
        .begin()
        .train(1)
    )


def exit_of(history: History) -> JobExit:
    (last,) = history.of(e.SendExit)[-1:]
    assert last.heartbeat.exit is not None
    return last.heartbeat.exit


def problems(history: History) -> list[str]:
    """Return what the heartbeats reported about uploads, each once while it stays."""
    found = [""]
    for heartbeat in history.heartbeats:
        if heartbeat.upload_problem != found[-1]:
            found.append(heartbeat.upload_problem)
    return found[1:]


@pytest.mark.parametrize(("every_s", "number"), [(60, 10), (20, 30)])
def test_outputs_are_uploaded_at_the_interval_of_the_config_and_never_two_at_once(
    every_s: int, number: int
) -> None:
    history = with_outputs(outputs_every_s=every_s)
    before = len(history.of(e.UploadOutputs))
    history.wait(600)
    assert len(history.of(e.UploadOutputs)) - before == pytest.approx(number, abs=1)
    history.outputs = None
    history.wait(600)
    assert len(history.of(e.UploadOutputs)) - before <= number + 2


def test_the_end_uploads_what_was_written_after_the_upload_that_was_under_way() -> None:
    history = with_outputs()
    history.outputs = None
    history.wait(60)
    assert history.of(e.UploadOutputs)[-1] == e.UploadOutputs(trainer_ended=False)
    history.end(v.TrainerExited(0, Cause.FINISHED))
    history.hear(v.OutputsUploaded())
    assert history.of(e.UploadOutputs)[-1] == e.UploadOutputs(trainer_ended=True)
    assert not history.of(e.SendExit)
    history.hear(v.OutputsUploaded())
    history.look()
    assert exit_of(history).cause is Cause.FINISHED


def test_a_run_has_not_finished_before_its_outputs_are_durable_and_says_so() -> None:
    history = with_outputs()
    history.outputs = FAILS
    history.end(v.TrainerExited(0, Cause.FINISHED))
    history.wait(3600)
    assert not history.of(e.SendExit)
    last = history.heartbeats[-1]
    assert (last.phase, last.upload_pending, last.outputs_pending) == (Phase.FLUSH, True, True)
    assert problems(history) == ["outputs are not uploaded: the bucket answered 503"], (
        "once, however often it fails"
    )
    history.outputs = DONE
    history.wait(60)
    assert exit_of(history).cause is Cause.FINISHED
    assert (history.heartbeats[-1].outputs_pending, history.heartbeats[-1].upload_problem) == (False, "")


def test_one_upload_that_fails_is_no_news_and_three_in_a_row_are_until_one_succeeds() -> None:
    history = with_outputs()
    history.outputs = FAILS
    history.wait(70)
    assert problems(history) == []
    history.wait(600)
    history.outputs = DONE
    history.wait(120)
    assert problems(history) == ["outputs are not uploaded: the bucket answered 503", ""]


def test_an_output_that_is_too_large_is_reported_at_once_and_keeps_the_run_from_succeeding() -> None:
    history = with_outputs()
    history.outputs = REFUSED
    history.wait(120)
    assert problems(history) == [f"outputs are not uploaded: {REFUSED.refused}"]
    history.end(v.TrainerExited(0, Cause.FINISHED))
    history.wait(600)
    assert not history.of(e.SendExit)
    history.hear(v.HeartbeatAnswered(ordered(Order.DRAIN)))
    history.wait(10)
    assert (exit_of(history).cause, exit_of(history).detail) == (
        Cause.UPLOAD_FAILED,
        f"outputs were not uploaded: {REFUSED.refused}",
    )


def test_a_stopped_run_whose_outputs_the_bucket_does_not_take_is_not_called_flushed() -> None:
    history = with_outputs()
    history.outputs = FAILS
    history.hear(v.HeartbeatAnswered(ordered(Order.DRAIN)))
    history.end(v.TrainerExited(0, Cause.STOPPED_GRACEFULLY))
    history.wait(600)
    assert (exit_of(history).cause, exit_of(history).detail) == (
        Cause.UPLOAD_FAILED,
        "outputs were not uploaded: the bucket answered 503",
    )


def test_a_stopped_run_with_an_output_that_is_too_large_ends_without_delay() -> None:
    history = with_outputs()
    history.outputs = REFUSED
    history.hear(v.HeartbeatAnswered(ordered(Order.DRAIN)))
    history.end(v.TrainerExited(0, Cause.STOPPED_GRACEFULLY))
    history.wait(10)
    assert exit_of(history).cause is Cause.STOPPED_GRACEFULLY


def test_a_run_without_outputs_tries_its_log_three_times_and_is_not_held_up_by_a_bucket_that_does_not_take_it() -> (
    None
):
    history = History(spec()).begin().train(1)
    history.outputs = FAILS
    before = len(history.of(e.UploadOutputs))
    history.end(v.TrainerExited(0, Cause.FINISHED))
    history.wait(30)
    assert exit_of(history).cause is Cause.FINISHED
    assert [upload.trainer_ended for upload in history.of(e.UploadOutputs)[before:]] == [True] * 3


def test_a_log_that_the_bucket_takes_at_the_second_try_is_complete() -> None:
    history = History(spec()).begin().train(1)
    history.outputs = FAILS
    before = len(history.of(e.UploadOutputs))
    history.end(v.TrainerExited(1, Cause.TRAINER_ERROR))
    history.outputs = DONE
    history.wait(15)
    assert exit_of(history).cause is Cause.TRAINER_ERROR
    assert len(history.of(e.UploadOutputs)) == before + 2


@pytest.mark.parametrize(
    "order",
    [
        v.HeartbeatAnswered(ordered(Order.DRAIN)),
        v.HeartbeatAnswered(ordered(Order.EVIDENCE)),
        v.RuleFired(Cause.LOG_RULE, "loss is nan"),
    ],
    ids=["stop, budget or wallet", "stall", "log rule"],
)
def test_what_there_is_of_the_log_is_uploaded_when_the_end_is_ordered_and_not_only_when_the_trainer_has_ended(
    order: v.Event,
) -> None:
    history = History(spec()).begin().train(1)
    history.wait(30)
    before = len(history.of(e.UploadOutputs))
    history.hear(order)
    assert history.state.running
    assert len(history.of(e.UploadOutputs)) == before + 1


@pytest.mark.parametrize("limit", [{"train_s_max": 100}, {"deadline_in_s": 100}], ids=["hours", "deadline"])
def test_at_a_limit_of_time_the_log_is_uploaded_before_and_after_the_trainer_ends(
    limit: dict[str, Any],
) -> None:
    history = History(spec(outputs_every_s=3600), **limit).begin().train(1)
    history.wait(90)
    before = len(history.of(e.UploadOutputs))
    history.wait(15)
    assert len(history.of(e.UploadOutputs)) == before + 1
    history.end(v.TrainerExited(0, Cause.KILLED))
    assert [upload.trainer_ended for upload in history.of(e.UploadOutputs)[before:]] == [False, True]


def test_a_trainer_that_lives_for_half_a_minute_leaves_a_log_whatever_ends_it() -> None:
    history = History(spec()).begin().train(1)
    history.wait(15)
    assert len(history.of(e.UploadOutputs)) == 1


def test_outputs_are_uploaded_with_each_checkpoint_so_that_a_resume_finds_them_as_they_were() -> None:
    history = with_outputs(outputs_every_s=3600)
    history.wait(60)
    before = len(history.of(e.UploadOutputs))
    history.look(1)
    assert len(history.of(e.UploadOutputs)) == before + 1


def test_a_machine_that_is_preempted_uploads_outputs_at_once() -> None:
    history = with_outputs()
    before = len(history.of(e.UploadOutputs))
    history.hear(v.SigTerm())
    assert len(history.of(e.UploadOutputs)) == before + 1
