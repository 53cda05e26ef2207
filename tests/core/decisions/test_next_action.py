"""What follows from the end of a trainer, given what the attempts before it did."""

from dataclasses import replace
from typing import Any

import pytest

from prime_train.runs import decide as d
from prime_train.runs.change import change
from prime_train.runs.next_action import OUTAGES_MAX, SAME_SETUPS_MAX, Ending, alike, next_action
from prime_train.runs.run import Attempt, RunState
from prime_train.runs.verdict import Sick
from prime_train.spec.causes import POLICY, Action, Cause
from prime_train.spec.spec import TrainerSpec
from tests import builders as b
from tests.core.given import NOW_S, a_run, as_expected

INDEX = "IndexError: list index out of range"
TRAINER = TrainerSpec(command="train.py")


def ended(number: int = 1, **changes: Any) -> Attempt:
    return b.new_attempt(
        number,
        RunState.QUEUED,
        **({"cause": Cause.TRAINER_ERROR, "detail": INDEX, "last_step": 37} | changes),
    )


def after(ending: Ending, *earlier: Attempt, **trainer: Any) -> Action:
    return next_action(TrainerSpec(command="train.py", **trainer), ending, earlier).action


def test_every_cause_has_one_of_four_actions() -> None:
    assert {policy.action for policy in POLICY.values()} == set(Action)
    assert after(Ending(Cause.BAD_CONFIG)) is Action.STOP
    assert after(Ending(Cause.GPU_HARDWARE)) is Action.ANOTHER_MACHINE
    assert after(Ending(Cause.NETWORK_ERROR)) is Action.BACK_OFF
    assert after(Ending(Cause.KILLED)) is Action.SAME_MACHINE


def test_the_same_error_at_the_same_step_twice_ends_the_run_with_both_quoted() -> None:
    ending = Ending(Cause.TRAINER_ERROR, INDEX, Action.STOP, step=37, restored_step=30)
    assert after(ending) is Action.SAME_MACHINE
    again = next_action(TRAINER, ending, [ended(1), ended(2, cause=Cause.PREEMPTED, detail="gone")])
    assert again.action is Action.STOP
    assert again.why.count(INDEX) == 2
    assert "step 37" in again.why


def test_a_refusal_after_new_steps_is_tried_once_more_and_ends_the_run_if_it_comes_again() -> None:
    refused = Ending(
        Cause.BAD_CONFIG, "ValueError: the sample is too long", Action.STOP, step=37, restored_step=30
    )
    assert after(refused) is Action.SAME_MACHINE
    assert after(refused, ended(cause=Cause.BAD_CONFIG, detail=refused.detail)) is Action.STOP
    assert after(replace(refused, asked=None)) is Action.STOP
    assert after(replace(refused, step=30)) is Action.STOP


@pytest.mark.parametrize(
    "changes", [{"last_step": 36}, {"detail": "KeyError: 'x'"}, {"cause": Cause.PREEMPTED}]
)
def test_another_error_or_another_step_is_not_the_same_end(changes: dict[str, Any]) -> None:
    ending = Ending(Cause.TRAINER_ERROR, INDEX, step=37, restored_step=30)
    assert after(ending, ended(**changes)) is Action.SAME_MACHINE


def test_numbers_addresses_and_paths_do_not_make_two_errors_of_one() -> None:
    first = "RuntimeError: rank 3: bad token 0x7ff0 in /tmp/run-1/data/shard-07.bin at 12.5 s"
    assert alike(first) == alike("RuntimeError: rank 0: bad token 0x8aa1 in /home/u/x.bin at 99 s")
    assert alike(first) != alike(
        "RuntimeError: rank 3: bad word 0x7ff0 in /tmp/run-1/data/shard-07.bin at 12.5 s"
    )


