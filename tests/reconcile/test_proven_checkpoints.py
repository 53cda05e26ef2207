"""Checkpoints that a trainer could resume from, or could not, or that hold figures that are not finite: which
one is restored next.
"""

from typing import Any

import pytest

from prime_train.buckets.keys import mark_key, mark_prefix
from prime_train.checkpoints.manifest import Manifest
from prime_train.errors import TemporaryError
from prime_train.runs.alert_kinds import AlertKind, policy_of
from prime_train.runs.change import Renewed, resumed
from prime_train.runs.resuming.trust import CHECKPOINTS_TRIED_MAX, OUTSIDE
from prime_train.runs.run import RunState
from prime_train.runs.wire import JobExit, Phase
from prime_train.spec.causes import Action, Cause
from prime_train.watch.outbox import deliver
from tests import builders as b
from tests.reconcile.ports import Outside

S = RunState
ROLLBACK = {"on_divergence": "rollback", "rollback_times": 2, "rollback_arguments": "--lr 1e-5"}


def committed(w: Outside, *steps: int, attempt: int = 1, **fields: object) -> list[Manifest]:
    made = []
    for step in steps:
        manifest = w.save_checkpoint(step, attempt).model_copy(update=fields)
        w.bucket.objects[manifest.key] = manifest.model_dump_json(exclude_none=True).encode()
        w.store.commit(
            b.commit(step, attempt=attempt, key=manifest.key, identity=w.identity(attempt)), w.now_s
        )
        made.append(manifest)
    return made


def crashes(w: Outside, step: int, cause: Cause = Cause.TRAINER_ERROR, **message: Any) -> Outside:
    """End the newest attempt's trainer, and let the next machine be rented."""
    w.after(5).exit(cause, step=step, phase=Phase.EXITED, **message)
    w.settle()
    return w


def next_attempt_dies(
    w: Outside, cause: Cause = Cause.TRAINER_ERROR, detail: str = "cannot load", **exit_: Any
) -> Outside:
    """Let the newest attempt restore its checkpoint, and its trainer end before its first step."""
    w.settle()
    w.after(5).heartbeat(phase=Phase.RESTORE)
    w.settle()
    w.after(5).heartbeat(phase=Phase.TRAIN)
    w.settle()
    w.after(5).heartbeat(phase=Phase.EXITED, exit=JobExit(cause=cause, detail=detail, **exit_), news=True)
    for _ in range(20):
        w.after(60).settle()
        if w.run().state in (S.BOOTING, S.STOPPED, S.FAILED):
            break
    return w


def trains_on(w: Outside, step: int) -> Outside:
    w.settle()
    w.after(5).heartbeat(phase=Phase.TRAIN)
    w.settle()
    w.after(5).heartbeat(phase=Phase.TRAIN, step=step)
    w.settle()
    return w


def resumes_from(w: Outside) -> tuple[int, int]:
    point = w.run().resume
    assert point is not None
    return point.step, point.attempt


def marks(w: Outside) -> list[str]:
    return sorted(
        key.removeprefix(mark_prefix(b.RUN_ID))
        for key in w.bucket.objects
        if key.startswith(mark_prefix(b.RUN_ID))
    )


def lines(w: Outside) -> list[str]:
    return [event.text for event in w.store.history(b.RUN_ID)]


def alerts(w: Outside) -> list[str]:
    deliver(w.world, w.now_s)
    return [f"{alert.title}: {alert.text}" for alert in w.reported.alerts]


@pytest.mark.parametrize("cause", [Cause.TRAINER_ERROR, Cause.BAD_CHECKPOINT, Cause.KILLED])
def test_a_checkpoint_that_the_trainer_cannot_load_costs_one_attempt_and_the_one_before_it_is_used(
    cause: Cause,
) -> None:
    w = Outside({"budget": {"usd": 100.0}}).trains(step=35)
    committed(w, 10, 20, 30)
    crashes(w, 37)
    assert resumes_from(w) == (30, 1)
    next_attempt_dies(w, cause, "failed finding central directory")
    assert (w.run().state, w.run().attempt, resumes_from(w)) == (S.BOOTING, 3, (20, 1))
    chosen = [text for text in lines(w) if text.startswith("resumes from step 20")]
    assert "instead of step 30 of attempt 1" in chosen[0]
    assert "failed finding central directory" in chosen[0]
    assert any("an older checkpoint is used" in text and "step 30" in text for text in alerts(w))


