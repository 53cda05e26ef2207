"""Vast.ai's offers, the search for them, and the create call that repeats one of them."""

import json
from dataclasses import replace
from typing import Any

import pytest

from prime_train.errors import LimitReached, NoCapacity, NoFunds, PermanentError, TemporaryError
from prime_train.estimate.gpus import KindAndSocket
from prime_train.market.ranking import rank
from prime_train.providers.vast.names import kind_and_socket, names_of
from prime_train.runs.offer import Offer
from prime_train.spec.choices import Spot
from prime_train.spec.spec import HardwareSpec
from tests.adapters.pods_vast.vast_pods import CREATE, HARDWARE, SEARCH, first, pods_of, rent
from tests.adapters.rental_apis.shared import NAME, raised
from tests.fakes.http import Response, Rewrite
from tests.fakes.vast import EXAMPLES, FakeVast, refused

DISK_GB = 54
"""50 GiB."""
BID_ID = "machine-1001:2x:RTX-4090:Quebec-CA:bid"


def by_id(offers: Any) -> dict[str, Offer]:
    return {offer.offer_id: offer for offer in offers}


def test_an_offer_has_the_price_of_the_bid_and_the_disk_and_that_of_traffic(fake: FakeVast) -> None:
    offers = by_id(pods_of(fake).offers(HARDWARE))
    disk_usd = DISK_GB * 0.15 / 720
    assert offers[BID_ID] == Offer(
        provider="vast",
        offer_id=BID_ID,
        usd_per_hour=pytest.approx(2 * 0.20 * 1.1 + disk_usd),  # type: ignore[arg-type]
        spot=True,
        gpu="RTX4090",
        gpu_count=2,
        disk_gib=1862,
        region="Quebec-CA",
        gpu_gb=24,
        usd_per_gib_down=0.002147,
        usd_per_gib_up=0.004295,
        machine="machine-1001",
        host="host-1008",
    )
    fixed = offers[BID_ID.replace(":bid", ":ondemand")]
    assert not fixed.spot
    assert fixed.usd_per_hour == pytest.approx(2 * 0.40 + disk_usd)


def test_a_bid_is_for_the_whole_machine_and_never_above_its_price_on_demand(fake: FakeVast) -> None:
    rent(pods_of(fake, bid_factor=1.5))
    fake.hosts = (replace(EXAMPLES[0], bid_usd=0.39),)
    pods = pods_of(fake)
    pods.create("pt-tiny-1-e2", next(offer for offer in pods.offers(HARDWARE) if offer.spot), HARDWARE)
    assert [each.bid_usd for each in fake.instances] == [0.6, 0.8]


@pytest.mark.parametrize(
    ("spot", "types"), [("only", ["bid"]), ("never", ["ondemand"]), ("prefer", ["ondemand", "bid"])]
)
def test_only_what_a_run_may_rent_is_searched_for(fake: FakeVast, spot: str, types: list[str]) -> None:
    hardware = HardwareSpec.model_validate({"gpus": ["RTX4090"], "count": 2, "disk_gib": 50, "spot": spot})
    pods_of(fake).offers(hardware)
    asked = [request.json for request in fake.requests]
    assert [each["type"] for each in asked] == types
    assert asked[0] == {
        "type": types[0],
        "limit": 64,
        "order": [["dph_total", "asc"], ["id", "asc"]],
        "allocated_storage": DISK_GB,
        "verified": {"eq": True},
        "rentable": {"eq": True},
        "rented": {"eq": False},
        "external": {"eq": False},
        "num_gpus": {"in": [2]},
        "direct_port_count": {"gte": 1},
        "cuda_max_good": {"gte": 12.8},
        "disk_space": {"gte": DISK_GB},
        "cpu_arch": {"eq": "amd64"},
        "gpu_arch": {"eq": "nvidia"},
        "inet_down": {"gte": 100.0},
        "reliability": {"gte": 0.95},
        "duration": {"gte": 86_400},
        "gpu_name": {"in": ["RTX 4090", "RTX_4090"]},
    }


