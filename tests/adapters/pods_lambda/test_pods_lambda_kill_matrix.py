"""What a run does when Lambda Cloud fails it: each way in which a launch, a machine, the list or the account can go wrong."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prime_train.adapters.pods_lambda import OwnSshKey, Pace
from prime_train.adapters.rental_api.pod_names import Mark
from prime_train.core.causes import Cause
from prime_train.core.run import RunState
from tests.adapters.pods_lambda.lambda_pods import INSTANCES, LAUNCH, PUBLIC_KEY, client_of, pods_of
from tests.adapters.rented_days import Days, Pushed, world_of
from tests.exhaustive import some_of
from tests.fakes.http import ALWAYS, TRUNCATED, Fault, LoseResponse, Response, Rewrite
from tests.fakes.lambda_cloud import FakeLambdaCloud, Instance, Status, error

LambdaDays = Days[FakeLambdaCloud, Instance]
CREATE: dict[str, Any] = {"method": "POST", "path": LAUNCH}
LIST: dict[str, Any] = {"method": "GET", "path": f"{INSTANCES}$"}


@pytest.fixture(name="days")
def _days(fake: FakeLambdaCloud, tmp_path: Path) -> LambdaDays:
    """Return days at the pace that Lambda Cloud allows, whose pauses pass in the fake's time; one request too early is refused."""
    fake.limits.request_s, fake.limits.launch_s, fake.plan.end_s = 1.0, 12.0, 60.0
    client = client_of(fake, clock=fake.now_s, pace=Pace(clock=fake.now_s, pause=fake.advance))
    pushed = Pushed(fake)
    pods = pods_of(fake, client=client, own_key=OwnSshKey(client, PUBLIC_KEY), pusher=pushed, mark=Mark("11111111"), wall=fake.now_s)
    return Days(fake, "lambda", world_of("lambda", pods, tmp_path), pushed)


@pytest.fixture(name="training")
def _training(days: LambdaDays) -> LambdaDays:
    days.pass_by(300)
    assert days.is_training_alone()
    return days


# ----------------------------------------------------------------------------------------------------------------------- the launch


@pytest.mark.parametrize(
    "fault",
    some_of(
        [
            LoseResponse(),
            TRUNCATED,
            Rewrite(lambda response: replace(response, status=502, body=b"<html>bad gateway</html>")),
            Rewrite(lambda response: replace(response, body=b"{}")),
            Rewrite(lambda response: replace(response, body=b'{"data": {"instance_ids": ["../ssh-keys"]}}')),
        ],
        one_in=4,
    ),
)
def test_a_machine_whose_launch_got_no_usable_answer_is_found_by_its_name(days: LambdaDays, fault: Fault) -> None:
    days.fake.fail(fault, **CREATE)
    days.pass_by(900)
    assert days.is_training_alone()
    assert len(days.fake.instances) == len(days.fake.requests_to("POST", LAUNCH)) == 1


def test_a_launch_that_never_arrived_is_made_again_and_rents_one(days: LambdaDays) -> None:
    days.fake.fail(Response(503), **CREATE)
    days.pass_by(3600)
    assert days.is_training_alone()
    assert len(days.fake.instances) == 1
    assert days.run().attempts[0].cause is Cause.LAUNCH_LOST


def test_of_two_machines_of_one_launch_one_is_given_back(days: LambdaDays) -> None:
    def again(response: Response) -> Response:
        request = next(request for request in days.fake.requests if request.path == LAUNCH)
        days.fake.launch(request)
        return response

    days.fake.fail(Rewrite(again), **CREATE)
    days.pass_by(900)
    assert len(days.fake.instances) == 2
    assert days.is_training_alone()


@pytest.mark.parametrize(
    ("status", "code", "cause"),
    some_of(
        [
            (400, "instance-operations/launch/insufficient-capacity", Cause.NO_CAPACITY),
            (404, "global/object-does-not-exist", Cause.NO_CAPACITY),
            (403, "global/account-inactive", Cause.NO_FUNDS),
            (400, "global/invalid-parameters", Cause.LAUNCH_REFUSED),
            (401, "global/invalid-api-key", Cause.LAUNCH_REFUSED),
        ],
        one_in=4,
    ),
)
def test_a_refusal_is_taken_by_its_code_and_nothing_is_rented(days: LambdaDays, status: int, code: str, cause: Cause) -> None:
    days.fake.fail(error(status, code), times=ALWAYS, **CREATE)
    days.pass_by(600)
    assert {attempt.cause for attempt in days.run().attempts} == {cause}
    assert not days.fake.instances
    if cause is Cause.NO_CAPACITY:
        days.fake.heal()
        days.pass_by(1800)
        assert days.is_training_alone()


