"""What a run does when machines of one's own fail it. A run in virtual time; its agents send heartbeats as
long as their machines run.
"""

from pathlib import Path

import pytest

from prime_train.providers.rental.pod_names import PodMark
from prime_train.providers.ssh.pods import SshPods
from prime_train.runs.run import RunState
from prime_train.spec.causes import Cause
from tests.adapters.pods_ssh.lab import Lab, Running
from tests.adapters.rented_days import Days, Pushed, world_of
from tests.adapters.strikes import Strike, strikes

LabDays = Days[Lab, Running]


@pytest.fixture(name="days")
def _days(tmp_path: Path) -> LabDays:
    lab = Lab(tmp_path / "machines")
    pushed = Pushed(lab)
    pods = SshPods([lab.kind("box", 2)], lab.enter, pushed, mark=PodMark("11111111"), wall=lab.now_s)
    return Days(lab, "ssh", world_of("ssh", pods, tmp_path), pushed)


@pytest.fixture(name="training")
def _training(days: LabDays) -> LabDays:
    days.pass_by(120)
    assert days.is_training_alone()
    return days


@strikes(Strike.SILENCE, "ssh")
def test_a_machine_whose_taking_was_answered_by_silence_is_found_by_its_name(days: LabDays) -> None:
    days.fake.boxes["box"].loses = 1
    days.pass_by(300)
    assert days.is_training_alone()
    assert days.most_alive == 1


@strikes(Strike.TWICE, "ssh")
def test_of_two_machines_of_one_attempt_one_is_given_back(training: LabDays) -> None:
    pods = SshPods(
        [training.fake.kind("box", 2)], training.fake.enter, training.pushed, mark=PodMark("11111111")
    )
    attempt = training.run().current_attempt
    assert attempt is not None
    name = f"pt-{training.run().run_id}-e1-a{attempt.identity[:8]}"
    pods.create(name, attempt.offer, training.run().spec.hardware)
    assert len(training.fake.alive) == 2
    training.pass_by(300)
    assert training.is_training_alone()


@strikes(Strike.TAKEN, "ssh")
def test_a_machine_that_starts_again_is_cleared_and_the_run_goes_on_elsewhere_or_there(
    training: LabDays,
) -> None:
    box = training.pod.box
    box.start_again()
    training.pass_by(600)
    assert training.is_training_alone()
    assert training.run().attempt == 2


@strikes(Strike.NOTICE, "ssh")
def test_a_machine_that_is_shut_down_is_left_first_and_cleared_when_it_has_started_again(
    training: LabDays,
) -> None:
    first = training.pod
    training.notified.add(first.id)
    training.pass_by(60)
    assert training.run().state is RunState.DRAINING
    first.box.start_again()
    training.pass_by(900)
    assert training.is_training_alone()
    assert (training.run().attempt, training.run().attempts[0].cause) == (2, Cause.PREEMPTED)
    assert first.id not in first.box.taken_by


def test_a_machine_that_is_cut_off_is_left_to_train_while_it_sends_heartbeats(training: LabDays) -> None:
    training.pod.box.is_cut_off = True
    training.pass_by(900)
    assert (training.run().attempt, training.run().state) == (1, RunState.TRAINING)


@strikes(Strike.REBORN, "ssh")
def test_a_machine_that_is_silent_and_cut_off_is_fenced_and_ended_when_it_answers_again(
    training: LabDays,
) -> None:
    first = training.pod
    first.box.is_cut_off = True
    training.pushed.discard(first.id)  # no heartbeat arrives any more, though it may still train
    training.pass_by(2400)
    assert training.run().attempt == 2
    assert training.run().state is RunState.TRAINING
    assert first.id in first.box.taken_by
    first.box.is_cut_off = False
    training.pass_by(900)
    assert training.is_training_alone()
    assert first.id not in first.box.taken_by


@strikes(Strike.CUT_LIST, "ssh")
def test_no_list_that_is_cut_short_costs_a_machine(training: LabDays) -> None:
    for box in training.fake.boxes.values():
        box.change = lambda text: text[:-4]
    training.pass_by(900)
    assert (training.run().attempt, len(training.fake.alive)) == (1, 1)


def test_a_run_that_is_stopped_frees_its_machine(training: LabDays) -> None:
    training.cancel()
    training.pass_by(300)
    assert training.run().state is RunState.CANCELLED
    assert not training.fake.alive
