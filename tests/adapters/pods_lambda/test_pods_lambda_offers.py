"""Lambda Cloud's types of machines as offers, and the launch that repeats one of them."""

import re
from dataclasses import replace
from typing import Any

import pytest

from prime_train.errors import LimitReached, NoCapacity, NoFunds, PermanentError, TemporaryError
from prime_train.market.ranking import rank
from prime_train.providers.lambda_cloud.models import InstanceType
from prime_train.providers.lambda_cloud.offers import Gpu, gpu_of
from prime_train.providers.lambda_cloud.pods import OwnSshKey
from prime_train.providers.rental.pod_names import PodMark
from prime_train.runs.offer import Offer
from prime_train.spec.spec import HardwareSpec
from tests.adapters.pods_lambda.lambda_pods import (
    HARDWARE,
    KEYS,
    LAUNCH,
    TYPES,
    client_of,
    first,
    pods_of,
    rent,
)
from tests.adapters.rental_apis.shared import NAME, PUBLIC_KEY, raised
from tests.fakes.http import Response, Rewrite
from tests.fakes.lambda_cloud import EXAMPLES, FakeLambdaCloud, error

LONG = f"pt-{'x' * 48}-e12-a0123abcd"


def by_id(offers: Any) -> dict[str, Offer]:
    return {offer.offer_id: offer for offer in offers}


def test_an_offer_is_a_type_in_a_region_with_the_price_of_the_whole_machine(fake: FakeLambdaCloud) -> None:
    offers = by_id(pods_of(fake).offers(HARDWARE))
    assert offers["gpu_8x_h100_sxm5:us-east-1"] == Offer(
        provider="lambda",
        offer_id="gpu_8x_h100_sxm5:us-east-1",
        usd_per_hour=23.92,
        spot=False,
        gpu="H100",
        gpu_count=8,
        disk_gib=24780,
        region="us-east-1",
        gpu_gb=80,
        socket="SXM5",
        data_center="us-east-1",
    )
    assert [offer.region for offer in rank(list(offers.values()), HARDWARE).best] == [
        "us-east-1",
        "us-south-1",
    ]


def test_what_is_unknown_sold_out_or_has_no_gpu_is_left_out_and_arm64_says_why_not(
    fake: FakeLambdaCloud,
) -> None:
    offers = by_id(pods_of(fake).offers(HardwareSpec()))
    assert not [
        offer_id for offer_id in offers if "x9000" in offer_id or "cpu" in offer_id or "b200" in offer_id
    ]
    assert "ARM64" in offers["gpu_1x_gh200:us-east-3"].hindrance
    with_image = by_id(pods_of(fake).offers(HardwareSpec(image="prime_rl")))
    assert "Lambda Cloud's own image" in with_image["gpu_1x_a10:us-west-1"].hindrance


@pytest.mark.parametrize(
    ("described", "gpu"),
    [
        ("H100 (80 GB SXM5)", Gpu("H100_80GB", "SXM5", 80)),
        ("H100 (80 GB PCIe)", Gpu("H100_80GB", "PCIe", 80)),
        ("A100 (40 GB SXM4)", Gpu("A100_40GB", "SXM4", 40)),
        ("A10 (24 GB PCIe)", Gpu("A10_24GB", "PCIe", 24)),
        ("B200 (180 GB SXM6)", Gpu("B200_180GB", "SXM6", 180)),
        ("GH200 (96 GB)", Gpu("GH200_96GB", "", 96)),
        ("RTX A6000 (48 GB)", Gpu("A6000_48GB", "", 48)),
        ("A6000 (48 GB)", Gpu("A6000_48GB", "", 48)),
        ("RTX 6000 (24 GB)", Gpu("RTX6000_24GB", "", 24)),
        ("Tesla V100 (16 GB)", Gpu("V100_16GB", "SXM2", 16)),
        ("X9000 (111 GB SXM9)", None),
        ("N/A", None),
        ("", None),
        ("H100", None),
        ("H100 (80 GB SXM5)\x1b[31m", None),
    ],
)
def test_a_gpu_is_known_by_its_description(described: str, gpu: Gpu | None) -> None:
    row = {
        "name": "x",
        "gpu_description": described,
        "price_cents_per_hour": 1,
        "specs": {"gpus": 1, "storage_gib": 1},
    }
    assert gpu_of(InstanceType.model_validate(row)) == gpu


def test_one_type_that_cannot_be_read_hides_no_other_one(fake: FakeLambdaCloud) -> None:
    def garbled(response: Response) -> Response:
        return replace(
            response,
            body=response.body.replace(b'"price_cents_per_hour": 75', b'"price_cents_per_hour": "cheap"'),
        )

    fake.fail(Rewrite(garbled), path=TYPES)
    assert {offer.gpu for offer in pods_of(fake).offers(HARDWARE)} >= {"H100", "A100_40GB"}
    fake.fail(
        Rewrite(
            lambda response: replace(response, body=re.sub(b"price_cents", b"prize_cents", response.body))
        ),
        path=TYPES,
    )
    assert isinstance(raised(lambda: pods_of(fake).offers(HARDWARE)), TemporaryError)


