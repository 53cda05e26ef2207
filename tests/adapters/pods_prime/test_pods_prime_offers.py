"""From Prime's rows to offers: names of GPUs, prices, disks, and reasons against a machine."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from prime_train.market.ranking import rank
from prime_train.providers.prime.models import AvailableMachine
from prime_train.providers.prime.offers import (
    RequestedMachine,
    Terms,
    is_offer_id,
    named,
    offer,
    requested_machine,
)
from prime_train.runs.offer import Offer, fits
from prime_train.spec.spec import HardwareSpec

A_DISK = {
    "minCount": 120,
    "defaultCount": 120,
    "maxCount": 3000,
    "pricePerUnit": 0.0001,
    "step": 1,
    "defaultIncludedInPrice": False,
}
IMAGE = Terms().images[0]
ROW: dict[str, Any] = {
    "cloudId": "NVIDIA A100 80GB PCIe",
    "gpuType": "A100_80GB",
    "socket": "PCIe",
    "provider": "hyperstack",
    "region": "united_states",
    "dataCenter": "US-KS-2",
    "country": "US",
    "gpuCount": 1,
    "gpuMemory": 80,
    "disk": A_DISK,
    "sharedDisk": dict.fromkeys(A_DISK),
    "vcpu": {"defaultCount": 14},
    "memory": {"defaultCount": 125},
    "internetSpeed": None,
    "stockStatus": "Low",
    "security": "secure_cloud",
    "prices": {"onDemand": 1.60, "communityPrice": None, "isVariable": None, "currency": "USD"},
    "images": ["a_new_image", IMAGE, "custom_template"],
    "isSpot": None,
    "prepaidTime": None,
    "aNewField": {"of": "theirs"},
}


def row(**changes: Any) -> AvailableMachine:
    return AvailableMachine.model_validate(ROW | changes)


def wants(**changes: Any) -> HardwareSpec:
    return HardwareSpec.model_validate({"disk_gib": 10} | changes)


def offers(
    rows: list[AvailableMachine], hardware: HardwareSpec | None = None, terms: Terms | None = None
) -> list[Offer]:
    wanted = hardware or wants()
    return [offer(offer_id, each, wanted, terms or Terms()) for offer_id, each in named(rows, wanted).items()]


def the_offer(hardware: HardwareSpec | None = None, terms: Terms | None = None, **changes: Any) -> Offer:
    (only,) = offers([row(**changes)], hardware, terms)
    return only


def test_a_row_becomes_an_offer_with_its_complete_price() -> None:
    assert the_offer() == Offer(
        provider="prime",
        offer_id="hyperstack:A100_80GB:PCIe:1x:US-KS-2:secure:on-demand",
        usd_per_hour=1.612,
        spot=False,
        gpu="A100_80GB",
        gpu_count=1,
        disk_gib=2793,
        region="US-KS-2",
        gpu_gb=80,
        socket="PCIe",
        stock="Low",
        data_center="US-KS-2",
    )


# ------------------------------------------------------------------------------------------------------------
# GPUs


@pytest.mark.parametrize(
    ("gpu_type", "word"),
    [
        ("A100_80GB", "A100"),
        ("A100_80GB", "A100_80GB"),
        ("A100_80GB", "a100-80gb"),
        ("A100_80GB", "A100 80"),
        ("A100_80GB", "A100 PCIe"),
        ("H200_141GB", "H200"),
        ("RTX4090_24GB", "RTX 4090"),
        ("RTX_PRO_6000B_96GB", "RTX PRO 6000B"),
        ("NEW_77GB", "new"),
    ],
)
def test_a_gpu_is_known_by_what_people_call_it(gpu_type: str, word: str) -> None:
    found = the_offer(wants(gpus=["P4", word]), gpuType=gpu_type)

    assert found.gpu == word
    assert fits(found, wants(gpus=["P4", word])) is None


@pytest.mark.parametrize(
    ("gpu_type", "word"),
    [("GH200_480GB", "gh200"), ("GH200_96GB", "GH200"), ("GB200", "GB200"), ("GB300", "GB300")],
)
def test_a_machine_with_an_arm64_processor_is_left_out_and_reported_why(gpu_type: str, word: str) -> None:
    found = the_offer(wants(gpus=[word]), gpuType=gpu_type)

    assert found.gpu == word
    assert (
        fits(found, wants(gpus=[word]))
        == "has an ARM64 processor, but agents and trainers are installed for x86-64"
    )


@pytest.mark.parametrize("price", [-0.01, 1e308, "1.60", True, [1.6]])
@pytest.mark.parametrize("where", ["onDemand", "communityPrice", "pricePerUnit"])
def test_a_price_that_cannot_be_one_is_not_read(price: object, where: str) -> None:
    changes = (
        {"disk": A_DISK | {where: price}}
        if where == "pricePerUnit"
        else {"prices": {"onDemand": 1.6, where: price}}
    )
    with pytest.raises(ValidationError):
        row(**changes)


@pytest.mark.parametrize(
    ("gpu_type", "word"),
    [("A100_80GB", "A10"), ("A100_80GB", "A100_40GB"), ("GH200_96GB", "H200"), ("GB200", "B200")],
)
def test_a_gpu_is_not_taken_for_another(gpu_type: str, word: str) -> None:
    assert (
        fits(the_offer(wants(gpus=[word]), gpuType=gpu_type), wants(gpus=[word]))
        == f"has {gpu_type}, but hardware.gpus requires {word}"
    )


def test_the_ladder_keeps_the_order_in_which_a_person_named_gpus_of_one_family() -> None:
    hardware = wants(gpus=["A100_80GB", "A100"])
    rows = [row(gpuType="A100_40GB", prices={"onDemand": 0.5}), row(prices={"onDemand": 2})]

    assert [o.gpu for o in rank(offers(rows, hardware), hardware).best] == ["A100_80GB", "A100"]


@pytest.mark.parametrize(
    ("gpu_type", "count", "told_gb", "gpu_gb"),
    [
        ("A100_80GB", 8, 640, 80),
        ("RTX_PRO_6000B_96GB", 1, 96, 96),
        ("GB200", 4, 768, 186),
        ("GB300", 1, 1, 279),
        ("GH200_480GB", 1, 480, 96),
        ("GH200_624GB", 1, 624, 144),
        ("CPU_NODE", 0, 0, 0),
        ("NEW", 1, 48, 48),
        ("NEW", 2, 96, 0),
        ("NEW", 1, None, 0),
    ],
)
def test_the_memory_of_a_gpu_is_read_from_its_name(
    gpu_type: str, count: int, told_gb: int | None, gpu_gb: int
) -> None:
    assert the_offer(gpuType=gpu_type, gpuCount=count, gpuMemory=told_gb).gpu_gb == gpu_gb


def test_a_machine_without_a_gpu_is_for_runs_that_ask_for_none() -> None:
    node = the_offer(gpuType="CPU_NODE", gpuCount=1)

    assert (node.gpu, node.gpu_count) == ("", 0)
    assert fits(node, wants()) is None
    assert fits(node, wants(gpus=["A100"])) == "has no GPU, but hardware.gpus requires A100"


# ------------------------------------------------------------------------------------------------------------
# prices


def test_the_community_price_is_the_price_where_there_is_one() -> None:
    assert (
        the_offer(prices={"onDemand": 9, "communityPrice": 1.1}, disk={"defaultCount": 100}).usd_per_hour
        == 1.1
    )


def test_what_is_not_in_the_price_comes_on_top() -> None:
    vcpu = {"defaultCount": 10, "pricePerUnit": 0.01, "defaultIncludedInPrice": False}
    memory = {"defaultCount": 100, "pricePerUnit": 0.001, "defaultIncludedInPrice": True}
    found = requested_machine(row(vcpu=vcpu, memory=memory), wants(disk_gib=500))

    assert found == RequestedMachine(
        disk_gb=537, vcpus=10, memory_gb=100, usd_per_hour=round(1.6 + 0.0537 + 0.1, 6)
    )


def test_where_it_is_not_reported_whether_it_is_in_the_price_it_is_counted() -> None:
    disk = A_DISK | {"defaultIncludedInPrice": None}
    assert requested_machine(row(disk=disk), wants()).usd_per_hour == 1.612


def test_of_what_is_in_the_price_only_more_than_usual_is_paid_for() -> None:
    disk = A_DISK | {"defaultIncludedInPrice": True}
    assert requested_machine(row(disk=disk), wants(disk_gib=10)).usd_per_hour == 1.6
    assert requested_machine(row(disk=disk), wants(disk_gib=1000)) == RequestedMachine(
        1074, 14, 125, round(1.6 + 954 * 0.0001, 6)
    )


# ------------------------------------------------------------------------------------------------------------
# disks


@pytest.mark.parametrize(
    ("disk", "disk_gib", "disk_gb"),
    [
        ({}, 10, 120),
        ({}, 100, 120),
        ({}, 112, 121),
        ({"step": 50}, 112, 170),
        ({"minCount": None}, 10, 120),
        ({"minCount": 20}, 10, 20),
        ({"minCount": 20, "defaultIncludedInPrice": True}, 10, 120),
        ({"minCount": 20, "pricePerUnit": None}, 10, 120),
        ({"step": None}, 500, 537),
        ({}, 90_000, 3000),
        ({"maxCount": None}, 500, 120),
    ],
)
def test_the_least_disk_is_ordered_that_is_enough_and_allowed(
    disk: dict[str, Any], disk_gib: int, disk_gb: int
) -> None:
    assert requested_machine(row(disk=A_DISK | disk), wants(disk_gib=disk_gib)).disk_gb == disk_gb


def test_what_a_provider_keeps_of_a_disk_is_ordered_on_top() -> None:
    assert requested_machine(row(provider="runpod"), wants(disk_gib=100)).disk_gb == 148
    assert the_offer(provider="runpod").disk_gib == the_offer().disk_gib - 37


def test_a_disk_that_is_too_small_is_left_out_with_the_reason() -> None:
    assert (
        fits(the_offer(wants(disk_gib=2794)), wants(disk_gib=2794))
        == "has 2793 GiB of disk, but hardware.disk_gib is 2794"
    )
    assert fits(the_offer(wants(disk_gib=2793)), wants(disk_gib=2793)) is None


AMOUNTS = st.none() | st.floats(0, 10_000) | st.integers(0, 10_000)
DISKS = st.fixed_dictionaries(
    {
        "minCount": AMOUNTS,
        "defaultCount": AMOUNTS,
        "maxCount": AMOUNTS,
        "pricePerUnit": AMOUNTS,
        "step": AMOUNTS,
    }
    | {"defaultIncludedInPrice": st.none() | st.booleans()}
)


@settings(max_examples=200, deadline=None)
@given(disk=DISKS, disk_gib=st.integers(1, 5000), provider=st.sampled_from(["runpod", "nebius"]))
def test_a_disk_that_fits_is_large_enough_when_it_is_ordered(
    disk: dict[str, Any], disk_gib: int, provider: str
) -> None:
    hardware = wants(disk_gib=disk_gib)
    machine = row(disk=disk, provider=provider)
    (found,) = offers([machine], hardware)
    if fits(found, hardware) is None:
        ordered_gb = requested_machine(machine, hardware).disk_gb
        assert ordered_gb is not None
        reserved_gb = 40 if provider == "runpod" else 0
        assert (ordered_gb - reserved_gb) * 10**9 >= disk_gib * 2**30
        assert ordered_gb <= max(disk["maxCount"] or 0, disk["defaultCount"] or 0, disk["minCount"] or 0)


# ------------------------------------------------------------------------------------------------------- what
# speaks against it


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"prices": {"onDemand": 1, "currency": "EUR"}}, "is priced in EUR"),
        ({"prices": {"onDemand": None}}, "has no price"),
        ({"prices": {"onDemand": 0}}, "has no price"),
        ({"prepaidTime": 24}, "must be paid 24 h in advance"),
        ({"images": ["custom_template"]}, f"has none of the images {IMAGE}"),
        ({"disk": None}, "does not state its disk size"),
    ],
)
def test_a_machine_we_would_not_rent_is_shown_with_the_reason(changes: dict[str, Any], says: str) -> None:
    ranking = rank([the_offer(**{"vcpu": None, "disk": {"defaultCount": 99}} | changes)], wants())

    assert ranking.best == ()
    assert says in ranking.left_out[0].why


def test_machines_of_private_people_are_taken_unless_it_is_forbidden() -> None:
    assert the_offer(security="community_cloud").hindrance == ""
    assert (
        the_offer(terms=Terms(secure_only=True), security="community_cloud").hindrance
        == "is community_cloud, but only secure_cloud is allowed"
    )
    assert the_offer(terms=Terms(secure_only=True), security=None).hindrance
    assert the_offer(terms=Terms(secure_only=True)).hindrance == ""


def test_a_row_that_names_no_images_gets_our_first() -> None:
    assert Terms().image(row(images=None)) == IMAGE
    assert Terms(("x", "custom_template")).image(row()) == "custom_template"


def test_the_image_that_the_run_names_is_the_only_one_that_suits() -> None:
    assert Terms().image(row(images=["ubuntu_22_cuda_12", "prime_rl"]), "prime_rl") == "prime_rl"
    assert the_offer(wants(image="prime_rl")).hindrance == "has none of the images prime_rl"
    assert the_offer(wants(image="template:c1")).hindrance == ""
    assert the_offer(wants(image="template:c1"), images=[IMAGE]).hindrance == "does not start from templates"


# ------------------------------------------------------------------------------------------------------------
# ids and order


def test_what_is_sold_out_is_no_offer() -> None:
    assert offers([row(stockStatus="Unavailable")]) == []
    assert len(offers([row(stockStatus="Plenty"), row(stockStatus=None, isSpot=True)])) == 2


def test_spot_is_an_offer_of_its_own() -> None:
    assert {o.offer_id.split(":")[-1]: o.spot for o in offers([row(), row(isSpot=True)])} == {
        "on-demand": False,
        "spot": True,
    }


def test_an_id_outlives_a_change_of_cloud_id_and_price() -> None:
    moved = the_offer(cloudId="another", prices={"onDemand": 3})

    assert moved.offer_id == the_offer().offer_id
    assert is_offer_id(moved.offer_id)


def test_rows_that_only_their_cloud_id_tells_apart_are_two_offers() -> None:
    one, two = offers([row(), row(cloudId="b")])

    assert one.offer_id != two.offer_id
    assert is_offer_id(one.offer_id)
    assert is_offer_id(two.offer_id)


def test_of_rows_that_nothing_tells_apart_the_cheaper_is_kept() -> None:
    (kept,) = offers([row(prices={"onDemand": 9}), row(prices={"onDemand": 1})])
    assert kept.usd_per_hour < 2


def test_the_wanted_gpus_come_first_and_then_the_cheapest() -> None:
    rows = [row(gpuType="L4_24GB", prices={"onDemand": 0.1}), row(isSpot=True, prices={"onDemand": 1}), row()]
    assert [o.gpu + "spot" * o.spot for o in offers(rows, wants(gpus=["A100"]))] == [
        "A100spot",
        "A100",
        "L4_24GB",
    ]


@pytest.mark.parametrize("text", ["", "no-such-offer", "a:b", ":" * 7])
def test_what_is_no_id_is_known_as_such(text: str) -> None:
    assert not is_offer_id(text)
