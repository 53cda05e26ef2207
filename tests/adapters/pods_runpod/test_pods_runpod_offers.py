"""RunPod's catalogue as offers, and the create call that repeats one of them."""

import re
from dataclasses import replace
from typing import Any

import pytest

from prime_train.errors import NoCapacity, PermanentError, TemporaryError
from prime_train.estimate.gpus import KindAndSocket, from_makers_name
from prime_train.market.ranking import rank
from prime_train.runs.offer import Offer
from prime_train.spec.spec import HardwareSpec
from tests.adapters.pods_runpod.runpod_pods import HARDWARE, client_of, first, pods_of, rent
from tests.adapters.rental_apis.shared import NAME, PUBLIC_KEY, raised
from tests.fakes.http import Response, Rewrite
from tests.fakes.runpod import COMMUNITY, H100, SECURE, FakeRunPod, Kind

DISK_USD = round(54 * 0.10 / 730, 6)
"""The price per hour of 50 GiB, which are 54 GB."""


def by_id(offers: Any) -> dict[str, Offer]:
    return {offer.offer_id: offer for offer in offers}


def test_an_offer_has_the_price_of_the_whole_machine_in_one_place_of_one_cloud(fake: FakeRunPod) -> None:
    offers = by_id(pods_of(fake).offers(HARDWARE))
    assert offers["NVIDIA-H100-80GB-HBM3:2x:US-KS-2:secure:on-demand"] == Offer(
        provider="runpod",
        offer_id="NVIDIA-H100-80GB-HBM3:2x:US-KS-2:secure:on-demand",
        usd_per_hour=pytest.approx(2 * 2.99 + DISK_USD),  # type: ignore[arg-type]
        spot=False,
        gpu="H100",
        gpu_count=2,
        disk_gib=50,
        region="US-KS-2",
        gpu_gb=80,
        socket="SXM5",
        stock="High",
        data_center="US-KS-2",
    )
    elsewhere = offers["NVIDIA-H100-80GB-HBM3:2x:anywhere:community:on-demand"]
    assert (elsewhere.region, elsewhere.stock) == ("", "Medium")
    assert elsewhere.usd_per_hour == pytest.approx(2 * 2.69 + DISK_USD)


def test_the_cheapest_fitting_machine_comes_first_and_others_say_why_not(fake: FakeRunPod) -> None:
    ranking = rank(pods_of(fake).offers(HARDWARE), HARDWARE)
    assert [offer.offer_id.partition(":")[2] for offer in ranking.best] == [
        "2x:anywhere:community:on-demand",
        "2x:EUR-IS-1:secure:on-demand",
        "2x:US-KS-2:secure:on-demand",
    ]
    every = rank(pods_of(fake).offers(HardwareSpec()), HardwareSpec())
    reasons = {left.offer.gpu: left.why for left in every.left_out}
    assert (
        reasons["AMD_Instinct_MI300X_192GB"]
        == "has GPUs that are not NVIDIA's, but trainers are installed for CUDA"
    )
    assert "ARM64" in reasons["GH200_96GB"]


def test_the_catalogue_is_asked_for_each_number_of_gpus_of_the_variants(fake: FakeRunPod) -> None:
    hardware = HardwareSpec.model_validate({"variants": [{"count": 8}, {"count": 1}, {"count": 0}]})
    offers = pods_of(fake).offers(hardware)
    assert {offer.gpu_count for offer in offers} == {1, 8}
    asked = [(request.query["count"], request.query["cloud"]) for request in fake.requests]
    assert asked == [("1", SECURE), ("1", COMMUNITY), ("8", SECURE), ("8", COMMUNITY)]


def test_where_any_machine_fits_all_sizes_are_offered(fake: FakeRunPod) -> None:
    offers = pods_of(fake).offers(HardwareSpec())
    assert {offer.gpu_count for offer in offers if offer.gpu == "H100_80GB"} == {1, 2, 4, 8}
    assert {offer.gpu_count for offer in offers if offer.gpu == "GH200_96GB"} == {1}


def test_what_is_sold_out_or_has_no_price_is_not_offered(fake: FakeRunPod) -> None:
    fake.stock = {(H100.id, SECURE, "US-KS-2"): 0, (H100.id, COMMUNITY, ""): 0}
    assert [offer.region for offer in rank(pods_of(fake).offers(HARDWARE), HARDWARE).best] == ["EUR-IS-1"]
    fake.kinds = (replace(H100, usd={SECURE: 0.0}),)
    assert {left.why for left in rank(pods_of(fake).offers(HARDWARE), HARDWARE).left_out} == {"has no price"}