@pytest.mark.parametrize(
    "cause",
    sorted(OUTSIDE & {Cause.PREEMPTED, Cause.GPU_HARDWARE, Cause.NETWORK_ERROR, Cause.RESTORE_FAILED}),
)
def test_a_machine_that_fails_before_the_first_step_does_not_count_against_the_checkpoint(
    cause: Cause,
) -> None:
    w = Outside({"budget": {"usd": 100.0}}).trains(step=35)
    committed(w, 20, 30)
    crashes(w, 37)
    next_attempt_dies(w, cause)
    assert (w.run().state, resumes_from(w), w.run().distrusted) == (S.BOOTING, (30, 1), ())


OF_CONFIG = [
    (Cause.BAD_CONFIG, "error: unrecognized arguments: --resume-stp 60"),
    (Cause.BAD_CONFIG, "_pickle.UnpicklingError: Weights only load failed."),
    (Cause.IMPORT_ERROR, "ModuleNotFoundError: No module named 'loader'"),
]


@pytest.mark.parametrize(("cause", "detail"), OF_CONFIG)
def test_a_wrong_option_or_code_that_cannot_resume_stops_at_once_and_the_mended_run_goes_on_from_the_newest_checkpoint(
    cause: Cause, detail: str
) -> None:
    w = Outside({"budget": {"usd": 100.0}}).trains(step=65)
    committed(w, 10, 20, 30, 40, 50, 60)
    crashes(w, 65, Cause.PREEMPTED)
    next_attempt_dies(w, cause, detail)
    assert (w.run().state, w.run().attempt, w.run().distrusted, w.living()) == (S.FAILED, 2, (), [])
    assert w.store.save(resumed(w.run(), w.now_s, renewed=Renewed(w.run().spec, "")))
    w.after(60).settle()
    assert (w.run().state, resumes_from(w)) == (S.BOOTING, (60, 1))


def test_of_checkpoints_that_do_not_fit_the_model_one_older_one_is_tried_and_the_mended_run_goes_on_from_the_newest() -> (
    None
):
    w = Outside({"budget": {"usd": 100.0}}).trains(step=65)
    committed(w, 40, 50, 60)
    crashes(w, 65, Cause.PREEMPTED)
    words = "size mismatch for lm_head.weight: copying a param"
    next_attempt_dies(w, Cause.BAD_CHECKPOINT, words, action=Action.STOP)
    assert (w.run().state, resumes_from(w), [one.step for one in w.run().distrusted]) == (
        S.BOOTING,
        (50, 1),
        [60],
    )
    next_attempt_dies(w, Cause.BAD_CHECKPOINT, words, action=Action.STOP)
    assert (w.run().state, w.run().attempt, w.living()) == (S.FAILED, 3, [])
    assert w.store.save(resumed(w.run(), w.now_s, renewed=Renewed(w.run().spec, "")))
    w.after(60).settle()
    assert (w.run().state, resumes_from(w)) == (S.BOOTING, (60, 1))


def test_words_about_the_config_count_against_the_checkpoint_once_an_attempt_has_resumed_with_it() -> None:
    w = Outside({"budget": {"usd": 100.0}}).trains(step=35)
    committed(w, 20, 30)
    crashes(w, 37, Cause.PREEMPTED)
    trains_on(w, 31)
    committed(w, 40, attempt=2)
    crashes(w, 45, Cause.PREEMPTED)
    next_attempt_dies(w, Cause.BAD_CONFIG, "_pickle.UnpicklingError: Weights only load failed.")
    assert (w.run().state, resumes_from(w), [one.step for one in w.run().distrusted]) == (
        S.BOOTING,
        (30, 1),
        [40],
    )


def test_arguments_of_a_rollback_that_the_trainer_refuses_count_against_no_checkpoint() -> None:
    w = Outside({"budget": {"usd": 100.0}, "health": ROLLBACK}).trains(step=15)
    (first,) = committed(w, 10)
    crashes(w, 15, Cause.PREEMPTED)
    trains_on(w, 11)
    committed(w, 20, attempt=2)
    del w.bucket.objects[first.key]  # it is proven, and a rollback would choose it
    crashes(w, 30, Cause.NOT_FINITE, not_finite_since=26, finite_step=25)
    assert resumes_from(w) == (20, 2)
    next_attempt_dies(w, Cause.BAD_CONFIG, "error: unrecognized arguments: --lr")
    assert (w.run().state, w.run().attempt, w.run().distrusted) == (S.FAILED, 3, ())


