"""What a run does when a provider's API fails it: each way in which a create call, a machine, the list or the
account can go wrong at every provider.

A run on machines of the provider's fake, in virtual time; its agents send heartbeats as long as their
machines run.
"""

import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prime_train.runs.run import RunState
from prime_train.spec.causes import Cause
from tests.adapters.rental_apis.cases import APIS, Api
from tests.adapters.rental_apis.lives import LIVES, Life, against
from tests.adapters.rented_days import Days
from tests.adapters.strikes import Strike, strikes
from tests.exhaustive import some_of
from tests.fakes.http import ALWAYS, TRUNCATED, Fault, LoseResponse, Refusal, Request, Response, Rewrite

AnyDays = Days[Any, Any]


@pytest.fixture(name="api")
def _api(name: str) -> Api:
    return APIS[name]


@pytest.fixture(name="life")
def _life(name: str) -> Life:
    return LIVES[name]


@pytest.fixture(name="days")
def _days(life: Life, fake: Any, tmp_path: Path) -> AnyDays:
    return life.days(fake, tmp_path)


@pytest.fixture(name="training")
def _training(days: AnyDays) -> AnyDays:
    days.pass_by(300)
    assert days.is_training_alone()
    return days


def orders(days: AnyDays, api: Api) -> list[Request]:
    method, path = api.create["method"], api.create["path"]
    return [
        request
        for request in days.fake.requests
        if request.method == method and re.search(path, request.path)
    ]


def fail_lists(days: AnyDays, api: Api, fault: Fault) -> None:
    for where in api.lists:
        days.fake.fail(fault, times=ALWAYS, **{"method": "GET", **where})


# ------------------------------------------------------------------------------------------------------------
# the create call


@against(Strike.SILENCE)
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
    days.fake.fail(life.garbled if isinstance(fault, str) else fault, **api.create)
    days.pass_by(900)
    assert days.is_training_alone()
    assert len(orders(days, api)) == 1


@against(Strike.SILENCE)
def test_a_create_call_that_never_arrived_is_made_again_and_rents_one(days: AnyDays, api: Api) -> None:
    days.fake.fail(Response(503), **api.create)
    days.pass_by(3600)
    assert days.is_training_alone()
    assert len(orders(days, api)) == 2
    assert days.run().attempts[0].cause is Cause.LAUNCH_LOST


@against(Strike.TWICE)
def test_of_two_machines_of_one_create_call_one_is_given_back(days: AnyDays, api: Api, life: Life) -> None:
    alive: list[int] = []

    def again(response: Response) -> Response:
        with suppress(Refusal):
            life.again(days.fake, orders(days, api)[0])
        alive.append(len(days.fake.alive))
        return response

    days.fake.fail(Rewrite(again), **api.create)
    days.pass_by(900)
    assert alive == [life.twins]
    assert days.is_training_alone()


@pytest.mark.parametrize("name", LIVES)
def test_the_accounts_limit_puts_no_offer_last(days: AnyDays, life: Life) -> None:
    life.limit(days.fake, False)
    days.pass_by(1800)
    assert {attempt.cause for attempt in days.run().attempts} == {Cause.LIMIT_REACHED}
    assert days.run().excluded == ()
    life.limit(days.fake, True)
    days.pass_by(900)
    assert days.is_training_alone()


# ------------------------------------------------------------------------------------------------------------
# the machine


@strikes(Strike.TAKEN, *LIVES)
@pytest.mark.parametrize(("name", "end"), [(name, end) for name, life in LIVES.items() for end in life.ends])
def test_a_machine_that_is_taken_away_without_notice_is_replaced_by_one(
    training: AnyDays, life: Life, end: Any
) -> None:
    first = training.pod
    life.end(training.fake, first.id, end)
    training.pass_by(3600)
    assert training.is_training_alone()
    assert training.pod.id != first.id
    assert (training.run().attempt, training.most_alive) == (2, 1)
    assert not first.costs


@against(Strike.NOTICE)
def test_a_machine_that_is_taken_away_with_notice_is_left_first_and_replaced_by_one(
    training: AnyDays, life: Life
) -> None:
    first = training.pod
    training.notified.add(first.id)
    training.pass_by(60)
    assert training.run().state is RunState.DRAINING
    life.end(training.fake, first.id, life.ends[0])
    training.pass_by(1800)
    assert training.is_training_alone()
    assert (training.run().attempt, training.run().attempts[0].cause, training.most_alive) == (
        2,
        Cause.PREEMPTED,
        1,
    )
    assert not first.costs


@against(Strike.STUCK)
def test_a_machine_that_boots_for_ever_is_given_back_and_another_is_rented(
    days: AnyDays, api: Api, life: Life
) -> None:
    life.boot(days.fake, 10**6)
    days.pass_by(60)
    life.boot(days.fake, 0)
    days.pass_by(3600)
    assert days.run().attempts[0].cause in (Cause.BOOT_TIMEOUT, Cause.BOOT_FAILED)
    assert days.is_training_alone()
    assert (len(orders(days, api)), days.most_alive) == (2, 1)


