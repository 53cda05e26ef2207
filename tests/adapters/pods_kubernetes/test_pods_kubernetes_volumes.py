"""Claims with data sets that a config names: how they are mounted, and what becomes of a pod whose claim is
not there.
"""

import pytest

from prime_train.providers.kubernetes.settings import Pool
from prime_train.runs.verdict import PodStatus
from prime_train.spec.spec import HardwareSpec, VolumeSpec
from tests.adapters.pods_kubernetes.kubernetes_pods import HARDWARE, SETTINGS, pods_of, rent
from tests.adapters.rental_apis.shared import seen
from tests.fakes.kubernetes import FakeKubernetes


def mounting(**volumes: VolumeSpec) -> HardwareSpec:
    return HARDWARE.model_copy(
        update={"provider": "kubernetes", "volumes": {f"/{name}": one for name, one in volumes.items()}}
    )


SETS = VolumeSpec(name="sets", sub_path="web/fine", read_only=True)


def test_a_claim_is_mounted_with_its_sub_path_and_read_only_where_the_config_says(
    fake: FakeKubernetes,
) -> None:
    fake.claims = {"sets", "scratch"}
    hardware = mounting(data=SETS, scratch=VolumeSpec(name="scratch", read_only=False))
    template = fake.job_of(rent(pods_of(fake), hardware=hardware).pod_id)["spec"]["template"]["spec"]
    (container,) = template["containers"]
    assert {"name": "volume-0", "mountPath": "/data", "readOnly": True, "subPath": "web/fine"} in container[
        "volumeMounts"
    ]
    assert {"name": "volume-1", "mountPath": "/scratch", "readOnly": False} in container["volumeMounts"]
    assert {"name": "volume-0", "persistentVolumeClaim": {"claimName": "sets", "readOnly": True}} in template[
        "volumes"
    ]
    assert {"name": "volume-1", "persistentVolumeClaim": {"claimName": "scratch"}} in template["volumes"]


def test_two_parts_of_one_claim_are_one_volume_because_a_kubelet_does_not_attach_it_twice(
    fake: FakeKubernetes,
) -> None:
    fake.claims = {"sets"}
    hardware = mounting(a=SETS, b=VolumeSpec(name="sets", sub_path="other", read_only=False))
    template = fake.job_of(rent(pods_of(fake), hardware=hardware).pod_id)["spec"]["template"]["spec"]
    assert [volume for volume in template["volumes"] if "persistentVolumeClaim" in volume] == [
        {"name": "volume-0", "persistentVolumeClaim": {"claimName": "sets"}}
    ]
    mounts = [
        mount for mount in template["containers"][0]["volumeMounts"] if mount["name"].startswith("volume-")
    ]
    assert [(mount["mountPath"], mount["readOnly"], mount["subPath"]) for mount in mounts] == [
        ("/a", True, "web/fine"),
        ("/b", False, "other"),
    ]


def test_a_config_without_volumes_makes_the_same_job_as_ever(fake: FakeKubernetes) -> None:
    template = fake.job_of(rent(pods_of(fake)).pod_id)["spec"]["template"]["spec"]
    assert not [volume for volume in template["volumes"] if "persistentVolumeClaim" in volume]


def test_a_pod_with_its_claim_starts(fake: FakeKubernetes) -> None:
    fake.claims = {"sets"}
    pods = pods_of(fake)
    assert seen(pods, rent(pods, hardware=mounting(data=SETS))) is PodStatus.ACTIVE


def test_a_pod_whose_claim_is_not_there_is_broken_with_the_schedulers_words(
    fake: FakeKubernetes, caplog: pytest.LogCaptureFixture
) -> None:
    pods = pods_of(fake)
    pod = rent(pods, hardware=mounting(data=SETS))
    assert seen(pods, pod) is PodStatus.PENDING
    fake.advance(181)
    assert seen(pods, pod) is PodStatus.BROKEN
    assert 'persistentvolumeclaim "sets" not found' in caplog.text


def test_no_node_of_a_pool_is_awaited_for_a_claim_that_is_not_there(fake: FakeKubernetes) -> None:
    pool = Pool(name="spot", node_selector={"pool": "spot"}, gpu="H100_80GB", gpus_per_node=8, nodes_max=4)
    pods = pods_of(fake, SETTINGS.model_copy(update={"pools": (pool,)}))
    hardware = mounting(data=SETS)
    offer = next(offer for offer in pods.offers(hardware) if offer.offer_id.startswith("pool/"))
    pod = pods.create("pt-tiny-1-e1", offer, hardware)
    fake.advance(181)
    assert seen(pods, pod) is PodStatus.BROKEN
    fake.claims = {"sets"}