def test_an_exit_code_that_the_user_lists_stops_the_run_also_before_the_first_step() -> None:
    w = Outside({"budget": {"usd": 100.0}, "trainer": {"stop_on": {"exit_codes": [3]}}}).trains(step=35)
    committed(w, 20, 30)
    crashes(w, 37, Cause.PREEMPTED)
    next_attempt_dies(w, code=3)
    assert (w.run().state, w.run().attempt, w.living()) == (S.FAILED, 2, [])


def test_checkpoints_that_no_attempt_could_load_are_trusted_again_with_mended_code_and_stay_in_the_bucket() -> (
    None
):
    w = Outside({"budget": {"usd": 100.0}}).trains(step=65)
    committed(w, 10, 20, 30, 40, 50, 60)
    crashes(w, 65, Cause.PREEMPTED)
    for _ in range(CHECKPOINTS_TRIED_MAX):
        next_attempt_dies(
            w,
            Cause.TRAINER_ERROR,
            "TypeError: load() missing 1 required positional argument: 'step'",
            action=Action.STOP,
        )
    assert (w.run().state, len(marks(w))) == (S.STOPPED, CHECKPOINTS_TRIED_MAX)
    assert w.store.save(resumed(w.run(), w.now_s, renewed=Renewed(w.run().spec, "")))
    w.after(60).settle()
    assert (w.run().state, resumes_from(w), w.run().distrusted, marks(w)) == (S.BOOTING, (60, 1), (), [])


def test_a_checkpoint_that_fails_while_others_are_resumed_from_stays_distrusted_with_another_config() -> None:
    w = Outside({"budget": {"usd": 100.0}}).trains(step=35)
    committed(w, 20, 30)
    crashes(w, 37, Cause.PREEMPTED)
    next_attempt_dies(w, Cause.BAD_CHECKPOINT, "failed finding central directory")
    trains_on(w, 21)
    w.exit(Cause.ACCESS_DENIED, step=22)
    w.settle()
    assert w.store.save(resumed(w.run(), w.now_s, renewed=Renewed(w.run().spec, "")))
    w.after(60).settle()
    assert (w.run().state, resumes_from(w)) == (S.BOOTING, (20, 1))


def test_a_checkpoint_that_could_not_be_loaded_is_not_chosen_again_after_the_run_went_back() -> None:
    w = Outside({"budget": {"usd": 100.0}}).trains(step=35)
    committed(w, 10, 20, 30)
    crashes(w, 37)
    next_attempt_dies(w)
    trains_on(w, 21)
    crashes(w, 25)
    assert (w.run().state, resumes_from(w)) == (S.BOOTING, (20, 1))
    trains_on(w, 21)
    committed(w, 40, attempt=w.run().attempt)
    crashes(w, 45)
    assert resumes_from(w) == (40, 4)


def test_a_run_none_of_whose_checkpoints_can_be_loaded_stops_and_quotes_each_error() -> None:
    w = Outside({"budget": {"usd": 100.0}}).trains(step=35)
    committed(w, 20, 30)
    crashes(w, 37)
    next_attempt_dies(w, detail="bad magic number 30")
    next_attempt_dies(w, detail="bad magic number 20")
    assert (w.run().state, w.run().attempt, w.living()) == (S.STOPPED, 3, [])
    assert "step 30 of attempt 1 in attempt 2: bad magic number 30" in w.run().why
    assert "step 20 of attempt 1 in attempt 3: bad magic number 20" in w.run().why


def test_an_only_checkpoint_is_tried_once_more_before_the_run_is_given_up() -> None:
    w = Outside({"budget": {"usd": 100.0}}).trains(step=35)
    committed(w, 30)
    crashes(w, 37)
    next_attempt_dies(w, Cause.KILLED, "killed by SIGKILL")
    assert (w.run().state, resumes_from(w)) == (S.BOOTING, (30, 1))
    next_attempt_dies(w, Cause.KILLED, "killed by SIGKILL")
    assert (w.run().state, w.run().attempt) == (S.STOPPED, 3)