def test_only_the_chosen_cloud_is_rented_from(fake: FakeRunPod) -> None:
    pods = pods_of(fake, clouds=(SECURE,))
    assert {offer.offer_id.split(":")[3] for offer in rank(pods.offers(HARDWARE), HARDWARE).best} == {
        "secure"
    }
    offer = next(offer for offer in pods.offers(HARDWARE) if ":community:" in offer.offer_id)
    assert "PRIME_TRAIN_RUNPOD_CLOUD is secure" in str(raised(lambda: pods.create(NAME, offer, HARDWARE)))
    assert not fake.pods


def test_one_row_that_cannot_be_read_hides_no_other_one(fake: FakeRunPod) -> None:
    def garbled(response: Response) -> Response:
        return replace(
            response, body=response.body.replace(b'"price": {"secure": 1.64', b'"price": {"secure": "cheap"')
        )

    fake.fail(Rewrite(garbled), path="catalog", times=2)
    assert {offer.gpu for offer in pods_of(fake).offers(HARDWARE)} >= {"H100", "RTX4090_24GB"}
    fake.fail(
        Rewrite(lambda response: replace(response, body=re.sub(rb'"price": ', b'"prize": ', response.body))),
        path="catalog",
    )
    assert isinstance(raised(lambda: pods_of(fake).offers(HARDWARE)), TemporaryError)


def test_nothing_of_a_data_centre_s_name_is_shown_but_letters(fake: FakeRunPod) -> None:
    fake.kinds = (replace(H100, places={SECURE: ("US\x1b[31m:KS/2",)}),)
    offer = rank(pods_of(fake, clouds=(SECURE,)).offers(HARDWARE), HARDWARE).best[0]
    assert (offer.region, offer.offer_id) == (
        "US-31m-KS-2",
        "NVIDIA-H100-80GB-HBM3:2x:US-31m-KS-2:secure:on-demand",
    )
    pods_of(fake, clouds=(SECURE,)).create(NAME, offer, HARDWARE)
    assert fake.pods[0].place == "US\x1b[31m:KS/2"


def test_a_kind_in_no_table_is_offered_by_its_own_name(fake: FakeRunPod) -> None:
    fake.kinds = (Kind("NVIDIA X9000", "X9000", 111, {SECURE: 1.0}),)
    hardware = HARDWARE.model_copy(update={"gpus": ("X9000",)})
    assert first(pods_of(fake), hardware).gpu == "X9000"
    assert pods_of(fake).offers(HARDWARE)[0].gpu == "X9000_111GB"


@pytest.mark.parametrize(
    ("name", "gb", "kind", "socket"),
    [
        ("NVIDIA H100 80GB HBM3", 80, "H100_80GB", "SXM5"),
        ("NVIDIA H100 PCIe", 80, "H100_80GB", "PCIe"),
        ("NVIDIA H100 NVL", 94, "H100_94GB", "NVL"),
        ("NVIDIA A100-SXM4-80GB", 80, "A100_80GB", "SXM4"),
        ("NVIDIA A100 80GB PCIe", 80, "A100_80GB", "PCIe"),
        ("NVIDIA H200", 141, "H200_141GB", "SXM5"),
        ("NVIDIA H200 NVL", 143, "H200_141GB", "NVL"),
        ("NVIDIA B200", 180, "B200_180GB", ""),
        ("NVIDIA B300 SXM6 AC", 288, "B300_262GB", "SXM6"),
        ("NVIDIA GeForce RTX 4090", 24, "RTX4090_24GB", ""),
        ("NVIDIA GeForce RTX 3090 Ti", 24, "RTX3090Ti_24GB", ""),
        ("NVIDIA RTX A6000", 48, "A6000_48GB", ""),
        ("NVIDIA RTX 6000 Ada Generation", 48, "RTX6000Ada_48GB", ""),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 96, "RTX_PRO_6000B_96GB", ""),
        ("NVIDIA L40S", 48, "L40S_48GB", ""),
        ("Tesla V100-SXM2-32GB", 32, "V100_32GB", "SXM2"),
        ("Something Else", 0, "Something_Else", ""),
    ],
)
def test_a_makers_name_is_converted_to_the_name_that_configs_use(
    name: str, gb: int, kind: str, socket: str
) -> None:
    assert from_makers_name(name, gb) == KindAndSocket(kind, socket)


# ------------------------------------------------------------------------------------------------------------
# the create call