# ------------------------------------------------------------------------------------------------------------
# the launch


def test_a_launch_repeats_the_offer_with_one_ssh_key_and_our_tags(fake: FakeLambdaCloud) -> None:
    pods = pods_of(fake, mark=PodMark("11111111"), wall=lambda: 1_790_000_000.9)
    pod = rent(pods)
    (request,) = fake.requests_to("POST", LAUNCH)
    assert request.json == {
        "region_name": "us-east-1",
        "instance_type_name": "gpu_8x_h100_sxm5",
        "ssh_key_names": ["prime-train-135df6d4069c"],
        "name": f"{NAME}-11111111",
        "tags": [
            {"key": "prime-train:name", "value": f"{NAME}-11111111"},
            {"key": "prime-train:created", "value": "1790000000"},
        ],
    }
    assert (pod.name, pod.created_s, pod.usd_per_hour) == (NAME, 1_790_000_000, 23.92)


@pytest.mark.parametrize("has_tags", [True, False])
def test_the_longest_name_is_found_again_by_its_tag_and_short_ones_also_without(
    fake: FakeLambdaCloud, has_tags: bool
) -> None:
    fake.plan.has_tags = has_tags
    pods = pods_of(fake, mark=PodMark("11111111"))
    rent(pods)
    rent(pods, LONG)
    assert {pod.name for pod in pods.list()} == ({NAME, LONG} if has_tags else {NAME})
    assert max(len(instance.name) for instance in fake.instances) == 64


def test_the_ssh_key_is_added_once_and_found_by_any_name(fake: FakeLambdaCloud) -> None:
    rent(pods_of(fake))
    rent(pods_of(fake))
    assert len(fake.requests_to("POST", KEYS)) == 1
    (key,) = fake.ssh_keys["one"]
    key.update(name="renamed by hand", public_key=PUBLIC_KEY.replace("me@here", "somebody@there"))
    rent(pods_of(fake))
    assert fake.instances[-1].order["ssh_key_names"] == ["renamed by hand"]


def test_an_ssh_key_that_was_removed_meanwhile_is_added_again_by_the_next_try(fake: FakeLambdaCloud) -> None:
    pods = pods_of(fake)
    rent(pods)
    fake.ssh_keys.clear()
    assert isinstance(raised(lambda: rent(pods)), NoCapacity)
    rent(pods)
    assert len(fake.instances) == 2


def test_without_a_public_key_nothing_is_launched(fake: FakeLambdaCloud) -> None:
    keyless = pods_of(fake, own_key=OwnSshKey(client_of(fake), ""))
    assert isinstance(raised(lambda: rent(keyless)), PermanentError)
    assert not fake.instances


def test_an_offer_of_another_process_is_looked_up_again(fake: FakeLambdaCloud) -> None:
    offer = first(pods_of(fake))
    assert pods_of(fake).create(NAME, offer, HARDWARE).name == NAME
    fake.stock = {("gpu_8x_h100_sxm5", "us-east-1"): 0}
    gone = raised(lambda: pods_of(fake).create(NAME, offer, HARDWARE))
    assert isinstance(gone, NoCapacity)
    assert "no longer for rent" in str(gone)


def test_a_machine_that_has_become_dearer_than_the_run_allows_is_not_launched(fake: FakeLambdaCloud) -> None:
    hardware = HARDWARE.model_copy(update={"usd_per_hour_max": 24.0})
    offer = first(pods_of(fake), hardware)
    fake.kinds = tuple(replace(kind, cents=kind.cents * 2) for kind in EXAMPLES)
    assert isinstance(raised(lambda: pods_of(fake).create(NAME, offer, hardware)), NoCapacity)
    assert not fake.requests_to("POST", LAUNCH)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "instance-operations/launch/insufficient-capacity", NoCapacity),
        (404, "global/object-does-not-exist", NoCapacity),
        (400, "global/quota-exceeded", LimitReached),
        (403, "global/account-inactive", NoFunds),
        (403, "global/invalid-address", NoFunds),
        (400, "global/invalid-parameters", PermanentError),
        (403, "global/forbidden", PermanentError),
        (401, "global/invalid-api-key", PermanentError),
        (400, "provider/internal-unavailable", TemporaryError),
        (403, "provider/out-of-order", TemporaryError),
        (500, "instance-operations/launch/insufficient-capacity", TemporaryError),
        (500, "global/internal-error", TemporaryError),
        (429, "global/rate-limited", TemporaryError),
        (400, "global/something-new", PermanentError),
    ],
)
def test_a_refusal_is_taken_by_its_code(
    fake: FakeLambdaCloud, status: int, code: str, kind: type[Exception]
) -> None:
    pods = pods_of(fake)
    offer = first(pods)
    fake.fail(error(status, code, "Balance\x1b[31m and capacity\n" + "x" * 5000), path=LAUNCH)
    found = raised(lambda: pods.create(NAME, offer, HARDWARE))
    assert type(found) is kind
    assert len(str(found)) < 1000
    assert str(found).isprintable()
    assert len(fake.requests_to("POST", LAUNCH)) == 1