def test_only_the_newest_checkpoints_are_tried_however_many_there_are() -> None:
    w = Outside({"budget": {"usd": 1000.0}}).trains(step=95)
    committed(w, *range(10, 100, 10))
    crashes(w, 97)
    for _ in range(CHECKPOINTS_TRIED_MAX):
        assert w.run().state is S.BOOTING
        next_attempt_dies(w)
    assert (w.run().state, w.run().attempt) == (S.STOPPED, 1 + CHECKPOINTS_TRIED_MAX)


def test_a_person_who_resumes_without_a_step_does_not_get_the_checkpoint_that_failed() -> None:
    w = Outside({"budget": {"usd": 100.0}}).trains(step=35)
    committed(w, 20, 30)
    crashes(w, 37)
    next_attempt_dies(w)
    next_attempt_dies(w, Cause.ACCESS_DENIED)
    assert w.run().state is S.FAILED
    assert w.store.save(resumed(w.run(), w.now_s))
    w.after(60).settle()
    assert (w.run().state, resumes_from(w)) == (S.BOOTING, (20, 1))


def test_a_person_who_names_a_step_gets_that_step_even_if_it_failed_before() -> None:
    w = Outside({"budget": {"usd": 100.0}}).trains(step=35)
    committed(w, 20, 30)
    crashes(w, 37)
    next_attempt_dies(w)
    next_attempt_dies(w)
    assert w.run().state is S.STOPPED
    assert w.store.save(resumed(w.run(), w.now_s, step=30))
    w.after(60).settle()
    assert (w.run().state, resumes_from(w)) == (S.BOOTING, (30, 1))
    trains_on(w, 31)
    assert [one.step for one in w.run().distrusted] == [20]
    assert marks(w) == ["000000000020-e1-distrusted", "000000000030-e1-proven"]


def test_a_step_that_vanished_since_it_was_asked_for_ends_the_run_with_those_that_are_there() -> None:
    w = Outside({"budget": {"usd": 100.0}}).trains(step=35)
    committed(w, 20, 30)
    w.exit(Cause.IMPORT_ERROR, step=37)
    w.settle()
    assert w.store.save(resumed(w.run(), w.now_s, step=25))
    w.after(60).settle()
    assert (w.run().state, w.living()) == (S.STOPPED, [])
    assert "step 25" in w.run().why
    assert "30, 20" in w.run().why


def test_a_first_step_after_a_resume_marks_the_checkpoint_as_proven_in_the_bucket() -> None:
    w = Outside().trains(step=35)
    committed(w, 30)
    crashes(w, 37)
    trains_on(w, 31)
    assert mark_key(b.RUN_ID, 30, 1, "proven") in w.bucket.objects


def test_a_machine_that_restored_another_checkpoint_proves_nothing_of_the_one_it_was_told_to() -> None:
    w = Outside().trains(step=35)
    committed(w, 20, 30)
    crashes(w, 37)
    w.settle()
    w.after(5).heartbeat(phase=Phase.TRAIN, restored_step=20)
    w.settle()
    w.after(5).heartbeat(phase=Phase.TRAIN, step=33, restored_step=20)
    w.settle()
    assert (w.run().state, marks(w)) == (S.TRAINING, [])


def test_a_proven_checkpoint_is_not_blamed_for_a_later_death() -> None:
    w = Outside({"budget": {"usd": 100.0}}).trains(step=35)
    committed(w, 20, 30)
    crashes(w, 37)
    trains_on(w, 31)
    crashes(w, 33)
    next_attempt_dies(w)
    assert (w.run().state, resumes_from(w)) == (S.BOOTING, (30, 1))


def test_a_changed_config_whose_first_attempt_dies_is_at_fault_itself() -> None:
    w = Outside({"budget": {"usd": 100.0}}).trains(step=35)
    committed(w, 20, 30)
    w.exit(Cause.IMPORT_ERROR, step=37)
    w.settle()
    assert w.store.save(resumed(w.run(), w.now_s, renewed=Renewed(w.run().spec, "")))
    w.after(60).settle()
    next_attempt_dies(w)
    assert (w.run().state, resumes_from(w), w.run().strikes) == (S.BOOTING, (30, 1), (Cause.TRAINER_ERROR,))