def test_an_attempt_that_died_before_its_first_new_step_leaves_an_older_checkpoint_its_chance() -> None:
    unloadable = Ending(Cause.TRAINER_ERROR, "KeyError: 'optimizer'", Action.STOP, step=30, restored_step=30)
    before = ended(1, detail="KeyError: 'optimizer'", last_step=30, resumed_step=30)
    assert after(unloadable, before) is Action.SAME_MACHINE
    assert after(replace(unloadable, step=0, restored_step=0)) is Action.STOP


NO_SUCH = (
    "`pip install -r requirements.txt` ended with code 1: ERROR: No matching distribution found for "
    "torhc==2.9"
)
LOST_HOST = "Could not resolve host: example.org"
MADE = "`make` ended with code 2: /root/prime-train/a-1-e{}/work: 0x7f3{} at 12:01:5{}"


def failed_setup(number: int, detail: str, **changes: Any) -> Attempt:
    return ended(number, cause=Cause.SETUP_FAILED, detail=detail, last_step=0, **changes)


def test_a_setup_that_fails_the_same_way_on_two_machines_stops_with_both_quoted() -> None:
    again = next_action(TRAINER, Ending(Cause.SETUP_FAILED, NO_SUCH), [failed_setup(1, NO_SUCH)])
    assert again.action is Action.STOP
    assert again.why.count("No matching distribution found for torhc") == 2
    assert (
        after(Ending(Cause.SETUP_FAILED, MADE.format(2, 2, 2)), failed_setup(1, MADE.format(1, 1, 1)))
        is Action.STOP
    )


def test_a_setup_of_a_run_that_has_checkpoints_is_compared_too() -> None:
    ending = Ending(Cause.SETUP_FAILED, NO_SUCH, step=30, restored_step=30)
    assert after(ending, failed_setup(2, NO_SUCH, resumed_step=30)) is Action.STOP


@pytest.mark.parametrize(
    "earlier",
    [
        (),
        (failed_setup(1, MADE.format(1, 1, 1)),),
        (failed_setup(1, NO_SUCH), ended(2, cause=Cause.SILENT, detail="")),
    ],
    ids=["once", "in another way", "with another failure since"],
)
def test_a_setup_that_has_not_failed_twice_in_a_row_the_same_way_gets_another_machine(
    earlier: tuple[Attempt, ...],
) -> None:
    assert after(Ending(Cause.SETUP_FAILED, NO_SUCH), *earlier) is not Action.STOP
    assert after(Ending(Cause.SETUP_FAILED, ""), failed_setup(1, "")) is not Action.STOP


@pytest.mark.parametrize("cause", [Cause.HOST_OOM, Cause.GPU_OOM])
def test_out_of_memory_is_resumed_only_after_new_durable_steps(cause: Cause) -> None:
    assert after(Ending(cause, "out of memory", step=25, has_gained=True)) is Action.SAME_MACHINE
    assert after(Ending(cause, "out of memory", step=45, restored_step=20)) is Action.STOP


def test_words_of_the_trainer_outrank_what_its_cause_says() -> None:
    assert after(Ending(Cause.GPU_OOM, "held by others", Action.ANOTHER_MACHINE)) is Action.ANOTHER_MACHINE
    assert after(Ending(Cause.CUDA_ERROR, "device-side assert", Action.STOP)) is Action.STOP


def test_the_users_exit_codes_outrank_everything() -> None:
    assert after(Ending(Cause.GPU_OOM, code=42), recover_on={"exit_codes": [42]}) is Action.SAME_MACHINE
    assert after(Ending(Cause.KILLED, code=-9), stop_on={"exit_codes": [137]}) is Action.STOP
    assert after(Ending(Cause.KILLED, code=137), stop_on={"exit_codes": [-9]}) is Action.STOP
    assert after(Ending(Cause.KILLED, code=1), stop_on={"exit_codes": [137]}) is Action.SAME_MACHINE


