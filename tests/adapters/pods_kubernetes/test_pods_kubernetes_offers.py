"""What a cluster offers: kinds of nodes by their labels, and what is free on them."""

from collections.abc import Mapping
from typing import Any

import pytest

from prime_train.providers.kubernetes.labels import gpu_label
from prime_train.providers.kubernetes.models import PodSpec
from prime_train.providers.kubernetes.resources import quantity, requested
from prime_train.providers.kubernetes.settings import KubernetesSettings
from prime_train.spec.spec import HardwareSpec
from tests.adapters.pods_kubernetes.kubernetes_pods import HARDWARE, SETTINGS, pods_of
from tests.fakes.kubernetes import FakeKubernetes, node

LABEL = "nvidia.com/gpu.product"
ONE = HardwareSpec(gpus=("H100",), count=1, disk_gib=1)


@pytest.mark.parametrize(
    ("labels", "kind", "socket"),
    [
        ({LABEL: "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559"}, "H100_80GB", "SXM5"),
        ({LABEL: "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.memory": "40960"}, "A100_40GB", "SXM4"),
        ({LABEL: "NVIDIA-A100-PCIE-40GB"}, "A100_40GB", "PCIE"),
        ({LABEL: "Tesla-T4", "nvidia.com/gpu.memory": "15360"}, "T4_16GB", ""),
        ({LABEL: "NVIDIA-L40S"}, "L40S_48GB", ""),
        ({LABEL: "NVIDIA-GeForce-RTX-4090", "nvidia.com/gpu.memory": "24564"}, "RTX4090_24GB", ""),
        ({LABEL: "NVIDIA-H200", "nvidia.com/gpu.memory": "143771"}, "H200_141GB", "SXM5"),
        ({"cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb"}, "H100_80GB", "SXM5"),
        ({"cloud.google.com/gke-accelerator": "nvidia-h200-141gb"}, "H200_141GB", "SXM5"),
        ({"cloud.google.com/gke-accelerator": "nvidia-tesla-a100"}, "A100_40GB", "SXM4"),
        ({"cloud.google.com/gke-accelerator": "nvidia-a100-80gb"}, "A100_80GB", "SXM4"),
        ({"cloud.google.com/gke-accelerator": "nvidia-l4"}, "L4_24GB", ""),
        (
            {"karpenter.k8s.aws/instance-gpu-name": "a10g", "karpenter.k8s.aws/instance-gpu-memory": "24576"},
            "a10g_24GB",
            "",
        ),
        (
            {"karpenter.k8s.aws/instance-gpu-name": "h100", "karpenter.k8s.aws/instance-gpu-memory": "81920"},
            "H100_80GB",
            "SXM5",
        ),
        (
            {"eks.amazonaws.com/instance-gpu-name": "l40s", "eks.amazonaws.com/instance-gpu-memory": "49152"},
            "L40S_48GB",
            "",
        ),
        ({"gpu.nvidia.com/class": "H100_NVLINK_80GB"}, "H100_80GB", "SXM5"),
        ({"gpu.nvidia.com/class": "A100_NVLINK_80GB"}, "A100_80GB", "SXM4"),
        ({"gpu.nvidia.com/class": "RTX_A6000"}, "A6000_48GB", ""),
        ({"gpu.nvidia.com/class": "H200"}, "H200_141GB", "SXM5"),
        ({"nebius.com/gpu-name": "H100"}, "H100_80GB", "SXM5"),
        ({"nebius.com/gpu-name": "H200"}, "H200_141GB", "SXM5"),
        ({"nebius.com/gpu-name": "L40S", LABEL: "NVIDIA-L40S"}, "L40S_48GB", ""),
        ({LABEL: "Some-New-Chip"}, "Some_New_Chip", ""),
    ],
)
def test_a_node_tells_its_kind_of_gpu(labels: Mapping[str, str], kind: str, socket: str) -> None:
    found = gpu_label(labels)
    assert found is not None
    assert (found.kind, found.socket) == (kind, socket)


@pytest.mark.parametrize(
    "labels",
    [{}, {LABEL: "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"}, {LABEL: "NVIDIA-L4-SHARED"}, {"accelerator": "nvidia"}],
)
def test_parts_of_gpus_and_unknown_labels_tell_no_kind(labels: Mapping[str, str]) -> None:
    assert gpu_label(labels) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4", 4),
        ("500m", 0.5),
        ("16Gi", 16 * 2**30),
        ("1e3", 1000),
        ("1.5", 1.5),
        ("2k", 2000),
        (8, 8),
        ("12E2", 1200),
        ("1E", 1e18),
    ],
)
def test_quantities_are_read(text: Any, value: float) -> None:
    assert quantity(text) == value


@pytest.mark.parametrize(
    "text", ["", "x", "1 Gi", "Gi", None, True, "1e999", "9" * 999, "0x10", [], "\u0661"]
)
def test_what_is_no_quantity_is_none(text: Any) -> None:
    assert quantity(text) is None