def test_a_bucket_that_fails_at_the_first_step_gets_the_mark_at_the_next_fence() -> None:
    w = Outside().trains(step=35)
    committed(w, 30)
    crashes(w, 37)
    w.settle()
    w.after(5).heartbeat(phase=Phase.TRAIN)
    w.settle()
    w.fail["bucket"] = TemporaryError("HTTP 503")
    w.after(5).heartbeat(phase=Phase.TRAIN, step=31)
    w.settle()
    assert (w.run().state, marks(w)) == (S.TRAINING, [])
    del w.fail["bucket"]
    crashes(w, 33)
    assert marks(w) == ["000000000030-e1-proven"]


# ------------------------------------------------------------------------------------------------------------
# not finite


def test_people_are_told_at_the_first_loss_that_is_not_finite_and_when_it_is_over() -> None:
    w = Outside().trains(step=15)
    w.after(5).heartbeat(step=16, not_finite_since=16, finite_step=15)
    w.settle()
    w.after(5).heartbeat(step=17, not_finite_since=16, finite_step=15)
    w.settle()
    told = [text for text in alerts(w) if "not finite" in text]
    assert len(told) == 1
    assert "since step 16" in told[0]
    w.after(5).heartbeat(step=18, finite_step=18, loss=1.0)
    w.settle()
    w.after(5).heartbeat(step=19, not_finite_since=19, finite_step=18)
    w.settle()
    assert len([text for text in alerts(w) if "not finite" in text]) == 1, (
        "a loss that comes and goes is told once"
    )
    w.after(policy_of(AlertKind.NOT_FINITE).stays_s).heartbeat(step=20, finite_step=20, loss=1.0)
    w.settle()
    assert "the loss is finite again" in lines(w)


def test_a_run_that_diverged_ends_and_a_resume_goes_on_from_before_the_divergence() -> None:
    w = Outside({"budget": {"usd": 100.0}}).trains(step=15)
    committed(w, 10)
    committed(w, 20, finite=False, not_finite_since=16)
    w.after(5).exit(Cause.NOT_FINITE, step=25, not_finite_since=16, finite_step=15)
    w.settle()
    assert w.run().state is S.FAILED
    assert w.run().attempts[0].not_finite_since == 16
    assert w.store.save(resumed(w.run(), w.now_s))
    w.after(60).settle()
    assert resumes_from(w) == (10, 1)


def test_a_checkpoint_between_two_logged_steps_counts_as_diverged_if_only_the_later_one_was_not_finite() -> (
    None
):
    w = Outside({"budget": {"usd": 100.0}}).trains(step=15)
    committed(w, 10, 15)  # the loss of step 10 was finite, and that of step 20, the next one logged, was not
    w.after(5).exit(Cause.NOT_FINITE, step=30, not_finite_since=20, finite_step=10)
    w.settle()
    assert w.store.save(resumed(w.run(), w.now_s))
    w.after(60).settle()
    assert resumes_from(w) == (10, 1)


def test_a_rollback_goes_back_to_the_last_finite_checkpoint_with_the_users_arguments() -> None:
    w = Outside({"budget": {"usd": 100.0}, "health": ROLLBACK}).trains(step=15)
    committed(w, 5, 10)
    committed(w, 20, finite=False, not_finite_since=16)
    crashes(w, 25, Cause.NOT_FINITE, not_finite_since=16, finite_step=15)
    assert (w.run().state, w.run().rollbacks, resumes_from(w)) == (S.BOOTING, 1, (10, 1))


def test_a_run_that_diverged_up_to_its_last_step_goes_back_too() -> None:
    w = Outside({"budget": {"usd": 100.0}, "health": ROLLBACK, "trainer": {"steps": 60}}).trains(step=55)
    committed(w, 50)
    committed(w, 60, finite=False, not_finite_since=51)
    crashes(w, 60, Cause.NOT_FINITE, not_finite_since=51, finite_step=50)
    assert (w.run().state, w.run().rollbacks, resumes_from(w)) == (S.BOOTING, 1, (50, 1))


