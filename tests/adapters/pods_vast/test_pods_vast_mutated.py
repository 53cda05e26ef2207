"""Answers of Vast.ai with fields damaged: no exception but the port's, no pod that is wrongly gone, and no second rental."""

from dataclasses import replace

import pytest

from prime_train.core.offers import rank
from prime_train.core.verdict import PodStatus
from prime_train.ports import ExternalError, NoCapacity, NoFunds, PermanentError
from tests.adapters.damaged_answers import damage, outcome
from tests.adapters.pods_vast.vast_pods import HARDWARE, NAME, PUBLIC_KEY, TICKET, pods_of
from tests.exhaustive import some_of
from tests.fakes.vast import FakeVast

SEEDS_PER_TEST = 50


def read_with_damage(fake: FakeVast, seed: int) -> None:
    pods = pods_of(fake, public_key=PUBLIC_KEY)
    (pod,) = fake.instances
    for path, method in ((".", "GET"), ("bundles", "POST")):
        fault, where = damage(seed, path, method)
        fake.fail(fault, **where)
    listed = outcome(pods.list)
    if not isinstance(listed, ExternalError):
        assert all(each.pod_id == pod.id for each in listed)
    seen = outcome(lambda: pods.get(pod.id))
    assert seen is not None, f"seed {seed}: a running pod is unknown"
    assert isinstance(seen, ExternalError) or seen.status is not PodStatus.GONE, f"seed {seed}: a running pod is gone"
    outcome(lambda: pods.connection(pod.id))
    outcome(lambda: pods.put_agent(replace(seen, pod_id=pod.id), TICKET) if not isinstance(seen, ExternalError) else None)
    offers = outcome(lambda: pods.offers(HARDWARE))
    if not isinstance(offers, ExternalError):
        rank(offers, HARDWARE)
        assert all(offer.hindrance or offer.usd_per_hour > 0 for offer in offers)
    fake.heal()
    assert fake.alive == [pod], f"seed {seed}: a running pod was terminated"


def rent_with_damage(fake: FakeVast, seed: int) -> None:
    pods = pods_of(fake)
    name = f"{NAME}{seed}"
    for path, method in (("bundles", "POST"), ("asks", "PUT"), (".", "GET")):
        fault, where = damage(seed, path, method)
        fake.fail(fault, **where)
    fake.terms.leaves_stopped = seed % 2 == 0
    if seed % 4 == 0:
        # The bid was high enough when it was searched for.
        fake.hosts = tuple(replace(host, bid_usd=host.bid_usd / 2) for host in fake.hosts)
    offers = outcome(lambda: pods.offers(HARDWARE))
    if seed % 4 == 0:
        fake.hosts = tuple(replace(host, bid_usd=host.bid_usd * 2) for host in fake.hosts)
    best = [] if isinstance(offers, ExternalError) else rank(offers, HARDWARE).best
    if best:
        done = outcome(lambda: pods.create(name, best[0], HARDWARE))
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


# 100 answers in a quick run, 5,000 in a complete one: half of them of calls that read, half of calls that rent.


@pytest.mark.parametrize("block", some_of(range(50), one_in=50))
def test_damaged_answers_end_no_machine(fake: FakeVast, block: int) -> None:
    fake.is_checked = False
    pods = pods_of(fake)
    pods.create(NAME, rank(pods.offers(HARDWARE), HARDWARE).best[0], HARDWARE)
    for seed in range(block * SEEDS_PER_TEST, (block + 1) * SEEDS_PER_TEST):
        read_with_damage(fake, seed)


@pytest.mark.parametrize("block", some_of(range(50), one_in=50))
def test_damaged_answers_rent_no_second_machine(fake: FakeVast, block: int) -> None:
    fake.is_checked = False
    for seed in range(block * SEEDS_PER_TEST, (block + 1) * SEEDS_PER_TEST):
        rent_with_damage(fake, seed)
