"""Answers of providers' APIs with fields damaged: no exception but the port's, no pod that is wrongly gone,
and no second rental.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prime_train.errors import ExternalError, NoCapacity, NoFunds, PermanentError
from prime_train.market.ranking import rank
from prime_train.providers.port import Pods
from prime_train.providers.rental.pods import RentalPods
from prime_train.runs.verdict import PodStatus
from tests.adapters.damaged_answers import damage, outcome
from tests.adapters.rental_apis.cases import APIS, Api
from tests.adapters.rental_apis.shared import NAME, TICKET, first
from tests.exhaustive import some_of

BLOCKS, SEEDS_PER_BLOCK = int(os.environ.get("PRIME_TRAIN_TESTS_DAMAGE_BLOCKS", "4")), 100
"""In a complete run, half of the 800 damages of each API are to calls that read, half to calls that rent; a
quick run has one block of each. 25 blocks (5,000 damages) are played by hand after a change of a provider's
client.
"""


@pytest.fixture(params=APIS, name="api")
def _api(request: pytest.FixtureRequest) -> Api:
    return APIS[request.param]


def damage_all(api: Api, fake: Any, seed: int, *more: Any) -> None:
    for where in ({"path": f"{api.one('[^/]*')}$"}, *api.lists, api.catalogue, *api.others, *more):
        fault, options = damage(seed, **where)
        fake.fail(fault, **options)


def ask_account(api: Api, fake: Any) -> None:
    if api.account is not None:
        account = api.account(fake)
        outcome(account.funds)
        outcome(account.bills)


def read_with_damage(api: Api, fake: Any, folder: Path, seed: int) -> None:
    pods = api.pods(fake, folder)
    (pod,) = fake.alive
    damage_all(api, fake, seed)
    look(api, pods, pod.id, seed)
    ask_account(api, fake)
    offers = outcome(lambda: pods.offers(api.hardware))
    if not isinstance(offers, ExternalError):
        rank(offers, api.hardware)
        assert all(offer.hindrance or offer.usd_per_hour > 0 for offer in offers)
    fake.heal()
    assert fake.alive == [pod], f"seed {seed}: a running pod was terminated"


def look(api: Api, pods: Pods, pod_id: str, seed: int) -> None:
    listed = outcome(pods.list)
    if not isinstance(listed, ExternalError):
        assert not api.has_one_list or all(each.pod_id == pod_id for each in listed), (
            f"seed {seed}: a pod is listed that is not there"
        )
        assert all(each.status is not PodStatus.GONE for each in listed), (
            f"seed {seed}: a running pod is gone"
        )
    seen = outcome(lambda: pods.get(pod_id))
    assert seen is not None, f"seed {seed}: a running pod is unknown"
    if isinstance(pods, RentalPods):
        outcome(lambda: pods.connection(pod_id))
    if not isinstance(seen, ExternalError):
        assert seen.pod_id == pod_id, f"seed {seed}: another pod than the one that was asked for"
        assert seen.status is not PodStatus.GONE, f"seed {seed}: a running pod is gone"
        outcome(lambda: pods.put_agent(replace(seen, pod_id=pod_id), TICKET))


def rent_with_damage(api: Api, fake: Any, folder: Path, seed: int) -> None:
    pods, name = api.pods(fake, folder), f"{NAME}{seed}"
    damage_all(api, fake, seed, api.create)
    api.vary(fake, seed, is_searched=False)
    offers = outcome(lambda: pods.offers(api.hardware))
    api.vary(fake, seed, is_searched=True)
    best = [] if isinstance(offers, ExternalError) else rank(offers, api.hardware).best
    if best:
        done = outcome(lambda: pods.create(name, best[0], api.hardware))
        fake.heal()
        named = [pod for pod in fake.alive if pod.name == name]
        assert len(named) <= 1, f"seed {seed}: rented twice"
        if isinstance(done, NoCapacity | NoFunds | PermanentError):
            assert not named, f"seed {seed}: {done} although a machine was rented"
        elif not isinstance(done, ExternalError):
            assert [pod.id for pod in named] == [done.pod_id], (
                f"seed {seed}: another pod than the one that was rented"
            )
            assert done.name == name
        give_back(api, fake, folder, name)
    fake.heal()
    assert not fake.alive


def give_back(api: Api, fake: Any, folder: Path, name: str) -> None:
    """End what was rented, in a new process, which forgets a damaged name of the account."""
    (folder / "account").unlink(missing_ok=True)
    pods = api.pods(fake, folder)
    for pod in [pod for pod in fake.alive if pod.name == name]:
        assert name in {each.name for each in pods.list()}
        pods.terminate(pod.id)


@pytest.mark.parametrize("block", some_of(range(BLOCKS), one_in=BLOCKS))
def test_damaged_answers_end_no_machine(api: Api, fake: Any, block: int, tmp_path: Path) -> None:
    fake.is_checked = False
    pods = api.pods(fake, tmp_path)
    pods.create(NAME, first(pods, api.hardware), api.hardware)
    for seed in range(block * SEEDS_PER_BLOCK, (block + 1) * SEEDS_PER_BLOCK):
        read_with_damage(api, fake, tmp_path, seed)


@pytest.mark.parametrize("block", some_of(range(BLOCKS), one_in=BLOCKS))
def test_damaged_answers_rent_no_second_machine(api: Api, fake: Any, block: int, tmp_path: Path) -> None:
    fake.is_checked = False
    for seed in range(block * SEEDS_PER_BLOCK, (block + 1) * SEEDS_PER_BLOCK):
        folder = tmp_path / str(seed)
        folder.mkdir()
        rent_with_damage(api, fake, folder, seed)
