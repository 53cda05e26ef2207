"""What a run does when Vast.ai fails it: the ways that other rental APIs do not have; see `rental_apis`."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prime_train.runs.run import RunState
from prime_train.spec.causes import Cause
from tests.adapters.pods_vast.vast_pods import CREATE, INSTANCE, LIST, SEARCH, VastDays, days_of
from tests.adapters.strikes import Strike, strikes
from tests.exhaustive import some_of
from tests.fakes.http import ALWAYS, Fault, Response, Rewrite
from tests.fakes.vast import FakeVast, Plan, Status, refused

CREATING: dict[str, Any] = {"method": "PUT", "path": CREATE}
NO_REASON = "This instance could not be created."


@pytest.fixture(name="days")
def _days(fake: FakeVast, tmp_path: Path) -> VastDays:
    return days_of(fake, tmp_path)


@pytest.fixture(name="training")
def _training(days: VastDays) -> VastDays:
    days.pass_by(300)
    assert days.is_training_alone()
    assert days.pod.bid_usd == 0.44
    return days


# ------------------------------------------------------------------------------------------------------------
# the create call


def test_a_bid_that_is_too_low_meanwhile_leaves_nothing_that_is_paid_for(days: VastDays) -> None:
    days.fake.terms.leaves_stopped = True
    dear = days.fake.hosts
    # The search still finds the old price.
    days.fake.fail(
        Rewrite(
            lambda response: replace(
                response, body=response.body.replace(b'"min_bid": 0.6,', b'"min_bid": 0.3,')
            )
        ),
        path=SEARCH,
        times=ALWAYS,
    )
    days.fake.hosts = tuple(host for host in dear if host.id == 1003)
    days.pass_by(60)
    assert days.fake.instances
    assert all(each.deleted for each in days.fake.instances if each.bid_usd is not None)
    days.fake.heal()
    days.pass_by(1800)
    assert days.is_training_alone()


def test_machines_that_are_taken_between_the_search_and_the_order_are_waited_for(days: VastDays) -> None:
    days.fake.fail(refused(410, "no_such_ask", "error 410/3907: no_such_ask"), times=ALWAYS, **CREATING)
    days.pass_by(3600)
    assert {attempt.cause for attempt in days.run().attempts} == {Cause.NO_CAPACITY}
    assert 3 <= sum(request.method == "PUT" for request in days.fake.requests) <= 20
    days.fake.heal()
    days.pass_by(1800)
    assert days.is_training_alone()


def test_a_refusal_of_every_machine_for_no_reason_is_said_to_be_the_requests(days: VastDays) -> None:
    days.fake.fail(refused(400, "invalid_args", NO_REASON), times=ALWAYS, **CREATING)
    days.pass_by(3600)
    assert Cause.LAUNCH_REFUSED in {attempt.cause for attempt in days.run().attempts}
    assert not days.fake.alive


@pytest.mark.parametrize(
    ("answer", "cause"),
    some_of(
        [
            (refused(403, "invalid_args", "Hosts can only rent their own machines."), Cause.LAUNCH_REFUSED),
            (refused(403, "3586", "Offer is not your own."), Cause.NO_CAPACITY),
            (refused(401, "auth_error", "Invalid user key"), Cause.LAUNCH_REFUSED),
            (
                refused(400, "insufficient_credit", "Your account lacks credit; see the billing page."),
                Cause.NO_FUNDS,
            ),
            (refused(400, "invalid_args", "You have reached the limit of instances."), Cause.LIMIT_REACHED),
        ],
        one_in=2,
    ),
)
def test_a_refusal_is_taken_as_vast_means_it_and_nothing_is_rented(
    days: VastDays, answer: Response, cause: Cause
) -> None:
    days.fake.fail(answer, times=ALWAYS, **CREATING)
    days.pass_by(600)
    assert {attempt.cause for attempt in days.run().attempts} == {cause}
    assert not days.fake.instances


# ------------------------------------------------------------------------------------------------------------
# the machine


@strikes(Strike.REBORN, "vast")
def test_a_machine_that_is_outbid_is_destroyed_and_never_trains_again(training: VastDays) -> None:
    first = training.pod
    training.fake.outbid(first.id, stops_in_s=20)
    training.pass_by(900)
    assert training.is_training_alone()
    assert training.run().attempt == 2
    assert first.deleted
    training.fake.resume(first.id)
    training.pass_by(3600)
    assert training.is_training_alone()
    assert not first.runs(training.fake.now_s())


@pytest.mark.parametrize("seen_as", [Status.UNKNOWN, Status.OFFLINE])
def test_a_host_that_does_not_report_is_no_reason_to_give_a_training_machine_up(
    training: VastDays, seen_as: Status
) -> None:
    # The host has lost its way to Vast.ai, but not the agent its way to us.
    actual, said = b'"actual_status": "running"', f'"actual_status": "{seen_as}"'.encode()
    rewrite = Rewrite(lambda response: replace(response, body=response.body.replace(actual, said)))
    training.fake.fail(rewrite, method="GET", times=ALWAYS)
    training.pass_by(3600)
    assert (training.run().attempt, training.run().state) == (1, RunState.TRAINING)
    assert len(training.fake.instances) == 1


@strikes(Strike.STUCK, "vast")
def test_a_machine_that_cannot_be_reached_is_given_back_and_another_is_rented(days: VastDays) -> None:
    days.fake.plan = Plan(has_ports=False, ssh_host="")
    days.pass_by(60)
    days.fake.plan = Plan()
    days.pass_by(3600)
    assert days.run().attempts[0].cause is Cause.BOOT_TIMEOUT
    assert days.is_training_alone()
    assert days.most_alive == 1


# ------------------------------------------------------------------------------------------------------------
# the list and the limits


def endless(response: Response) -> Response:
    return replace(
        response,
        body=json.dumps({**json.loads(response.body), "next_token": "eyJ2YWx1ZXMiOiB7ImlkIjogMX19"}).encode(),
    )


@strikes(Strike.CUT_LIST, "vast")
@pytest.mark.parametrize("fault", [Rewrite(endless), refused(404, "auth_error", "Invalid user key")])
def test_no_list_without_an_end_and_no_refusal_of_one_costs_a_machine(
    training: VastDays, fault: Fault
) -> None:
    training.fake.fail(fault, times=ALWAYS, method="GET", path=LIST)
    training.pass_by(3600)
    assert training.is_training_alone()
    assert (training.run().attempt, len(training.fake.instances)) == (1, 1)


@pytest.mark.parametrize(
    "answer", [Response(200, b'{"instances": null}'), refused(404, "auth_error", "Invalid user key")]
)
def test_an_answer_that_does_not_know_a_machine_proves_nothing_alone(
    training: VastDays, answer: Response
) -> None:
    training.fake.fail(answer, path=INSTANCE, times=ALWAYS)
    training.pass_by(1800)
    assert (training.run().attempt, training.run().state) == (1, RunState.TRAINING)


def test_without_searches_left_today_the_run_waits_until_midnight(days: VastDays) -> None:
    days.fake.advance(86_400 - days.fake.now_s() % 86_400 - 1800)
    days.fake.terms.search_rows = 0
    days.pass_by(1500)
    assert (days.run().state, days.fake.instances) == (RunState.QUEUED, [])
    assert len(days.fake.requests_to("POST", SEARCH)) == 1
    days.fake.terms.search_rows = 1_000
    days.pass_by(1800)
    assert days.is_training_alone()


def test_a_machine_s_bill_replaces_what_was_counted(training: VastDays) -> None:
    training.pass_by(3600)
    training.cancel()
    training.pass_by(7200)
    (instance,) = training.fake.instances
    assert instance.ended_s is not None
    billed = training.run().attempts[0].billed_usd
    assert billed == pytest.approx(instance.usd * (instance.ended_s - instance.created_s) / 3600, abs=0.001)