def test_unsuitable_machines_are_not_even_found(fake: FakeVast) -> None:
    assert pods_of(fake).offers(HardwareSpec(gpus=("RTX3090",))) == []


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("cuda_max_good", 12.2, "has a driver for CUDA 12.2, but trainers need 12.8"),
        ("direct_port_count", 0, "has no port of its own for SSH"),
        ("verification", "unverified", "is not verified"),
        ("gpu_arch", "amd", "has GPUs that are not NVIDIA's, but trainers are installed for CUDA"),
        ("cpu_arch", "arm64", "has an ARM64 processor, but agents and trainers are installed for x86-64"),
        ("min_bid", 0.0, "has no price"),
        ("min_bid", 200.0, "needs a bid above $128/h, which the API does not take"),
    ],
)
def test_what_was_asked_for_is_checked_again(fake: FakeVast, field: str, value: object, why: str) -> None:
    def spoilt(response: Response) -> Response:
        rows = [{**row, field: value} for row in json.loads(response.body)["offers"]]
        return replace(response, body=json.dumps({"offers": rows}).encode())

    fake.fail(Rewrite(spoilt), path=SEARCH)
    hardware = HARDWARE.model_copy(update={"spot": Spot.ONLY})
    pods = pods_of(fake)
    ranking = rank(pods.offers(hardware), hardware)
    assert not ranking.best
    assert {left.why for left in ranking.left_out} == {why}
    assert why in str(raised(lambda: pods.create(NAME, ranking.left_out[0].offer, hardware)))
    assert not fake.instances


def test_variants_are_searched_for_by_their_counts_and_memory(fake: FakeVast) -> None:
    hardware = HardwareSpec.model_validate(
        {"variants": [{"count": 4, "gpu_gb_min": 80}, {"count": 2, "gpu_gb_min": 40}]}
    )
    offers = pods_of(fake).offers(hardware)
    assert {(offer.gpu, offer.gpu_count) for offer in offers} == {
        (gpu, count) for gpu in ("A100_80GB", "A100_40GB", "H100_80GB") for count in (2, 4)
    }


def test_one_row_that_cannot_be_read_hides_no_other_one(fake: FakeVast) -> None:
    fake.fail(
        Rewrite(
            lambda response: replace(
                response, body=response.body.replace(b'"num_gpus": 2', b'"num_gpus": "2"', 1)
            )
        ),
        path=SEARCH,
    )
    assert len(pods_of(fake).offers(HARDWARE)) == 3
    fake.fail(
        Rewrite(lambda response: replace(response, body=response.body.replace(b'"num_gpus"', b'"n"'))),
        path=SEARCH,
    )
    assert isinstance(raised(lambda: pods_of(fake).offers(HARDWARE)), TemporaryError)


@pytest.mark.parametrize(
    ("name", "gb", "kind", "socket"),
    [
        ("RTX 4090", 24, "RTX4090_24GB", ""),
        ("RTX_3090_Ti", 24, "RTX3090Ti_24GB", ""),
        ("A100 SXM4", 80, "A100_80GB", "SXM4"),
        ("A100 PCIE", 40, "A100_40GB", "PCIe"),
        ("H100 SXM", 80, "H100_80GB", "SXM5"),
        ("H100 NVL", 94, "H100_94GB", "NVL"),
        ("H200", 140, "H200_141GB", "SXM5"),
        ("RTX 6000Ada", 48, "RTX6000Ada_48GB", ""),
        ("RTX A6000", 48, "A6000_48GB", ""),
        ("RTX PRO 6000 WS", 96, "RTX_PRO_6000B_96GB", ""),
        ("Q RTX 8000", 48, "RTX8000_48GB", ""),
        ("Tesla V100", 32, "V100_32GB", "SXM2"),
        ("Something Else", 7, "Something_Else_7GB", ""),
    ],
)
def test_vasts_names_are_those_that_configs_use(name: str, gb: int, kind: str, socket: str) -> None:
    assert kind_and_socket(name, gb) == KindAndSocket(kind, socket)


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (("H100",), ["H100 NVL", "H100 PCIE", "H100 SXM"]),
        (("H100_80GB",), ["H100 NVL", "H100 PCIE", "H100 SXM"]),
        (("H100 SXM5", "RTX4090_24GB"), ["H100 SXM", "RTX 4090"]),
        (("RTX_PRO_6000B_96GB",), ["RTX PRO 6000 S", "RTX PRO 6000 WS"]),
        (("RTX4090", "X9000"), None),
        ((), None),
    ],
)
def test_kinds_are_searched_for_by_name_only_where_all_of_their_names_are_known(
    wanted: tuple[str, ...], names: list[str] | None
) -> None:
    assert names_of(wanted) == names


