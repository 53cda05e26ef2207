"""What a run promises about its checkpoints, and what people are told if it is not kept."""

from dataclasses import replace
from typing import Any

import pytest

from prime_agent import effects as e
from prime_agent import events as v
from prime_agent.checkpoints.promise import (
    RefusedEntry,
    Seen,
    Strangers,
    declares,
    looks_like_checkpoint,
    numbers_in,
)
from prime_train.runs.wire import JobExit, Order
from prime_train.spec.causes import Cause
from tests.agent.histories import OK, History, ordered
from tests.builders import spec

PROMISED = {"folder": "out", "pattern": "ckpt-{step}", "sentinel": "COMPLETE", "every_steps": 10}
NOTHING = Seen()
FOREIGN = Seen(unmatched=Strangers("out", 6, "ckpt-000600", 6))


def training(**checkpoints: Any) -> History:
    return History(spec(checkpoints=PROMISED | checkpoints)).begin()


def look(history: History, seen: Seen | None, *found: int) -> None:
    """Answer scans of the checkpoint folder for some seconds; at the end, the last one."""
    until_s = history.now_s + 10
    while history.now_s < until_s and not history.state.over:
        history.hear(
            v.CheckpointsScanned(found, saving=False, seen=seen)
        ) if history.state.transfers.scanning else history.wait(1)


def told(history: History) -> list[str]:
    """Return what the heartbeats said about it, each text once while it stays."""
    texts = [""]
    for heartbeat in history.heartbeats:
        if heartbeat.unsaved != texts[-1]:
            texts.append(heartbeat.unsaved)
    return texts[1:]


def commit(history: History, step: int) -> None:
    while history.state.transfers.uploading != step:
        history.hear(
            v.CheckpointsScanned((step,), saving=False, seen=NOTHING)
        ) if history.state.transfers.scanning else history.wait(1)
    history.hear(v.Uploaded(step, f"key-{step}"))
    history.hear(v.CommitAnswered(step, OK))


def exit_of(history: History) -> JobExit | None:
    sent = history.of(e.SendExit)
    return sent[-1].heartbeat.exit if sent else None


def finish(history: History, seen: Seen) -> None:
    history.hear(v.TrainerExited(0, Cause.FINISHED))
    history.hear(v.LogKept())
    look(history, seen)
    history.wait(30)


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (FOREIGN, "6 entries in out/, none matches ckpt-{step}; the newest is ckpt-000600"),
        (NOTHING, "no file was written in out/ although every_steps is 10 and step 20 is reached"),
        (
            Seen(
                refused=(RefusedEntry("ckpt-20", 20, "has no COMPLETE (checkpoints.sentinel)"),),
                refused_count=2,
            ),
            "2 checkpoints in out/, none complete: ckpt-20 has no COMPLETE (checkpoints.sentinel)",
        ),
        (
            Seen(elsewhere=Strangers("elsewhere", 2, "ckpt-20", 2)),
            "no file was written in out/; 2 in elsewhere/ look like checkpoints, the newest is ckpt-20",
        ),
    ],
    ids=["pattern", "nothing", "sentinel", "folder"],
)
def test_after_two_expected_saves_without_a_checkpoint_people_are_told_what_lies_there_instead(
    seen: Seen, words: str
) -> None:
    history = training().train(*range(1, 20))
    look(
        history,
        seen
        if seen is NOTHING
        else replace(seen, refused_count=min(1, seen.refused_count), unmatched=None, elsewhere=None),
    )
    assert told(history) == []
    history.train(20)
    look(history, seen)
    assert told(history) == [words]


def test_it_is_told_at_once_and_again_when_it_is_over() -> None:
    history = training().train(*range(1, 21))
    look(history, FOREIGN)
    said = [heartbeat for heartbeat in history.heartbeats if heartbeat.unsaved]
    assert said[0].news
    commit(history, 20)
    look(history, NOTHING)
    assert told(history)[-1] == ""


def test_entries_beside_checkpoints_that_become_complete_are_no_news() -> None:
    history = training()
    for step in range(10, 60, 10):
        history.train(*range(step - 9, step + 1))
        commit(history, step)
        look(history, replace(FOREIGN, elsewhere=Strangers("runs", 3, "model-3.pt", 3)))
    assert told(history) == []