def test_a_pod_keeps_what_its_containers_request_together_or_its_largest_first_one() -> None:
    def container(**resources: Any) -> dict[str, Any]:
        return {"resources": resources}

    spec = PodSpec.model_validate(
        {
            "containers": [
                container(requests={"cpu": "1"}),
                container(limits={"nvidia.com/gpu": "2", "cpu": "3"}),
                {},
            ],
            "initContainers": [
                container(requests={"cpu": "9"}),
                {"restartPolicy": "Always", **container(requests={"cpu": "500m"})},
            ],
            "overhead": {"cpu": "250m"},
        }
    )
    found = requested(spec)
    assert (found["nvidia.com/gpu"], found["cpu"], found["pods"]) == (2, 9, 1)


def offers_of(
    fake: FakeKubernetes, hardware: HardwareSpec, settings: KubernetesSettings = SETTINGS
) -> dict[str, float]:
    return {offer.offer_id: offer.usd_per_hour for offer in pods_of(fake, settings).offers(hardware)}


def test_offers_are_kinds_of_nodes_with_room_at_the_price_of_the_settings(fake: FakeKubernetes) -> None:
    assert offers_of(fake, HARDWARE) == {
        "H100_80GB-SXM5-spot@us-east5:8": 4.0,
        "H100_80GB-SXM5@us-east5:8": 20.0,
        "A100_80GB-SXM4@us-east5:8": 12.0,
    }
    assert "cpu@us-east5:0" in offers_of(fake, HardwareSpec(disk_gib=1))


def test_each_variant_has_its_offers(fake: FakeKubernetes) -> None:
    variants = [{"gpu_gb_min": 80, "count": 8}, {"gpu_gb_min": 24, "count": 4}]
    hardware = HardwareSpec.model_validate({"variants": variants, "disk_gib": 1})
    found = offers_of(fake, hardware)
    assert {"H100_80GB-SXM5@us-east5:8", "H100_80GB-SXM5@us-east5:4", "L4_24GB@us-east5:4"} <= found.keys()
    assert "L4_24GB@us-east5:8" not in found


def test_what_others_use_is_not_offered(fake: FakeKubernetes) -> None:
    other: dict[str, Any] = {
        "metadata": {
            "name": "other",
            "uid": "other-1",
            "namespace": "theirs",
            "labels": {"batch.kubernetes.io/controller-uid": "x"},
        }
    }
    container = {
        "name": "c",
        "resources": {"requests": {"nvidia.com/gpu": "7"}, "limits": {"nvidia.com/gpu": "7"}},
    }
    pod: dict[str, Any] = {
        **other,
        "spec": {"nodeName": "h100", "containers": [container]},
        "status": {"phase": "Running", "conditions": []},
    }
    fake.pods["other-1"] = pod
    assert "H100_80GB-SXM5@us-east5:8" not in offers_of(fake, HARDWARE)
    assert "H100_80GB-SXM5@us-east5:1" in offers_of(fake, ONE)
    pod["status"]["phase"] = "Succeeded"
    assert "H100_80GB-SXM5@us-east5:8" in offers_of(fake, HARDWARE)


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"unschedulable": True}},
        {"spec": {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]}},
        {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
        {"metadata": {"labels": {"kubernetes.io/arch": "arm64", LABEL: "NVIDIA-H100-80GB-HBM3"}}},
        {"metadata": {"labels": {LABEL: "NVIDIA-H100-80GB-HBM3-SHARED"}}},
        {"metadata": {"labels": {}}},
    ],
)
def test_nodes_that_cannot_be_used_are_not_offered(fake: FakeKubernetes, change: Mapping[str, Any]) -> None:
    there = fake.nodes["h100"]
    fake.nodes = {
        "h100": {
            **there,
            **{part: {**there[part], **change.get(part, {})} for part in ("metadata", "spec", "status")},
        }
    }
    assert offers_of(fake, HARDWARE) == {}


def test_a_small_node_is_offered_with_a_part_of_what_it_has(fake: FakeKubernetes) -> None:
    fake.nodes = {"small": node("small", 1, {LABEL: "NVIDIA-H100-80GB-HBM3"}, cpus=2, memory_gib=8)}
    pods = pods_of(fake)
    (offer,) = pods.offers(ONE)
    pod = pods.create("pt-a-e1", offer, ONE)
    assert fake.pod_of(pod.pod_id)["spec"]["nodeName"] == "small"
    assert list(pods.offers(ONE)) == []


def test_the_disk_is_that_of_a_node_with_room_or_a_volume(fake: FakeKubernetes) -> None:
    (spot, *_) = pods_of(fake).offers(HARDWARE)
    assert spot.disk_gib == 1000
    (spot, *_) = pods_of(fake, SETTINGS.model_copy(update={"storage_class": "fast"})).offers(HARDWARE)
    assert spot.disk_gib > 10_000


def test_a_pool_offers_the_nodes_that_it_has_and_those_that_it_may_add(fake: FakeKubernetes) -> None:
    pool = {
        "name": "b",
        "node_selector": {"pool": "b"},
        "gpu": "H100_80GB",
        "gpus_per_node": 8,
        "nodes_max": 2,
        "usd_per_gpu_hour": 1,
    }
    settings = KubernetesSettings.model_validate({"pools": [pool]})
    fake.nodes = {"one": node("one", 8, {"pool": "b"})}
    for number in (1, 2):
        assert offers_of(fake, HARDWARE, settings) == {"pool/b:8": 8.0}
        pods = pods_of(fake, settings)
        pods.create(f"pt-a-e{number}", pods.offers(HARDWARE)[0], HARDWARE)
    assert offers_of(fake, HARDWARE, settings) == {}