@pytest.mark.parametrize(
    "orders",
    [
        {"recover_on": {"exit_codes": [0]}},
        {"recover_on": {"exit_codes": [3]}, "stop_on": {"exit_codes": [3]}},
    ],
)
def test_orders_that_contradict_are_refused(orders: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="exit code"):
        TrainerSpec(command="train.py", **orders)


def test_an_outage_is_waited_for_without_counting_and_not_for_ever() -> None:
    run, waits_s = a_run(RunState.STARTING), []
    for _ in range(9):
        decision = d.decide(
            run, Sick(Cause.NETWORK_ERROR, "429 Client Error", exited=True), as_expected(run), NOW_S
        )
        assert isinstance(decision, d.Recover)
        left = change(run, b.lease(run), decision, NOW_S).run
        assert left.strikes == ()
        waits_s.append(left.not_before_s - NOW_S)
        run = replace(run, backoffs=left.backoffs)
    assert waits_s[0] == 15
    assert waits_s[-1] == d.OUTAGE_BACKOFF_S_MAX
    outages = [ended(n, cause=Cause.NETWORK_ERROR, last_step=0) for n in range(1, OUTAGES_MAX + 1)]
    assert after(Ending(Cause.NETWORK_ERROR, "429"), *outages) is Action.STOP
    assert after(Ending(Cause.NETWORK_ERROR, "429"), *outages[1:]) is Action.BACK_OFF


def failed_download(number: int, detail: str = NO_SUCH) -> Attempt:
    return ended(number, cause=Cause.NETWORK_ERROR, detail=detail, last_step=0)


def test_set_ups_that_end_by_the_same_words_stop_the_run_although_a_network_seemed_to_be_at_fault() -> None:
    earlier = [failed_download(number) for number in range(1, SAME_SETUPS_MAX)]
    never_up = ended(9, cause=Cause.NO_CAPACITY, first_heartbeat_s=None)
    again = next_action(TRAINER, Ending(Cause.NETWORK_ERROR, NO_SUCH), [*earlier, never_up])
    assert (again.action, str(SAME_SETUPS_MAX) in again.why) == (Action.STOP, True)
    assert after(Ending(Cause.NETWORK_ERROR, NO_SUCH), *earlier[1:]) is Action.BACK_OFF
    assert (
        after(Ending(Cause.NETWORK_ERROR, NO_SUCH), *earlier[1:], failed_download(4, MADE)) is Action.BACK_OFF
    )


@pytest.mark.parametrize(
    "detail",
    [f"`git lfs pull` ended with code 1: {LOST_HOST}", "httpx.ConnectError: All connection attempts failed"],
)
def test_an_outage_that_is_named_in_the_last_words_or_by_the_trainer_is_waited_for(detail: str) -> None:
    earlier = [failed_download(number, detail) for number in range(1, OUTAGES_MAX)]
    assert after(Ending(Cause.NETWORK_ERROR, detail), *earlier) is Action.BACK_OFF


def test_a_rule_that_says_that_the_code_does_not_fit_stops_the_run_also_after_a_restore() -> None:
    mismatch = Ending(
        Cause.BAD_CHECKPOINT, "size mismatch for lm_head.weight", Action.STOP, step=30, restored_step=30
    )
    assert after(mismatch) is Action.STOP
    assert after(replace(mismatch, asked=None)) is Action.SAME_MACHINE


def test_a_lost_peer_is_counted_and_another_machine_is_taken() -> None:
    run = a_run(RunState.TRAINING)
    verdict = Sick(Cause.NETWORK_ERROR, "ncclRemoteError", exited=True, action=Action.ANOTHER_MACHINE)
    decision = d.decide(run, verdict, as_expected(run), NOW_S)
    assert isinstance(decision, d.Recover)
    left = change(run, b.lease(run), decision, NOW_S).run
    assert left.strikes == (Cause.NETWORK_ERROR,)
    assert left.excluded == (run.attempts[-1].offer.offer_id,)