def test_a_rollback_prefers_a_proven_checkpoint() -> None:
    w = Outside({"budget": {"usd": 100.0}, "health": ROLLBACK}).trains(step=15)
    committed(w, 10)
    crashes(w, 15)
    trains_on(w, 11)
    committed(w, 20, attempt=2)
    crashes(w, 30, Cause.NOT_FINITE, not_finite_since=26, finite_step=25)
    assert (w.run().state, resumes_from(w)) == (S.BOOTING, (10, 1))


def test_a_run_goes_back_only_so_often() -> None:
    w = Outside({"budget": {"usd": 100.0}, "health": ROLLBACK}).trains(step=15)
    committed(w, 10)
    for attempt in (1, 2):
        crashes(w, 25, Cause.NOT_FINITE, not_finite_since=16, finite_step=15)
        assert (w.run().state, w.run().attempt) == (S.BOOTING, attempt + 1)
        trains_on(w, 11)
    crashes(w, 25, Cause.NOT_FINITE, not_finite_since=16, finite_step=15)
    assert (w.run().state, w.living()) == (S.FAILED, [])
    assert "went back 2 times" in w.run().why


def test_a_rollback_without_a_checkpoint_from_before_starts_anew() -> None:
    w = Outside({"budget": {"usd": 100.0}, "health": ROLLBACK}).trains(step=5)
    committed(w, 10, finite=False, not_finite_since=4)
    crashes(w, 15, Cause.NOT_FINITE, not_finite_since=4, finite_step=3)
    assert (w.run().state, w.run().resume) == (S.BOOTING, None)


def test_a_rollback_to_the_only_finite_checkpoint_does_not_start_anew_though_the_figures_after_it_were_not_finite() -> (
    None
):
    w = Outside({"budget": {"usd": 100.0}, "health": ROLLBACK}).trains(step=1000)
    committed(w, 1000, finite=True)
    crashes(w, 1000, Cause.PREEMPTED)
    trains_on(w, 1001)
    committed(w, 1005, attempt=2, finite=False, not_finite_since=1001)
    crashes(w, 1010, Cause.NOT_FINITE, not_finite_since=1001)
    assert (w.run().state, w.run().rollbacks, resumes_from(w)) == (S.BOOTING, 1, (1000, 1))


def test_a_person_who_resumes_a_diverged_run_gets_its_only_finite_checkpoint() -> None:
    w = Outside({"budget": {"usd": 100.0}}).trains(step=1000)
    committed(w, 1000, finite=True)
    crashes(w, 1000, Cause.PREEMPTED)
    trains_on(w, 1001)
    committed(w, 1005, attempt=2, finite=False, not_finite_since=1001)
    w.after(5).exit(Cause.NOT_FINITE, step=1010, not_finite_since=1001)
    w.settle()
    assert w.store.save(resumed(w.run(), w.now_s))
    w.after(60).settle()
    assert resumes_from(w) == (1000, 1)


def test_a_run_that_went_back_keeps_the_arguments_of_the_rollback_after_a_person_resumed_it() -> None:
    w = Outside({"budget": {"usd": 100.0}, "health": ROLLBACK}).trains(step=15)
    committed(w, 10)
    crashes(w, 25, Cause.NOT_FINITE, not_finite_since=16, finite_step=15)
    trains_on(w, 11)
    w.after(5).exit(Cause.ACCESS_DENIED, step=12)
    w.settle()
    assert w.store.save(resumed(w.run(), w.now_s))
    assert (w.run().rollbacks, w.run().has_gone_back) == (0, True)


def test_a_loss_that_begins_anew_after_a_resume_is_told_with_the_step() -> None:
    w = Outside()
    w.settle()
    w.after(5).heartbeat()
    w.settle()
    w.after(5).heartbeat(step=1, loss=9.0, learning_rate=1e-6)
    w.settle()
    committed(w, 30, loss=2.0, learning_rate=1e-3)
    crashes(w, 37)
    w.settle()
    w.after(5).heartbeat(phase=Phase.TRAIN)
    w.settle()
    w.after(5).heartbeat(phase=Phase.TRAIN, step=31, loss=2.1, learning_rate=2e-6)
    w.settle()
    (told,) = [text for text in alerts(w) if "begun anew" in text]
    assert "at step 31" in told
    assert "learning rate is 2e-06" in told
    assert "the loss is" not in told


# -------------------------------------------------------------------------------------------------------
# saves that were cut off