def test_a_long_save_is_not_late_while_it_is_written_and_is_once_the_next_one_has_begun() -> None:
    history = training().train(*range(1, 26))
    look(
        history,
        Seen(
            refused=(RefusedEntry("ckpt-10", 10, "has no COMPLETE (checkpoints.sentinel)", quiet_s=3),),
            refused_count=1,
        ),
    )
    assert told(history) == []
    look(
        history,
        Seen(
            refused=(RefusedEntry("ckpt-20", 20, "has no COMPLETE (checkpoints.sentinel)", quiet_s=3),),
            refused_count=2,
        ),
    )
    assert len(told(history)) == 1


def test_without_an_interval_saves_that_were_seen_to_begin_count() -> None:
    history = training(every_steps=None).train(*range(1, 30))
    look(history, Seen(unmatched=Strangers("out", 1, "ckpt-000010", 1)))
    assert told(history) == []
    look(history, Seen(unmatched=Strangers("out", 2, "ckpt-000020", 2)))
    assert told(history) == ["2 entries in out/, none matches ckpt-{step}; the newest is ckpt-000020"]


def test_where_nothing_is_known_of_the_interval_an_hour_without_a_file_is_told() -> None:
    history = training(every_steps=None).train(1)
    look(history, NOTHING)
    history.wait(3000)
    look(history, NOTHING)
    assert told(history) == []
    history.wait(700)
    look(history, NOTHING)
    assert len(told(history)) == 1
    assert "no file was written in out/ in the 1 h" in told(history)[0]


# ------------------------------------------------------------------------------------------------------------
# the end


def test_the_last_save_of_a_trainer_that_has_just_ended_is_not_missed_before_the_folder_was_looked_at() -> (
    None
):
    history = training().train(*range(1, 31))
    history.hear(v.CheckpointsScanned((10,), saving=False, seen=NOTHING))
    history.hear(v.TrainerExited(0, Cause.FINISHED))
    history.wait(3)
    assert told(history) == []
    assert history.heartbeats[-1].upload_pending


@pytest.mark.parametrize(
    ("seen", "words"), [(FOREIGN, "none matches ckpt-{step}"), (NOTHING, "no file was written in out/")]
)
def test_a_run_that_declares_checkpoints_and_has_none_in_the_end_keeps_its_machine_and_says_why(
    seen: Seen, words: str
) -> None:
    history = training().train(*range(1, 31))
    finish(history, seen)
    history.wait(3600)
    last = history.heartbeats[-1]
    assert exit_of(history) is None
    assert (last.upload_pending, words in last.unsaved) == (True, True)
    history.hear(v.HeartbeatAnswered(ordered(Order.DRAIN)))
    history.wait(1200)
    ended = exit_of(history)
    assert ended is not None
    assert (ended.cause, words in ended.detail) == (Cause.UPLOAD_FAILED, True)


def test_what_a_person_mends_on_the_kept_machine_is_uploaded_and_the_run_succeeds() -> None:
    history = training().train(*range(1, 31))
    finish(history, FOREIGN)
    commit(history, 30)
    look(history, NOTHING)
    ended = exit_of(history)
    assert ended is not None
    assert ended.cause is Cause.FINISHED


@pytest.mark.parametrize(
    "checkpoints", [{"every_steps": 10, "folder": "checkpoints"}, {}], ids=["declared", "not declared"]
)
def test_a_run_that_was_seen_to_save_does_not_succeed_while_its_weights_are_only_on_the_machine(
    checkpoints: dict[str, Any],
) -> None:
    history = (
        History(spec(trainer={"command": "python train.py"}, checkpoints=checkpoints))
        .begin()
        .train(*range(1, 31))
    )
    finish(history, Seen(elsewhere=Strangers("models", 3, "model-30.pt", 3)))
    assert exit_of(history) is None
    assert "3 in models/ look like checkpoints, the newest is model-30.pt" in history.heartbeats[-1].unsaved


def test_a_run_that_declares_nothing_and_writes_nothing_succeeds() -> None:
    wanted = spec(trainer={"command": "python train.py"}, checkpoints={})
    assert not declares(wanted)
    history = History(wanted).begin().train(*range(1, 31))
    finish(history, NOTHING)
    ended = exit_of(history)
    assert ended is not None
    assert ended.cause is Cause.FINISHED


@pytest.mark.parametrize(("steps", "saved"), [(9, 0), (35, 30), (39, 30)])
def test_steps_after_the_last_save_fewer_than_an_interval_do_not_keep_a_run_from_succeeding(
    steps: int, saved: int
) -> None:
    history = training().train(*range(1, steps + 1))
    if saved:
        commit(history, saved)
    finish(history, NOTHING)
    ended = exit_of(history)
    assert ended is not None
    assert ended.cause is Cause.FINISHED