# ------------------------------------------------------------------------------------------------------------
# the create call


def test_an_order_repeats_the_offer_and_has_neither_settings_nor_keys(fake: FakeVast) -> None:
    pods = pods_of(fake, public_key="ssh-ed25519 AAAA me")
    rent(pods)
    pods.create("pt-tiny-1-e2", next(offer for offer in pods.offers(HARDWARE) if not offer.spot), HARDWARE)
    bid, fixed = (request for request in fake.requests if request.method == "PUT")
    assert bid.path == "/api/v0/asks/100102"
    assert bid.json == {
        "image": "vastai/base-image:@vastai-automatic-tag",
        "label": NAME,
        "disk": DISK_GB,
        "runtype": "ssh_direct",
        "target_state": "running",
        "cancel_unavail": True,
        "onstart": "entrypoint.sh",
        "price": 0.44,
    }
    assert fixed.json == {key: value for key, value in bid.json.items() if key != "price"} | {
        "label": "pt-tiny-1-e2"
    }


def test_only_an_image_in_a_registry_is_ordered(fake: FakeVast) -> None:
    reference = f"ghcr.io/me/sft@sha256:{'0' * 64}"
    rent(pods_of(fake), hardware=HARDWARE.model_copy(update={"provider": "vast", "image": reference}))
    assert fake.instances[0].order["image"] == reference
    assert "onstart" not in fake.instances[0].order
    with pytest.raises(ValueError, match=r"machines of Vast\.ai start only from an image in a registry"):
        HardwareSpec(provider="vast", image="template:30zmvf89kd")
    hardware = HardwareSpec(gpus=("RTX4090",), image="template:30zmvf89kd")
    whys = {left.why for left in rank(pods_of(fake).offers(hardware), hardware).left_out}
    assert whys == {"starts only from an image in a registry, not from template:30zmvf89kd"}


def test_an_offer_of_another_process_is_looked_up_again(fake: FakeVast) -> None:
    offer = first(pods_of(fake))
    assert pods_of(fake).create(NAME, offer, HARDWARE).name == NAME
    fake.hosts = EXAMPLES[1:]
    gone = raised(lambda: pods_of(fake).create(NAME, offer, HARDWARE))
    assert isinstance(gone, NoCapacity)
    assert "no longer for rent" in str(gone)


@pytest.mark.parametrize(("surcharge_usd", "kept"), [(0.02, True), (0.5, False)])
def test_a_machine_that_costs_more_than_offered_is_given_back(
    fake: FakeVast, surcharge_usd: float, kept: bool
) -> None:
    fake.terms.surcharge_usd = surcharge_usd
    pods = pods_of(fake)
    if kept:
        assert rent(pods).usd_per_hour == pytest.approx(0.44 + DISK_GB * 0.15 / 720 + surcharge_usd)
    else:
        assert "was terminated" in str(raised(lambda: rent(pods)))
    assert bool(fake.alive) is kept


@pytest.mark.parametrize("names_it", [True, False])
def test_a_refused_bid_that_leaves_a_stopped_instance_leaves_nothing(fake: FakeVast, names_it: bool) -> None:
    pods = pods_of(fake)
    offer = first(pods)
    fake.hosts = (replace(EXAMPLES[0], bid_usd=0.3), *EXAMPLES[1:])
    fake.terms.leaves_stopped = True
    if not names_it:
        fake.fail(
            Rewrite(lambda response: replace(response, body=response.body.replace(b"new_contract", b"x"))),
            path=CREATE,
        )
    refusal = raised(lambda: pods.create(NAME, offer, HARDWARE))
    assert isinstance(refusal, NoCapacity)
    assert len(fake.instances) == 1
    assert not fake.alive
    assert offer.offer_id not in by_id(pods.offers(HARDWARE))


