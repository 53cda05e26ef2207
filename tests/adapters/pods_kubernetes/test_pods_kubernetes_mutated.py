"""Answers of a cluster with fields damaged: no exception but the port's, no pod that is wrongly gone, and no second machine."""

from dataclasses import replace

import pytest

from prime_train.core.offers import rank
from prime_train.core.verdict import PodStatus
from prime_train.ports import ExternalError, NoCapacity, PermanentError
from tests.adapters.damaged_answers import damage, outcome
from tests.adapters.pods_kubernetes.kubernetes_pods import HARDWARE, JOBS, NODES, PODS, pods_of, rent
from tests.adapters.rental_apis.shared import NAME, TICKET
from tests.exhaustive import some_of
from tests.fakes.kubernetes import FakeKubernetes

SEEDS_PER_TEST = 100


def read_with_damage(fake: FakeKubernetes, seed: int) -> None:
    pods = pods_of(fake)
    (machine,) = fake.alive
    for path in (f"{JOBS}$", f"{JOBS}/", f"{PODS}$", f"{NODES}$", "/api/v1/pods$"):
        fault, options = damage(seed, path)
        fake.fail(fault, **options)
    listed = outcome(pods.list)
    if not isinstance(listed, ExternalError):
        assert all(each.status is not PodStatus.GONE for each in listed)
    seen = outcome(lambda: pods.get(machine.id))
    assert seen is not None, f"seed {seed}: a running pod is unknown"
    if not isinstance(seen, ExternalError):
        assert seen.pod_id == machine.id, f"seed {seed}: another pod than the one that was asked for"
        assert seen.status is not PodStatus.GONE, f"seed {seed}: a running pod is gone"
        outcome(lambda: pods.put_agent(replace(seen, pod_id=machine.id), TICKET))
    offers = outcome(lambda: pods.offers(HARDWARE))
    if not isinstance(offers, ExternalError):
        rank(offers, HARDWARE)
    fake.heal()
    assert fake.alive == [machine], f"seed {seed}: a running pod was ended"


def rent_with_damage(fake: FakeKubernetes, seed: int) -> None:
    pods = pods_of(fake)
    name = f"{NAME}{seed}"
    for path, method in ((f"{NODES}$", "GET"), (f"{JOBS}/", "GET"), (f"{JOBS}$", "POST")):
        fault, options = damage(seed, path, method)
        fake.fail(fault, **options)
    offers = outcome(lambda: pods.offers(HARDWARE))
    best = [] if isinstance(offers, ExternalError) else rank(offers, HARDWARE).best
    if best:
        done = outcome(lambda: pods.create(name, best[0], HARDWARE))
        fake.heal()
        named = [machine for machine in fake.alive if machine.name == name]
        assert len(named) <= 1, f"seed {seed}: made twice"
        if isinstance(done, NoCapacity | PermanentError):
            assert not named, f"seed {seed}: {done} although a Job was made"
        elif not isinstance(done, ExternalError):
            assert [machine.id for machine in named] == [done.pod_id], f"seed {seed}: another machine than the one that was made"
            assert done.name == name
        for machine in named:
            assert name in {each.name for each in pods.list()}
            pods.terminate(machine.id)
    fake.heal()
    assert not fake.alive


# 200 answers in a quick run, 5,000 in a complete one: half of them of calls that read, half of calls that rent.


@pytest.mark.parametrize("block", some_of(range(25), one_in=25))
def test_damaged_answers_end_no_machine(fake: FakeKubernetes, block: int) -> None:
    fake.is_checked = False
    rent(pods_of(fake))
    for seed in range(block * SEEDS_PER_TEST, (block + 1) * SEEDS_PER_TEST):
        read_with_damage(fake, seed)


@pytest.mark.parametrize("block", some_of(range(25), one_in=25))
def test_damaged_answers_make_no_second_machine(fake: FakeKubernetes, block: int) -> None:
    fake.is_checked = False
    for seed in range(block * SEEDS_PER_TEST, (block + 1) * SEEDS_PER_TEST):
        rent_with_damage(fake, seed)