def test_where_the_trainer_removed_what_it_saved_no_machine_is_kept_for_it() -> None:
    history = training().train(*range(1, 31))
    history.hear(v.TrainerExited(0, Cause.FINISHED))
    history.hear(v.LogKept())
    while not history.state.over:
        gone = v.CheckpointsScanned((), saving=False, begun=30, seen=NOTHING)
        history.hear(gone) if history.state.transfers.scanning else history.wait(1)
    ended = exit_of(history)
    assert ended is not None
    assert (ended.cause, "step 30 was removed" in ended.detail) == (Cause.UPLOAD_FAILED, True)


def test_a_last_checkpoint_that_is_refused_keeps_the_machine() -> None:
    history = training().train(*range(1, 31))
    commit(history, 20)
    finish(
        history,
        Seen(
            refused=(RefusedEntry("ckpt-30", 30, "is not uploaded: model.safetensors: is truncated"),),
            refused_count=1,
        ),
    )
    assert exit_of(history) is None
    assert "ckpt-30 is not uploaded: model.safetensors: is truncated" in history.heartbeats[-1].unsaved
    assert "the newest complete checkpoint is of step 20" in history.heartbeats[-1].unsaved


def test_a_last_save_that_the_interval_promises_and_nobody_saw_keeps_the_machine() -> None:
    history = training().train(*range(1, 31))
    commit(history, 20)
    finish(history, NOTHING)
    assert exit_of(history) is None
    assert "the newest complete checkpoint is of step 20" in history.heartbeats[-1].unsaved


@pytest.mark.parametrize(("highest", "is_kept"), [(500, True), (90, False), (70_000, False)])
def test_saves_under_another_name_after_the_newest_checkpoint_keep_the_machine(
    highest: int, *, is_kept: bool
) -> None:
    wanted = spec(
        trainer={"command": "python train.py"}, checkpoints={"folder": "out", "pattern": "ckpt-{step}"}
    )
    history = History(wanted).begin().train(*range(1, 502))
    commit(history, 100)
    finish(history, Seen(unmatched=Strangers("out", 5, f"model-{highest}.pt", 5, highest)))
    assert (exit_of(history) is None) == is_kept


def test_a_finished_run_waits_for_the_look_at_its_last_checkpoint() -> None:
    history = training().train(*range(1, 31))
    commit(history, 30)
    history.hear(v.TrainerExited(0, Cause.FINISHED))
    history.hear(v.LogKept())
    for _ in range(100):
        waits = v.CheckpointsScanned((), saving=False, seen=NOTHING, waits_to_look=True)
        history.hear(waits) if history.state.transfers.scanning else history.wait(1)
    assert exit_of(history) is None
    finish(history, NOTHING)
    ended = exit_of(history)
    assert ended is not None
    assert ended.cause is Cause.FINISHED


# ------------------------------------------------------------------------------------------------------------
# declaring


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"trainer": {"command": "python train.py"}, "checkpoints": {}}, False),
        ({"trainer": {"command": "python train.py --out {checkpoints}"}, "checkpoints": {}}, True),
        ({"trainer": {"command": "python train.py"}, "checkpoints": {"every_steps": 5}}, True),
        ({"trainer": {"command": "python train.py"}, "checkpoints": {"folder": "out"}}, True),
        ({"trainer": {"kind": "hf", "command": "train.py"}, "checkpoints": {}}, True),
    ],
)
def test_a_run_declares_checkpoints_by_its_section_its_kind_or_its_command(
    changes: dict[str, Any], expected: bool
) -> None:
    assert declares(spec(**changes)) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ckpt-000600", True),
        ("checkpoint_12.tar", True),
        ("epoch=3-step=1200.ckpt", True),
        ("model_000100.pt", True),
        ("weights", False),
        ("shard-00001.arrow", False),
        ("model-00001-of-00003.safetensors", False),
        ("results-2026.csv", False),
    ],
)
def test_names_that_scripts_give_to_the_checkpoint_of_a_step_are_recognised(
    name: str, expected: bool
) -> None:
    assert looks_like_checkpoint(name) is expected


def test_files_side_by_side_with_one_number_are_one_save() -> None:
    assert numbers_in(["model_10.pt", "optim_10.pt", "model_020.pt"]) == {10, 20}