def test_an_order_repeats_the_offer_and_has_no_setting_but_our_public_key(fake: FakeRunPod) -> None:
    pods = pods_of(fake, public_key=PUBLIC_KEY + "\n", clouds=(SECURE,))
    rent(pods)
    (request,) = fake.requests_to("POST", "/v2/pods")
    assert request.json == {
        "name": NAME,
        "image": "runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404",
        "gpu": {"id": "NVIDIA H100 80GB HBM3", "count": 2, "minCudaVersion": "12.8"},
        "cloud": "SECURE",
        "dataCenterIds": ["EUR-IS-1"],
        "disk": 54,
        "ports": ["22/tcp"],
        "startSsh": True,
        "env": {"PUBLIC_KEY": PUBLIC_KEY},
    }
    assert not [request for request in fake.requests if "ssh-keys" in request.path]


REFERENCE = f"ghcr.io/me/sft@sha256:{'0' * 64}"


@pytest.mark.parametrize(
    ("image", "field"),
    [(REFERENCE, {"image": REFERENCE}), ("template:30zmvf89kd", {"templateId": "30zmvf89kd"})],
)
def test_the_image_that_a_config_names_is_ordered(
    fake: FakeRunPod, image: str, field: dict[str, str]
) -> None:
    hardware = HardwareSpec(provider="runpod", gpus=("H100",), image=image)
    rent(pods_of(fake), hardware=hardware)
    ordered = fake.requests_to("POST", "/v2/pods")[0].json
    assert {key: ordered[key] for key in ("image", "templateId") if key in ordered} == field


def test_another_providers_name_for_an_image_is_no_image(fake: FakeRunPod) -> None:
    with pytest.raises(ValueError, match="RunPod has no names for images of its own"):
        HardwareSpec(provider="runpod", image="prime_rl")
    hardware = HardwareSpec(gpus=("H100",), image="prime_rl")
    assert {
        left.why
        for left in rank(pods_of(fake).offers(hardware), hardware).left_out
        if left.offer.gpu == "H100"
    } == {"does not start from an image by a provider's name for it, such as prime_rl"}


def test_where_runpod_chooses_the_place_none_is_ordered(fake: FakeRunPod) -> None:
    rent(pods_of(fake))
    assert "dataCenterIds" not in fake.requests_to("POST", "/v2/pods")[0].json


def test_an_offer_of_another_process_is_looked_up_again(fake: FakeRunPod) -> None:
    offer = first(pods_of(fake))
    assert pods_of(fake).create(NAME, offer, HARDWARE).name == NAME
    fake.stock = {(H100.id, COMMUNITY, ""): 0}
    gone = raised(lambda: pods_of(fake).create(NAME, offer, HARDWARE))
    assert isinstance(gone, NoCapacity)
    assert "no longer for rent" in str(gone)


def test_a_machine_that_has_become_dearer_than_the_run_allows_is_not_ordered(fake: FakeRunPod) -> None:
    hardware = HARDWARE.model_copy(update={"usd_per_hour_max": 5.5})
    offer = first(pods_of(fake), hardware)
    fake.kinds = (replace(H100, usd={SECURE: 9.0, COMMUNITY: 9.0}),)
    assert isinstance(raised(lambda: pods_of(fake).create(NAME, offer, hardware)), NoCapacity)
    assert not fake.requests_to("POST", "/v2/pods")


@pytest.mark.parametrize(("surcharge_usd", "kept"), [(0.1, True), (0.5, False)])
def test_a_machine_that_costs_more_than_offered_is_given_back(
    fake: FakeRunPod, surcharge_usd: float, kept: bool
) -> None:
    fake.terms.surcharge_usd = surcharge_usd
    pods = pods_of(fake)
    if kept:
        assert rent(pods).usd_per_hour == pytest.approx(2 * 2.69 + DISK_USD + surcharge_usd)
    else:
        assert "was terminated" in str(raised(lambda: rent(pods)))
    assert bool(fake.alive) is kept


def test_a_dear_machine_that_cannot_be_given_back_is_not_forgotten(fake: FakeRunPod) -> None:
    fake.terms.surcharge_usd = 5.0
    fake.fail(Response(503), method="DELETE", times=9)
    assert isinstance(raised(lambda: rent(pods_of(fake))), TemporaryError)
    assert [pod.name for pod in pods_of(fake).list()] == [NAME]


def test_a_key_that_may_not_rent_lists_offers_only(fake: FakeRunPod) -> None:
    pods = pods_of(fake, closed="rented machines could not reach the bucket")
    assert isinstance(raised(lambda: pods.offers(HARDWARE)), PermanentError)
    assert client_of(fake).gpus(SECURE, 1)
