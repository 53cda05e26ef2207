"""A network volume that a config names: only machines that can mount it are rented, and the order mounts
it.
"""

import pytest

from prime_train.errors import ExternalError, PermanentError
from prime_train.market.ranking import rank
from prime_train.spec.spec import HardwareSpec, VolumeSpec
from tests.adapters.pods_runpod.runpod_pods import HARDWARE, client_of, pods_of
from tests.adapters.rental_apis.shared import NAME
from tests.fakes.runpod import FakeRunPod


def mounting(volume: str = "agv6w2qcg7") -> HardwareSpec:
    volumes = {"/data": VolumeSpec(name=volume, read_only=False)}
    return HARDWARE.model_copy(update={"provider": "runpod", "volumes": volumes})


@pytest.fixture(autouse=True)
def _volume(fake: FakeRunPod) -> None:
    fake.volumes = {"agv6w2qcg7": "EUR-IS-1"}


def test_only_machines_in_the_data_centre_of_the_volume_are_rented_and_the_others_say_why(
    fake: FakeRunPod,
) -> None:
    hardware = mounting()
    ranking = rank(pods_of(fake).offers(hardware), hardware)
    assert [offer.data_center for offer in ranking.best] == ["EUR-IS-1"]
    why = {
        left.offer.offer_id.partition(":")[2]: left.why
        for left in ranking.left_out
        if left.offer.gpu == "H100"
    }
    assert why["2x:US-KS-2:secure:on-demand"] == "is in US-KS-2, but network volume agv6w2qcg7 is in EUR-IS-1"
    assert why["2x:anywhere:community:on-demand"] == "is in the community cloud, which has no network volumes"


def test_a_spot_machine_mounts_none(fake: FakeRunPod) -> None:
    spots = [
        offer for offer in pods_of(fake, spot=True).offers(mounting()) if offer.spot and offer.gpu == "H100"
    ]
    assert {offer.hindrance for offer in spots if "secure" in offer.offer_id} == {
        "is spot, and network volumes are mounted only on on-demand machines"
    }


def test_the_order_mounts_the_volume_at_its_path_in_its_data_centre(fake: FakeRunPod) -> None:
    pods, hardware = pods_of(fake), mounting()
    offer = rank(pods.offers(hardware), hardware).best[0]
    pod = pods.create(NAME, offer, hardware)
    order = fake.pod(pod.pod_id).order
    assert order["mounts"] == {"network": [{"volumeId": "agv6w2qcg7", "path": "/data"}]}
    assert order["dataCenterIds"] == ["EUR-IS-1"]


def test_a_volume_that_the_account_does_not_have_rents_nothing_until_it_is_there(fake: FakeRunPod) -> None:
    pods, hardware = pods_of(fake), mounting("elsewhere1")
    ranking = rank(pods.offers(hardware), hardware)
    assert not ranking.best
    assert any(
        left.why == "cannot mount network volume elsewhere1, which this account does not have"
        for left in ranking.left_out
    )
    with pytest.raises(PermanentError, match="which this account does not have"):
        pods.create(NAME, ranking.left_out[0].offer, hardware)
    assert fake.pods == []
    fake.volumes["elsewhere1"] = "US-KS-2"
    assert [offer.data_center for offer in rank(pods.offers(hardware), hardware).best] == ["US-KS-2"]


@pytest.mark.parametrize(
    "changes",
    [{"dataCenterIds": ["US-KS-2"]}, {"dataCenterIds": []}, {"cloud": "COMMUNITY"}, {"volume": "elsewhere1"}],
    ids=["another data centre", "any data centre", "community", "unknown"],
)
def test_the_fake_refuses_a_volume_where_it_is_not(fake: FakeRunPod, changes: dict[str, object]) -> None:
    order: dict[str, object] = {
        "name": NAME,
        "image": "i",
        "gpu": {"id": "NVIDIA H100 80GB HBM3", "count": 1},
        "cloud": "SECURE",
    }
    order |= {"dataCenterIds": ["EUR-IS-1"]} | changes
    order["mounts"] = {"network": [{"volumeId": order.pop("volume", "agv6w2qcg7"), "path": "/data"}]}
    with pytest.raises(ExternalError, match="network volume"):
        client_of(fake).create(order)
    assert fake.pods == []


def test_without_volumes_nobody_asks_for_any(fake: FakeRunPod) -> None:
    pods_of(fake).offers(HARDWARE)
    assert not [request for request in fake.requests if "network-volumes" in request.path]