def test_a_newest_checkpoint_that_lacks_what_all_before_it_had_is_passed_over() -> None:
    w = Outside({"budget": {"usd": 100.0}}).trains(step=35)
    committed(w, 10, 20, files=(b.stored_file("weights", 10, size=4), b.stored_file("optimizer", 20, size=4)))
    committed(w, 30)
    crashes(w, 37)
    assert resumes_from(w) == (20, 1)
    (chosen,) = [text for text in lines(w) if text.startswith("resumes from step 20")]
    assert "instead of step 30 of attempt 1: it lacks optimizer" in chosen
    assert "its save was probably cut off" in chosen


def test_a_checkpoint_of_fewer_files_after_which_the_trainer_went_on_is_whole() -> None:
    w = Outside({"budget": {"usd": 100.0}}).trains(step=35)
    committed(w, 10, 20, files=(b.stored_file("weights", 10, size=4), b.stored_file("optimizer", 20, size=4)))
    committed(w, 30, seen_whole=True)
    crashes(w, 37)
    assert resumes_from(w) == (30, 1)


def test_a_checkpoint_that_an_old_machine_uploads_again_after_it_was_chosen_stays_the_newest() -> None:
    w = Outside({"budget": {"usd": 100.0}}).trains(step=35)
    newest = committed(w, 20, 30)[1]
    crashes(w, 37)
    assert resumes_from(w) == (30, 1)
    again = newest.model_copy(update={"created_s": newest.created_s + 60})
    w.bucket.objects[again.key] = again.model_dump_json(exclude_none=True).encode()
    w.exit(Cause.PREEMPTED)
    w.settle()
    assert (resumes_from(w), w.run().resume) == ((30, 1), again.point)
    assert not any("missing in the bucket" in text for text in lines(w))


def test_a_checkpoint_that_lost_a_blob_after_it_was_restored_is_passed_over_at_once() -> None:
    w = Outside({"budget": {"usd": 100.0}}).trains(step=35)
    newest = committed(w, 20, 30)[1]
    crashes(w, 37)
    assert resumes_from(w) == (30, 1)
    del w.bucket.objects[next(iter(newest.blobs()))]
    w.exit(Cause.PREEMPTED)
    w.settle()
    assert resumes_from(w) == (20, 1)
    (told,) = [text for text in alerts(w) if "older checkpoint" in text]
    assert "files of step 30, which was committed, are missing in the bucket" in told


def test_a_run_whose_every_checkpoint_is_damaged_in_the_bucket_rents_no_other_machine() -> None:
    w = Outside({"budget": {"usd": 100.0}}).trains(step=35)
    committed(w, 10, 20)
    crashes(w, 37)
    next_attempt_dies(w, Cause.CHECKPOINTS_DAMAGED, "step 20 is damaged in the bucket: weights")
    assert (w.run().state in (S.STOPPED, S.FAILED), w.run().attempt, w.run().cause) == (
        True,
        2,
        Cause.CHECKPOINTS_DAMAGED,
    )


@pytest.mark.parametrize("marked", [True, False], ids=["with marks", "without marks"])
def test_an_emptied_bucket_is_seen_though_the_control_plane_marks_proven_checkpoints_there(
    marked: bool,
) -> None:
    """Training would otherwise start again from step 0, on a machine that is paid for."""
    w = Outside({"budget": {"usd": 500.0}}).trains(step=10)
    committed(w, 10)
    crashes(w, 11)
    trains_on(w, 12)
    assert mark_key(b.RUN_ID, 10, 1, "proven") in w.bucket.objects
    there = dict(w.bucket.objects)
    w.bucket.objects.clear()
    if marked:
        w.bucket.objects[mark_key(b.RUN_ID, 10, 1, "proven")] = b""
    for pod in w.pods.real.list():
        w.pods.real.preempt(pod.pod_id)
    w.sweeps(3600)
    assert (w.run().state, w.run().attempt, w.living()) == (S.QUEUED, 2, [])
    assert "tiny-1: a committed checkpoint cannot be found" in [alert.title for alert in w.reported.alerts]
    w.bucket.objects |= there
    w.sweeps(60)
    assert w.run().attempt == 3
    assert w.run().resume is not None
    assert w.run().resume.step == 10  # type: ignore[union-attr]  # not None, as the line above shows