def test_the_accounts_quota_puts_no_offer_last(days: LambdaDays) -> None:
    days.fake.limits.quota = 0
    days.pass_by(1800)
    assert {attempt.cause for attempt in days.run().attempts} == {Cause.LIMIT_REACHED}
    assert days.run().excluded == ()
    days.fake.limits.quota = 1
    days.pass_by(900)
    assert days.is_training_alone()


# ---------------------------------------------------------------------------------------------------------------------- the machine


@pytest.mark.parametrize("seen_as", [None, Status.TERMINATED, Status.PREEMPTED, Status.UNHEALTHY, Status.TERMINATING])
def test_a_machine_that_is_taken_away_without_notice_is_replaced_by_one(training: LambdaDays, seen_as: Status | None) -> None:
    first = training.pod
    training.fake.end(first.id, seen_as)
    training.pass_by(3600)
    assert training.is_training_alone()
    assert training.pod.id != first.id
    assert training.run().attempt == 2
    assert not first.costs


def test_a_machine_that_boots_for_ever_is_given_back_and_another_is_rented(days: LambdaDays) -> None:
    days.fake.plan.boot_s = 10**6
    days.pass_by(60)
    days.fake.plan.boot_s = 0
    days.pass_by(3600)
    assert days.run().attempts[0].cause is Cause.BOOT_TIMEOUT
    assert days.is_training_alone()
    assert (len(days.fake.instances), days.most_alive) == (2, 1)


def test_a_machine_that_the_list_lacks_but_that_lives_is_kept(training: LambdaDays) -> None:
    training.pod.hidden = True
    training.pass_by(3600)
    assert training.is_training_alone()
    assert (training.run().attempt, len(training.fake.instances)) == (1, 1)


@pytest.mark.parametrize("is_silent", [False, True])
def test_a_machine_that_the_list_lacks_is_ended_when_its_run_is_stopped(training: LambdaDays, is_silent: bool) -> None:
    training.pod.hidden = True
    if is_silent:
        training.fake.end(training.pod.id, Status.UNHEALTHY)
    training.cancel()
    training.pass_by(1800)
    assert training.run().state is RunState.CANCELLED
    assert not training.fake.alive


# ------------------------------------------------------------------------------------------------------------ the list and the limits


def without_any(response: Response) -> Response:
    return replace(response, body=b'{"data": []}')


def without_ids(response: Response) -> Response:
    listed = json.loads(response.body)["data"]
    return replace(response, body=json.dumps({"data": [{key: each[key] for key in each if key != "id"} for each in listed]}).encode())


@pytest.mark.parametrize(
    "fault",
    some_of(
        [
            Rewrite(without_any),
            Rewrite(without_ids),
            TRUNCATED,
            Response(200, b"{}"),
            Response(200, b"[]"),
            Response(200, b"<html>"),
            Response(404, b"<html>no route</html>"),
            Response(500),
        ],
        one_in=7,
    ),
)
def test_no_list_that_is_cut_short_or_garbled_costs_a_machine(training: LambdaDays, fault: Fault) -> None:
    training.fake.fail(fault, times=ALWAYS, **LIST)
    training.pass_by(3600)
    assert training.is_training_alone()
    assert (training.run().attempt, len(training.fake.instances)) == (1, 1)


def test_at_its_own_pace_a_run_draws_no_429(training: LambdaDays) -> None:
    training.fake.end(training.pod.id, None)
    training.pass_by(3600)
    assert training.is_training_alone()
    assert {request.status for request in training.fake.requests} <= {200, 404}


@pytest.mark.parametrize("headers", some_of([{"Retry-After": "3600"}, {}, {"Retry-After": "soon"}], one_in=3))
def test_a_429_to_everything_loses_nothing(training: LambdaDays, headers: dict[str, str]) -> None:
    first = training.pod
    training.fake.fail(error(429, "global/rate-limited", headers=headers), times=ALWAYS)
    training.pass_by(3600)
    assert (training.run().attempt, training.run().state) == (1, RunState.TRAINING)
    training.fake.heal()
    training.fake.end(first.id, None)
    training.pass_by(3600)
    assert training.is_training_alone()
