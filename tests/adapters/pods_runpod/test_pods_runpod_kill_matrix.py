"""What a run does when RunPod fails it: the ways that other rental APIs do not have; see `rental_apis`."""

from pathlib import Path
from typing import Any

import pytest

from prime_train.runs.run import RunState
from prime_train.spec.causes import Cause
from tests import builders as b
from tests.adapters.pods_runpod.runpod_pods import RunPodDays, days_of
from tests.adapters.strikes import Strike, strikes
from tests.exhaustive import some_of
from tests.fakes.http import ALWAYS
from tests.fakes.runpod import FakeRunPod, problem

CREATE: dict[str, Any] = {"method": "POST", "path": "^/v2/pods$"}
NO_REASON = "This pod could not be created."


@pytest.fixture(name="days")
def _days(fake: FakeRunPod, tmp_path: Path) -> RunPodDays:
    return days_of(fake, tmp_path)


@pytest.fixture(name="training")
def _training(days: RunPodDays) -> RunPodDays:
    days.pass_by(300)
    assert days.is_training_alone()
    return days


# ------------------------------------------------------------------------------------------------------------
# the create call


def test_machines_that_are_taken_between_the_catalogue_and_the_order_are_waited_for(days: RunPodDays) -> None:
    days.fake.fail(problem(400, "Bad Request", days.fake.terms.no_capacity), times=ALWAYS, **CREATE)
    days.pass_by(3600)
    assert {attempt.cause for attempt in days.run().attempts} == {Cause.NO_CAPACITY}
    assert 3 <= len(days.fake.requests_to("POST", "/v2/pods")) <= 20
    days.fake.heal()
    days.pass_by(1800)
    assert days.is_training_alone()


def test_a_refusal_of_every_machine_for_no_reason_is_said_to_be_the_requests(days: RunPodDays) -> None:
    days.fake.fail(problem(400, "Bad Request", NO_REASON), times=ALWAYS, **CREATE)
    days.pass_by(3600)
    first, *others = days.run().attempts
    assert first.cause is Cause.NO_CAPACITY
    assert Cause.LAUNCH_REFUSED in {attempt.cause for attempt in others}
    shown = [
        line.text
        for line in days.world.store.history(b.RUN_ID)
        if "the request itself may be at fault" in line.text
    ]
    assert shown
    assert NO_REASON in shown[0]


@pytest.mark.parametrize(
    ("status", "cause"),
    some_of([(422, Cause.LAUNCH_REFUSED), (401, Cause.LAUNCH_REFUSED), (402, Cause.NO_FUNDS)], one_in=3),
)
def test_a_refusal_is_taken_as_runpod_means_it_and_nothing_is_rented(
    days: RunPodDays, status: int, cause: Cause
) -> None:
    days.fake.fail(problem(status, "No", "not like this"), times=ALWAYS, **CREATE)
    days.pass_by(600)
    assert {attempt.cause for attempt in days.run().attempts} == {cause}
    assert not days.fake.pods


def test_a_machine_that_the_account_may_not_use_is_passed_over_for_the_next_one(days: RunPodDays) -> None:
    days.fake.fail(problem(403, "Forbidden", "this account may not use these machines"), times=1, **CREATE)
    days.pass_by(600)
    first, second = days.run().attempts
    assert first.cause is Cause.NO_CAPACITY
    assert "may not use these machines" in first.detail
    assert first.offer.offer_id != second.offer.offer_id
    assert days.is_training_alone()


# ------------------------------------------------------------------------------------------------------------
# the machine


@strikes(Strike.STUCK, "runpod")
def test_a_machine_that_cannot_be_reached_is_given_back_and_another_is_rented(days: RunPodDays) -> None:
    days.fake.plan.public_ip = False
    days.pass_by(60)
    days.fake.plan.public_ip = True
    days.pass_by(3600)
    lost = days.run().attempts[0]
    assert lost.cause is Cause.BOOT_FAILED
    assert (lost.fenced_s or 0) - lost.launched_s <= 600
    assert days.is_training_alone()
    assert len(days.fake.pods) == 2
    assert days.most_alive == 1


# ------------------------------------------------------------------------------------------------------------
# the list and the limits


def test_a_service_that_says_when_it_is_back_is_asked_then_and_not_before(training: RunPodDays) -> None:
    training.fake.fail(
        problem(503, "Unavailable", "maintenance", headers={"Retry-After": "240"}),
        times=1,
        method="GET",
        path="/v2/pods$",
    )
    before = len(training.fake.requests)
    training.pass_by(60)
    during = len(training.fake.requests)
    training.pass_by(120)
    assert len(training.fake.requests) - during == 0 < during - before
    training.pass_by(600)
    assert training.is_training_alone()
    assert len(training.fake.pods) == 1


@strikes(Strike.TOO_MANY, "runpod")
def test_too_many_requests_stop_all_of_them_until_their_window_ends(training: RunPodDays) -> None:
    before = len(training.fake.requests)
    training.fake.terms.per_minute = 1
    training.pass_by(1800)
    assert training.is_training_alone()
    assert training.run().attempt == 1
    refused = [request for request in training.fake.requests[before:] if request.status == 429]
    assert len(refused) <= 1
    training.fake.terms.per_minute = 1_000
    training.fake.end(training.pod.id, None)
    training.pass_by(1800)
    assert training.is_training_alone()


@strikes(Strike.TOO_MANY, "runpod")
def test_a_429_that_names_its_window_loses_nothing(training: RunPodDays) -> None:
    first, headers = training.pod, {"RateLimit": '"day";r=0;t=80000'}
    training.fake.fail(
        problem(429, "Too Many Requests", "slow down", headers=headers), path="^/v2/", times=ALWAYS
    )
    training.pass_by(3600)
    assert (training.run().attempt, training.run().state) == (1, RunState.TRAINING)
    training.fake.heal()
    training.fake.end(first.id, None)
    training.pass_by(3600)
    assert training.is_training_alone()
