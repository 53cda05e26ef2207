"""Answers of rental APIs with fields damaged: no exception but the port's, no pod that is wrongly gone, and no second rental."""

from dataclasses import replace
from typing import Any

import pytest

from prime_train.core.offers import rank
from prime_train.core.verdict import PodStatus
from prime_train.ports import ExternalError, NoCapacity, NoFunds, PermanentError
from tests.adapters.damaged_answers import damage, outcome
from tests.adapters.rental_apis.cases import Api
from tests.adapters.rental_apis.shared import NAME, TICKET, first
from tests.exhaustive import some_of

SEEDS_PER_TEST = 100


def read_with_damage(api: Api, fake: Any, seed: int) -> None:
    pods = api.pods(fake)
    (pod,) = fake.alive
    for where in (api.list, {"path": f"{api.one(pod.id)}$"}, {"path": api.catalogue}, *api.others):
        fault, options = damage(seed, **where)
        fake.fail(fault, **options)
    listed = outcome(pods.list)
    if not isinstance(listed, ExternalError):
        assert all(each.pod_id == pod.id for each in listed)
    seen = outcome(lambda: pods.get(pod.id))
    assert seen is not None, f"seed {seed}: a running pod is unknown"
    assert isinstance(seen, ExternalError) or seen.status is not PodStatus.GONE, f"seed {seed}: a running pod is gone"
    outcome(lambda: pods.connection(pod.id))
    outcome(lambda: pods.put_agent(replace(seen, pod_id=pod.id), TICKET) if not isinstance(seen, ExternalError) else None)
    offers = outcome(lambda: pods.offers(api.hardware))
    if not isinstance(offers, ExternalError):
        rank(offers, api.hardware)
        assert all(offer.hindrance or offer.usd_per_hour > 0 for offer in offers)
    fake.heal()
    assert fake.alive == [pod], f"seed {seed}: a running pod was terminated"


def rent_with_damage(api: Api, fake: Any, seed: int) -> None:
    pods = api.pods(fake)
    name = f"{NAME}{seed}"
    for where in ({"path": api.catalogue}, *api.others, api.create):
        fault, options = damage(seed, **where)
        fake.fail(fault, **options)
    offers = outcome(lambda: pods.offers(api.hardware))
    best = [] if isinstance(offers, ExternalError) else rank(offers, api.hardware).best
    if best:
        done = outcome(lambda: pods.create(name, best[0], api.hardware))
        fake.heal()
        named = [pod for pod in fake.alive if pod.name == name]
        assert len(named) <= 1, f"seed {seed}: rented twice"
        if isinstance(done, NoCapacity | NoFunds | PermanentError):
            assert not named, f"seed {seed}: {done} although a machine was rented"
        elif not isinstance(done, ExternalError):
            assert [pod.id for pod in named] == [done.pod_id], f"seed {seed}: another pod than the one that was rented"
            assert done.name == name
        for pod in named:
            assert name in {each.name for each in pods.list()}
            pods.terminate(pod.id)
    fake.heal()
    assert not fake.alive


# 200 answers of each provider in a quick run, 5,000 in a complete one: half of them of calls that read, half of calls that rent.


@pytest.mark.parametrize("block", some_of(range(25), one_in=25))
def test_damaged_answers_end_no_machine(api: Api, fake: Any, block: int) -> None:
    fake.is_checked = False
    pods = api.pods(fake)
    pods.create(NAME, first(pods, api.hardware), api.hardware)
    for seed in range(block * SEEDS_PER_TEST, (block + 1) * SEEDS_PER_TEST):
        read_with_damage(api, fake, seed)


@pytest.mark.parametrize("block", some_of(range(25), one_in=25))
def test_damaged_answers_rent_no_second_machine(api: Api, fake: Any, block: int) -> None:
    fake.is_checked = False
    for seed in range(block * SEEDS_PER_TEST, (block + 1) * SEEDS_PER_TEST):
        rent_with_damage(api, fake, seed)