@against(Strike.UNLISTED)
def test_a_machine_that_the_list_lacks_but_that_lives_is_kept(
    training: AnyDays, api: Api, life: Life
) -> None:
    life.hide(training.pod)
    training.pass_by(3600)
    assert training.is_training_alone()
    assert (training.run().attempt, len(orders(training, api))) == (1, 1)


@against(Strike.UNLISTED)
@pytest.mark.parametrize("is_silent", [False, True])
def test_a_machine_that_the_list_lacks_is_ended_when_its_run_is_stopped(
    training: AnyDays, life: Life, is_silent: bool
) -> None:
    first = training.pod
    life.hide(first)
    if is_silent:
        life.end(training.fake, first.id, life.broken)
    training.cancel()
    training.pass_by(1800)
    assert training.run().state is RunState.CANCELLED
    assert not training.fake.alive
    assert not first.costs


@against(Strike.REBORN, but=["kubernetes"])
def test_a_machine_that_was_unknown_and_is_there_again_is_ended_and_trains_no_more(
    training: AnyDays, life: Life
) -> None:
    first = training.pod
    life.end(training.fake, first.id, life.ends[0])
    training.pass_by(1800)
    assert training.is_training_alone()
    second = training.pod.id
    training.fake.revive(first.id)
    assert len(training.fake.alive) == 2
    training.pass_by(3600)
    assert training.is_training_alone()
    assert (training.pod.id, training.run().attempt, first.costs) == (second, 2, False)


@against(Strike.REBORN, but=["kubernetes"])
def test_a_machine_that_wakes_before_it_could_be_ended_is_ended_all_the_same(
    training: AnyDays, life: Life
) -> None:
    first = training.pod
    training.fake.fail(Response(503), times=ALWAYS, **life.delete)
    life.end(training.fake, first.id, life.broken)
    training.pass_by(1800)
    assert training.run().attempts[0].fenced_s is not None
    training.fake.heal()
    training.fake.revive(first.id)
    training.pass_by(3600)
    assert training.is_training_alone()
    assert not first.costs


# ------------------------------------------------------------------------------------------------- the list,
# the limits, the balance


@against(Strike.CUT_LIST)
@pytest.mark.parametrize(
    "fault",
    some_of(
        [
            "empty",
            "cut",
            "nameless",
            TRUNCATED,
            Response(200, b"{}"),
            Response(200, b"[]"),
            Response(200, b"<html>"),
            Response(404, b"<html>no route</html>"),
            Response(500),
        ],
        one_in=8,
    ),
)
def test_no_list_that_is_cut_short_or_garbled_costs_a_machine(
    training: AnyDays, api: Api, life: Life, fault: Fault | str
) -> None:
    fail_lists(training, api, Rewrite(getattr(life, fault)) if isinstance(fault, str) else fault)
    training.pass_by(3600)
    assert training.is_training_alone()
    assert (training.run().attempt, len(orders(training, api))) == (1, 1)


@against(Strike.CUT_LIST)
@pytest.mark.parametrize(
    "answer",
    some_of(
        [Response(404, b"<html>no route</html>"), Response(404, b'{"message": "no"}'), Response(301)],
        one_in=3,
    ),
)
def test_a_404_that_is_not_the_providers_own_proves_no_machine_gone(
    training: AnyDays, api: Api, life: Life, answer: Response
) -> None:
    training.fake.fail(answer, path=api.one(training.pod.id), times=ALWAYS)
    fail_lists(training, api, Rewrite(life.empty))
    training.pass_by(1800)
    assert (training.run().attempt, training.run().state) == (1, RunState.TRAINING)


@against(Strike.TOO_MANY)
@pytest.mark.parametrize("headers", some_of([{"Retry-After": "3600"}, {}, {"Retry-After": "soon"}], one_in=3))
def test_a_429_to_everything_loses_nothing(training: AnyDays, life: Life, headers: dict[str, str]) -> None:
    first = training.pod
    training.fake.fail(life.too_many(headers), times=ALWAYS)
    training.pass_by(3600)
    assert (training.run().attempt, training.run().state) == (1, RunState.TRAINING)
    training.fake.heal()
    life.end(training.fake, first.id, life.ends[0])
    training.pass_by(3600)
    assert training.is_training_alone()


@against(Strike.BROKE)
def test_at_a_balance_of_0_the_run_waits_for_credit(training: AnyDays, api: Api, life: Life) -> None:
    life.run_dry(training.fake, training.pod.id)
    training.pass_by(3600)
    assert (training.run().state, training.fake.alive) == (RunState.QUEUED, [])
    assert len(orders(training, api)) == 1
    training.fake.balance_usd = 100.0
    training.pass_by(1800)
    assert training.is_training_alone()
