"""What a run does when Vast.ai fails it: each way in which a create call, a machine, the list or the account can go wrong.

A run on machines of the fake, in virtual time; its agents send heartbeats as long as their machines run.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prime_train.adapters.pods_by_provider import AccountOfOne
from prime_train.adapters.pods_vast import Pace, Searches, Settings, VastAccount, VastClient, VastPods
from prime_train.adapters.rental_api.pod_names import Mark
from prime_train.core.causes import Cause
from prime_train.core.run import RunState
from tests.adapters.pods_vast.vast_pods import CREATE, INSTANCE, LIST, SEARCH
from tests.adapters.rented_days import Days, Pushed, world_of
from tests.exhaustive import some_of
from tests.fakes.http import ALWAYS, TRUNCATED, Fault, LoseResponse, Response, Rewrite
from tests.fakes.vast import FakeVast, Instance, Plan, Status, refused

MARK = Mark("11111111")
CREATING: dict[str, Any] = {"method": "PUT", "path": CREATE}
LISTING: dict[str, Any] = {"method": "GET", "path": LIST}
NO_REASON = "This instance could not be created."
PLAIN_429 = Response(429, b"API requests too frequent: endpoint threshold=2.0", "text/plain")

VastDays = Days[FakeVast, Instance]


@pytest.fixture(name="days")
def _days(fake: FakeVast, tmp_path: Path) -> VastDays:
    # The pause that a 429 asks for passes in the fake's time.
    client = VastClient(Settings(fake.api_key, fake.url), pace=Pace({}), pause_s=0.0, clock=fake.now_s)
    pushed = Pushed(fake)
    pods = VastPods(client, pushed, searches=Searches(client, clock=fake.now_s, wall=fake.now_s), mark=MARK)
    account = AccountOfOne(VastAccount(client, MARK, pods.burn_usd_per_hour, clock=fake.now_s, wall=fake.now_s))
    return Days(fake, "vast", world_of("vast", pods, tmp_path, accounts=(account,)), pushed)


@pytest.fixture(name="training")
def _training(days: VastDays) -> VastDays:
    days.pass_by(300)
    assert days.is_training_alone()
    assert days.pod.bid_usd == 0.44
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
            Rewrite(lambda response: replace(response, body=b'{"success": true, "new_contract": 7}')),
        ],
        one_in=4,
    ),
)
def test_a_machine_whose_create_call_got_no_usable_answer_is_found_by_its_label(days: VastDays, fault: Fault) -> None:
    days.fake.fail(fault, **CREATING)
    days.pass_by(900)
    assert days.is_training_alone()
    assert len(days.fake.instances) == 1


def test_a_create_call_that_never_arrived_is_made_again_and_rents_one(days: VastDays) -> None:
    days.fake.fail(Response(503), **CREATING)
    days.pass_by(3600)
    assert days.is_training_alone()
    assert len(days.fake.instances) == 1
    assert days.run().attempts[0].cause is Cause.LAUNCH_LOST


def test_of_two_machines_of_one_create_call_one_is_given_back(days: VastDays) -> None:
    def again(response: Response) -> Response:
        first = days.fake.instances[-1]
        days.fake.rented(first.ask, first.order, first.account)
        return response

    days.fake.fail(Rewrite(again), **CREATING)
    days.pass_by(900)
    assert len(days.fake.instances) == 2
    assert days.is_training_alone()


def test_a_bid_that_is_too_low_meanwhile_leaves_nothing_that_is_paid_for(days: VastDays) -> None:
    days.fake.terms.leaves_stopped = True
    dear = days.fake.hosts
    # The search still finds the old price.
    days.fake.fail(
        Rewrite(lambda response: replace(response, body=response.body.replace(b'"min_bid": 0.6,', b'"min_bid": 0.3,'))),
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
            (refused(401, "auth_error", "Invalid user key"), Cause.LAUNCH_REFUSED),
            (refused(400, "insufficient_credit", "Your account lacks credit; see the billing page."), Cause.NO_FUNDS),
            (refused(400, "invalid_args", "You have reached the limit of instances."), Cause.LIMIT_REACHED),
        ],
        one_in=2,
    ),
)
def test_a_refusal_is_taken_as_vast_means_it_and_nothing_is_rented(days: VastDays, answer: Response, cause: Cause) -> None:
    days.fake.fail(answer, times=ALWAYS, **CREATING)
    days.pass_by(600)
    assert {attempt.cause for attempt in days.run().attempts} == {cause}
    assert not days.fake.instances


# ---------------------------------------------------------------------------------------------------------------------- the machine


@pytest.mark.parametrize("seen_as", [None, Status.EXITED])
def test_a_machine_that_has_ended_is_replaced_by_one(training: VastDays, seen_as: Status | None) -> None:
    first = training.pod
    training.fake.end(first.id, seen_as)
    training.pass_by(1800)
    assert training.is_training_alone()
    assert training.pod.id != first.id
    assert training.run().attempt == 2
    assert not first.costs


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


def test_a_machine_that_wakes_before_it_could_be_destroyed_is_ended_all_the_same(training: VastDays) -> None:
    first = training.pod
    training.fake.fail(Response(503), method="DELETE", times=40)
    training.fake.outbid(first.id)
    training.pass_by(600)
    training.fake.resume(first.id)
    training.pass_by(3600)
    assert first.deleted
    assert training.is_training_alone()


@pytest.mark.parametrize("seen_as", [Status.UNKNOWN, Status.OFFLINE])
def test_a_host_that_does_not_report_is_no_reason_to_give_a_training_machine_up(training: VastDays, seen_as: Status) -> None:
    # The host has lost its way to Vast.ai, but not the agent its way to us.
    actual, said = b'"actual_status": "running"', f'"actual_status": "{seen_as}"'.encode()
    rewrite = Rewrite(lambda response: replace(response, body=response.body.replace(actual, said)))
    training.fake.fail(rewrite, method="GET", times=ALWAYS)
    training.pass_by(3600)
    assert (training.run().attempt, training.run().state) == (1, RunState.TRAINING)
    assert len(training.fake.instances) == 1


@pytest.mark.parametrize("is_stuck", [False, True])
def test_a_machine_that_never_comes_up_is_given_back_and_another_is_rented(days: VastDays, is_stuck: bool) -> None:
    days.fake.plan = Plan(boot_s=10**6) if is_stuck else Plan(has_ports=False, ssh_host="")
    days.pass_by(60)
    days.fake.plan = Plan()
    days.pass_by(3600)
    assert days.run().attempts[0].cause is Cause.BOOT_TIMEOUT
    assert days.is_training_alone()
    assert days.most_alive == 1


def test_a_machine_that_the_list_lacks_but_that_lives_is_kept(training: VastDays) -> None:
    training.pod.hidden = True
    training.pass_by(3600)
    assert training.is_training_alone()
    assert (training.run().attempt, len(training.fake.instances)) == (1, 1)


def test_a_machine_that_the_list_lacks_is_ended_when_its_run_is_stopped(training: VastDays) -> None:
    training.pod.hidden = True
    training.cancel()
    training.pass_by(1800)
    assert training.run().state is RunState.CANCELLED
    assert not training.fake.alive


# ------------------------------------------------------------------------------------------------------------ the list and the limits


def without_instances(response: Response) -> Response:
    return replace(
        response,
        body=json.dumps({"success": True, "instances": [], "instances_found": 0, "total_instances": 0, "next_token": None}).encode(),
    )


def cut(response: Response) -> Response:
    return replace(response, body=json.dumps({**json.loads(response.body), "instances": []}).encode())


def endless(response: Response) -> Response:
    return replace(response, body=json.dumps({**json.loads(response.body), "next_token": "eyJ2YWx1ZXMiOiB7ImlkIjogMX19"}).encode())


@pytest.mark.parametrize(
    "fault",
    some_of(
        [
            Rewrite(without_instances),
            Rewrite(cut),
            Rewrite(endless),
            TRUNCATED,
            Response(200, b"{}"),
            Response(200, b"<html>"),
            Response(404, b"<html>no route</html>"),
            Response(404, b'{"success": false, "error": "auth_error", "msg": "Invalid user key"}'),
            Response(500),
        ],
        one_in=4,
    ),
)
def test_no_list_that_is_cut_short_or_garbled_costs_a_machine(training: VastDays, fault: Fault) -> None:
    training.fake.fail(fault, times=ALWAYS, **LISTING)
    training.pass_by(3600)
    assert training.is_training_alone()
    assert (training.run().attempt, len(training.fake.instances)) == (1, 1)


@pytest.mark.parametrize(
    "answer",
    some_of(
        [
            Response(404, b"<html>no route</html>"),
            Response(404, b'{"success": false, "error": "auth_error", "msg": "Invalid user key"}'),
            Response(200, b'{"instances": null}'),
            Response(301),
        ],
        one_in=2,
    ),
)
def test_an_answer_that_does_not_know_a_machine_proves_nothing_alone(training: VastDays, answer: Response) -> None:
    training.fake.fail(answer, path=INSTANCE, times=ALWAYS)
    training.pass_by(1800)
    assert (training.run().attempt, training.run().state) == (1, RunState.TRAINING)


@pytest.mark.parametrize("answer", [PLAIN_429, replace(PLAIN_429, headers={"Retry-After": "3600"}), Response(429)])
def test_a_429_to_everything_loses_nothing(training: VastDays, answer: Response) -> None:
    first = training.pod
    training.fake.fail(answer, times=ALWAYS)
    training.pass_by(3600)
    assert (training.run().attempt, training.run().state) == (1, RunState.TRAINING)
    training.fake.heal()
    training.fake.end(first.id, None)
    training.pass_by(3600)
    assert training.is_training_alone()


def test_without_searches_left_today_the_run_waits_until_midnight(days: VastDays) -> None:
    days.fake.advance(86_400 - days.fake.now_s() % 86_400 - 1800)
    days.fake.terms.search_rows = 0
    days.pass_by(1500)
    assert (days.run().state, days.fake.instances) == (RunState.QUEUED, [])
    assert len(days.fake.requests_to("POST", SEARCH)) == 1
    days.fake.terms.search_rows = 1_000
    days.pass_by(1800)
    assert days.is_training_alone()


def test_at_a_balance_of_0_the_run_waits_for_credit(training: VastDays) -> None:
    training.fake.balance_usd = 0.0
    training.fake.outbid(training.pod.id)  # Vast.ai stops all instances then
    training.pass_by(3600)
    assert (training.run().state, training.fake.alive) == (RunState.QUEUED, [])
    assert len(training.fake.instances) == 1
    training.fake.balance_usd = 100.0
    training.pass_by(1800)
    assert training.is_training_alone()


def test_a_machine_s_bill_replaces_what_was_counted(training: VastDays) -> None:
    training.pass_by(3600)
    training.cancel()
    training.pass_by(7200)
    (instance,) = training.fake.instances
    assert instance.ended_s is not None
    billed = training.run().attempts[0].billed_usd
    assert billed == pytest.approx(instance.usd * (instance.ended_s - instance.created_s) / 3600, abs=0.001)
