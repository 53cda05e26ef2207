"""What a run does when a rental API fails it: each way in which a create call, a machine or the list can go wrong at every provider.

A run on machines of the provider's fake, in virtual time; its agents send heartbeats as long as their machines run.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prime_train.core.causes import Cause
from prime_train.core.run import RunState
from tests.adapters.rental_apis.cases import APIS, Api, Life
from tests.adapters.rented_days import Days
from tests.exhaustive import some_of
from tests.fakes.http import ALWAYS, TRUNCATED, Fault, LoseResponse, Response, Rewrite

LIVES = {name: api.life for name, api in APIS.items() if api.life is not None}
AnyDays = Days[Any, Any]


@pytest.fixture(params=LIVES, name="api")
def _api(request: pytest.FixtureRequest) -> Api:
    return APIS[request.param]


@pytest.fixture(name="life")
def _life(api: Api) -> Life:
    assert api.life is not None
    return api.life


@pytest.fixture(name="days")
def _days(life: Life, fake: Any, tmp_path: Path) -> AnyDays:
    return life.days(fake, tmp_path)


@pytest.fixture(name="training")
def _training(days: AnyDays) -> AnyDays:
    days.pass_by(300)
    assert days.is_training_alone()
    return days


def orders(days: AnyDays, api: Api) -> int:
    return len(days.fake.requests_to("POST", api.create["path"].strip("^$")))


# ------------------------------------------------------------------------------------------------------------------- the create call


@pytest.mark.parametrize(
    "fault",
    some_of(
        [
            LoseResponse(),
            TRUNCATED,
            Rewrite(lambda response: replace(response, status=502, body=b"<html>bad gateway</html>")),
            Rewrite(lambda response: replace(response, body=b"{}")),
            "garbled",
        ],
        one_in=4,
    ),
)
def test_a_machine_whose_create_call_got_no_usable_answer_is_found_by_its_name(
    days: AnyDays, api: Api, life: Life, fault: Fault | str
) -> None:
    for each in life.garbled if isinstance(fault, str) else [fault]:
        days.fake.fail(each, **api.create)
    days.pass_by(900)
    assert days.is_training_alone()
    assert orders(days, api) == 1


def test_a_create_call_that_never_arrived_is_made_again_and_rents_one(days: AnyDays, api: Api) -> None:
    days.fake.fail(Response(503), **api.create)
    days.pass_by(3600)
    assert days.is_training_alone()
    assert orders(days, api) == 2
    assert days.run().attempts[0].cause is Cause.LAUNCH_LOST


def test_of_two_machines_of_one_create_call_one_is_given_back(days: AnyDays, api: Api, life: Life) -> None:
    alive: list[int] = []

    def again(response: Response) -> Response:
        path = api.create["path"].strip("^$")
        request = next(request for request in days.fake.requests if (request.method, request.path) == ("POST", path))
        life.again(days.fake, request)
        alive.append(len(days.fake.alive))
        return response

    days.fake.fail(Rewrite(again), **api.create)
    days.pass_by(900)
    assert alive == [2]
    assert days.is_training_alone()


def test_the_accounts_limit_puts_no_offer_last(days: AnyDays, life: Life) -> None:
    life.limit(days.fake, False)
    days.pass_by(1800)
    assert {attempt.cause for attempt in days.run().attempts} == {Cause.LIMIT_REACHED}
    assert days.run().excluded == ()
    life.limit(days.fake, True)
    days.pass_by(900)
    assert days.is_training_alone()


# ---------------------------------------------------------------------------------------------------------------------- the machine


@pytest.mark.parametrize(("api", "end"), [(name, end) for name, life in LIVES.items() for end in life.ends], indirect=["api"])
def test_a_machine_that_is_taken_away_without_notice_is_replaced_by_one(training: AnyDays, end: Any) -> None:
    first = training.pod
    training.fake.end(first.id, end)
    training.pass_by(3600)
    assert training.is_training_alone()
    assert training.pod.id != first.id
    assert training.run().attempt == 2
    assert not first.costs


def test_a_machine_that_boots_for_ever_is_given_back_and_another_is_rented(days: AnyDays, api: Api) -> None:
    days.fake.plan.boot_s = 10**6
    days.pass_by(60)
    days.fake.plan.boot_s = 0
    days.pass_by(3600)
    assert days.run().attempts[0].cause is Cause.BOOT_TIMEOUT
    assert days.is_training_alone()
    assert (orders(days, api), days.most_alive) == (2, 1)


def test_a_machine_that_the_list_lacks_but_that_lives_is_kept(training: AnyDays, api: Api) -> None:
    training.pod.hidden = True
    training.pass_by(3600)
    assert training.is_training_alone()
    assert (training.run().attempt, orders(training, api)) == (1, 1)


@pytest.mark.parametrize("is_silent", [False, True])
def test_a_machine_that_the_list_lacks_is_ended_when_its_run_is_stopped(training: AnyDays, life: Life, is_silent: bool) -> None:
    training.pod.hidden = True
    if is_silent:
        training.fake.end(training.pod.id, life.broken)
    training.cancel()
    training.pass_by(1800)
    assert training.run().state is RunState.CANCELLED
    assert not training.fake.alive


# ------------------------------------------------------------------------------------------------------------ the list and the limits


@pytest.mark.parametrize(
    "fault",
    some_of(
        [
            "empty",
            "nameless",
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
def test_no_list_that_is_cut_short_or_garbled_costs_a_machine(training: AnyDays, api: Api, life: Life, fault: Fault | str) -> None:
    training.fake.fail(Rewrite(getattr(life, fault)) if isinstance(fault, str) else fault, times=ALWAYS, **api.list)
    training.pass_by(3600)
    assert training.is_training_alone()
    assert (training.run().attempt, orders(training, api)) == (1, 1)


@pytest.mark.parametrize(
    "answer", some_of([Response(404, b"<html>no route</html>"), Response(404, b'{"message": "no"}'), Response(301)], one_in=3)
)
def test_a_404_that_is_not_the_providers_own_proves_no_machine_gone(training: AnyDays, api: Api, life: Life, answer: Response) -> None:
    training.fake.fail(answer, path=api.one(training.pod.id), times=ALWAYS)
    training.fake.fail(Rewrite(life.empty), times=ALWAYS, **api.list)
    training.pass_by(1800)
    assert (training.run().attempt, training.run().state) == (1, RunState.TRAINING)


@pytest.mark.parametrize("headers", some_of([{"Retry-After": "3600"}, {}, {"Retry-After": "soon"}], one_in=3))
def test_a_429_to_everything_loses_nothing(training: AnyDays, life: Life, headers: dict[str, str]) -> None:
    first = training.pod
    training.fake.fail(life.too_many(headers), times=ALWAYS)
    training.pass_by(3600)
    assert (training.run().attempt, training.run().state) == (1, RunState.TRAINING)
    training.fake.heal()
    training.fake.end(first.id, None)
    training.pass_by(3600)
    assert training.is_training_alone()
