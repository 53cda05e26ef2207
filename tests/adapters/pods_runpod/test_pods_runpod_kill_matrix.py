"""What a run does when RunPod fails it: each way in which a create call, a machine, the list or the account can go wrong.

A run on machines of the fake, in virtual time; its agents send heartbeats as long as their machines run.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prime_train.adapters.pods_by_provider import AccountOfOne
from prime_train.adapters.pods_runpod import RunPodAccount, RunPodClient, RunPodPods, Settings
from prime_train.adapters.rental_api.pod_names import Mark
from prime_train.core.causes import Cause
from prime_train.core.run import RunState
from tests import builders as b
from tests.adapters.rented_days import Days, Pushed, world_of
from tests.exhaustive import some_of
from tests.fakes.http import ALWAYS, TRUNCATED, Fault, LoseResponse, Response, Rewrite
from tests.fakes.runpod import FakeRunPod, Pod, Status, problem

MARK = Mark("11111111")
CREATE: dict[str, Any] = {"method": "POST", "path": "^/v2/pods$"}
LIST: dict[str, Any] = {"method": "GET", "path": "^/v2/pods$"}
NO_REASON = "This pod could not be created."


RunPodDays = Days[FakeRunPod, Pod]


@pytest.fixture(name="days")
def _days(fake: FakeRunPod, tmp_path: Path) -> RunPodDays:
    # The pause that a 429 asks for passes in the fake's time.
    client = RunPodClient(Settings(fake.api_key, fake.url), pause_s=0.0, clock=fake.now_s)
    pushed = Pushed(fake)
    pods = RunPodPods(client, pushed, mark=MARK)
    account = AccountOfOne(RunPodAccount(client, pods.burn_usd_per_hour, clock=fake.now_s))
    return Days(fake, "runpod", world_of("runpod", pods, tmp_path, accounts=(account,)), pushed)


@pytest.fixture(name="training")
def _training(days: RunPodDays) -> RunPodDays:
    days.pass_by(300)
    assert days.is_training_alone()
    return days


# ------------------------------------------------------------------------------------------------------------------- the create call


@pytest.mark.parametrize(
    "fault",
    some_of(
        [
            LoseResponse(),
            TRUNCATED,
            Rewrite(lambda response: replace(response, status=502, body=b"<html>bad gateway</html>")),
            Rewrite(lambda response: replace(response, body=b"{}")),
            Rewrite(lambda response: replace(response, body=response.body.replace(b"pt-", b"px-"))),
        ],
        one_in=4,
    ),
)
def test_a_machine_whose_create_call_got_no_usable_answer_is_found_by_its_name(days: RunPodDays, fault: Fault) -> None:
    days.fake.fail(fault, **CREATE)
    days.pass_by(900)
    assert days.is_training_alone()
    assert len(days.fake.pods) == len(days.fake.requests_to("POST", "/v2/pods")) == 1


def test_a_create_call_that_never_arrived_is_made_again_and_rents_one(days: RunPodDays) -> None:
    days.fake.fail(Response(503), **CREATE)
    days.pass_by(3600)
    assert days.is_training_alone()
    assert len(days.fake.pods) == 1
    assert days.run().attempts[0].cause is Cause.LAUNCH_LOST


def test_of_two_machines_of_one_create_call_one_is_given_back(days: RunPodDays) -> None:
    twice: list[Response] = []

    def again(response: Response) -> Response:
        order = days.fake.pods[-1].order
        request = next(request for request in days.fake.requests if request.path == "/v2/pods" and request.method == "POST")
        twice.append(days.fake.create_pod(request))
        assert days.fake.pods[-1].order == order
        return response

    days.fake.fail(Rewrite(again), **CREATE)
    days.pass_by(900)
    assert len(days.fake.pods) == 2
    assert len(twice) == 1
    assert days.is_training_alone()


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
    shown = [line.text for line in days.world.store.history(b.RUN_ID) if "the request itself may be at fault" in line.text]
    assert shown
    assert NO_REASON in shown[0]


@pytest.mark.parametrize(
    ("status", "cause"),
    some_of([(422, Cause.LAUNCH_REFUSED), (403, Cause.LAUNCH_REFUSED), (401, Cause.LAUNCH_REFUSED), (402, Cause.NO_FUNDS)], one_in=3),
)
def test_a_refusal_is_taken_as_runpod_means_it_and_nothing_is_rented(days: RunPodDays, status: int, cause: Cause) -> None:
    days.fake.fail(problem(status, "No", "not like this"), times=ALWAYS, **CREATE)
    days.pass_by(600)
    assert {attempt.cause for attempt in days.run().attempts} == {cause}
    assert not days.fake.pods


def test_the_accounts_spend_limit_puts_no_offer_last(days: RunPodDays) -> None:
    days.fake.terms.spend_limit_usd = 1.0
    days.pass_by(1800)
    assert {attempt.cause for attempt in days.run().attempts} == {Cause.LIMIT_REACHED}
    assert days.run().excluded == ()
    days.fake.terms.spend_limit_usd = 80.0
    days.pass_by(900)
    assert days.is_training_alone()


# ---------------------------------------------------------------------------------------------------------------------- the machine


@pytest.mark.parametrize("seen_as", [None, Status.TERMINATED, Status.EXITED, Status.ERROR])
def test_a_machine_that_is_taken_away_without_notice_is_replaced_by_one(training: RunPodDays, seen_as: Status | None) -> None:
    first = training.pod
    training.fake.end(first.id, seen_as)
    training.pass_by(1800)
    assert training.is_training_alone()
    assert training.pod.id != first.id
    assert training.run().attempt == 2
    assert not first.costs


@pytest.mark.parametrize("public_ip", [True, False])
def test_a_machine_that_never_comes_up_is_given_back_and_another_is_rented(days: RunPodDays, public_ip: bool) -> None:
    days.fake.plan.boot_s, days.fake.plan.public_ip = (0, False) if not public_ip else (10**6, True)
    days.pass_by(60)
    days.fake.plan.boot_s, days.fake.plan.public_ip = 0, True
    days.pass_by(3600)
    assert days.run().attempts[0].cause is Cause.BOOT_TIMEOUT
    assert days.is_training_alone()
    assert len(days.fake.pods) == 2
    assert days.most_alive == 1


def test_a_machine_that_the_list_lacks_but_that_lives_is_kept(training: RunPodDays) -> None:
    training.pod.hidden = True
    training.pass_by(3600)
    assert training.is_training_alone()
    assert (training.run().attempt, len(training.fake.pods)) == (1, 1)


@pytest.mark.parametrize("is_silent", [False, True])
def test_a_machine_that_the_list_lacks_is_ended_when_its_run_is_stopped(training: RunPodDays, is_silent: bool) -> None:
    training.pod.hidden = True
    if is_silent:
        training.fake.end(training.pod.id, Status.ERROR)
    training.cancel()
    training.pass_by(1800)
    assert training.run().state is RunState.CANCELLED
    assert not training.fake.alive


# ------------------------------------------------------------------------------------------------------------ the list and the limits


def without_pods(response: Response) -> Response:
    return replace(response, body=json.dumps({"pods": []}).encode())


def nobody(response: Response) -> Response:
    content = json.loads(response.body)
    return replace(response, body=json.dumps({"pods": [{key: pod[key] for key in pod if key != "id"} for pod in content["pods"]]}).encode())


@pytest.mark.parametrize(
    "fault",
    some_of(
        [
            Rewrite(without_pods),
            Rewrite(nobody),
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
def test_no_list_that_is_cut_short_or_garbled_costs_a_machine(training: RunPodDays, fault: Fault) -> None:
    training.fake.fail(fault, times=ALWAYS, **LIST)
    training.pass_by(3600)
    assert training.is_training_alone()
    assert (training.run().attempt, len(training.fake.pods)) == (1, 1)


@pytest.mark.parametrize(
    "answer", some_of([Response(404, b"<html>no route</html>"), Response(404, b'{"message": "no"}'), Response(301)], one_in=3)
)
def test_a_404_that_is_not_runpods_own_proves_no_machine_gone(training: RunPodDays, answer: Response) -> None:
    training.fake.fail(answer, path="^/v2/pods/", times=ALWAYS)
    training.fake.fail(Rewrite(without_pods), times=ALWAYS, **LIST)
    training.pass_by(1800)
    assert (training.run().attempt, training.run().state) == (1, RunState.TRAINING)


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


@pytest.mark.parametrize(
    "headers", some_of([{"Retry-After": "3600"}, {}, {"Retry-After": "soon"}, {"RateLimit": '"day";r=0;t=80000'}], one_in=4)
)
def test_a_429_to_everything_loses_nothing(training: RunPodDays, headers: dict[str, str]) -> None:
    first = training.pod
    training.fake.fail(problem(429, "Too Many Requests", "slow down", headers=headers), path="^/v2/", times=ALWAYS)
    training.pass_by(3600)
    assert (training.run().attempt, training.run().state) == (1, RunState.TRAINING)
    training.fake.heal()
    training.fake.end(first.id, None)
    training.pass_by(3600)
    assert training.is_training_alone()


def test_at_a_balance_of_0_the_run_waits_for_credit(training: RunPodDays) -> None:
    training.fake.balance_usd = 0.0
    training.fake.end(training.pod.id, None)
    training.pass_by(3600)
    run = training.run()
    assert (run.state, training.fake.alive) == (RunState.QUEUED, [])
    assert len(training.fake.pods) == 1
    training.fake.balance_usd = 100.0
    training.pass_by(1800)
    assert training.is_training_alone()