def test_a_refusal_that_names_an_instance_of_somebody_else_ends_it_not(fake: FakeVast) -> None:
    other = rent(pods_of(fake), "pt-other-e1")
    pods = pods_of(fake)
    refusal = Response(400, f'{{"success": false, "msg": "no", "new_contract": {other.pod_id}}}'.encode())
    fake.fail(refusal, path=CREATE)
    assert isinstance(raised(lambda: rent(pods)), TemporaryError)
    assert [each.id for each in fake.alive] == [other.pod_id]


def test_a_refused_bid_whose_leavings_cannot_be_looked_for_may_have_rented(fake: FakeVast) -> None:
    pods = pods_of(fake)
    offer = first(pods)
    fake.hosts = (replace(EXAMPLES[0], bid_usd=0.3),)
    fake.terms.leaves_stopped = True
    fake.fail(Response(503), method="DELETE", times=9)
    assert "whether it has left an instance is not known" in str(
        raised(lambda: pods.create(NAME, offer, HARDWARE))
    )
    fake.heal()
    (left,) = pods.list()
    assert left.name == NAME
    pods.terminate(left.pod_id)


# ------------------------------------------------------------------------------------------------------------
# the searches


def test_a_watcher_that_asks_each_minute_searches_every_five_minutes(fake: FakeVast) -> None:
    pods = pods_of(fake)
    for _ in range(60):
        pods.offers(HARDWARE)
        fake.advance(60)
    assert len(fake.requests) == 2 * 12


def test_a_machine_that_was_taken_is_not_offered_again_and_others_are_looked_for_soon(fake: FakeVast) -> None:
    pods = pods_of(fake)
    offer = first(pods)
    fake.stock = {100102: 0}
    assert isinstance(raised(lambda: pods.create(NAME, offer, HARDWARE)), NoCapacity)
    fake.stock = {}
    asked = len(fake.requests_to("POST", SEARCH))
    assert offer.offer_id not in by_id(pods.offers(HARDWARE))
    assert len(fake.requests_to("POST", SEARCH)) == asked
    fake.advance(60)
    assert offer.offer_id in by_id(pods.offers(HARDWARE))


@pytest.mark.parametrize(
    "why", ["Your account lacks credit; see the billing page.", "You have reached the limit of instances."]
)
def test_a_refusal_of_the_account_leaves_the_machine_for_rent(fake: FakeVast, why: str) -> None:
    pods = pods_of(fake)
    offer = first(pods)
    fake.fail(refused(400, "invalid_args", why), path=CREATE)
    assert isinstance(raised(lambda: pods.create(NAME, offer, HARDWARE)), NoFunds | LimitReached)
    assert offer.offer_id in by_id(pods.offers(HARDWARE))


def test_when_the_days_searches_are_used_up_what_was_found_last_is_used_until_midnight(
    fake: FakeVast,
) -> None:
    pods = pods_of(fake)
    offers = pods.offers(HARDWARE)
    fake.terms.search_rows = 0
    asked = len(fake.requests)
    for _ in range(5):
        fake.advance(3600)
        assert pods.offers(HARDWARE) == offers
    assert len(fake.requests) == asked + 1
    fake.advance(3600 + 1)
    used_up = raised(lambda: pods.offers(HARDWARE))
    assert isinstance(used_up, TemporaryError)
    assert "new ones in" in str(used_up)
    assert len(fake.requests) == asked + 1
    fake.terms.search_rows = 1000
    fake.advance(used_up.delay_s)
    assert pods.offers(HARDWARE) == offers


def test_a_key_that_may_not_search_is_said_to_be_wrong(fake: FakeVast) -> None:
    fake.keys = {}
    refusal = raised(lambda: pods_of(fake).offers(HARDWARE))
    assert isinstance(refusal, PermanentError)
    assert "check VAST_API_KEY" in str(refusal)
