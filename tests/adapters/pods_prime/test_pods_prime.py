"""Renting from Prime Intellect under real conditions: races, lost responses, changing prices, empty lists."""

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prime_train.errors import LimitReached, NoCapacity, NoFunds, PermanentError, TemporaryError
from prime_train.market.ranking import rank
from prime_train.providers.port import SshAddress
from prime_train.providers.prime.availability import EMPTY_PAUSE_S, EMPTY_RETRIES_MAX
from prime_train.providers.prime.client import PrimeClient
from prime_train.providers.prime.offers import Terms
from prime_train.providers.prime.pods import PrimePods
from prime_train.providers.prime.settings import PrimeSettings
from prime_train.providers.rental.rate_limit import GIVEN_BACK_MAX, QUIET_S_MAX
from prime_train.runs.offer import Offer
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.spec.choices import Spot
from prime_train.spec.spec import HardwareSpec
from tests.adapters.pods_prime.prime_pods import HARDWARE, Pauses, client_of, pods_of
from tests.adapters.rental_apis.shared import NAME, PUBLIC_KEY, TICKET, Pushed, raised
from tests.builders import is_gone
from tests.fakes import prime as fakes
from tests.fakes.http import ALWAYS, LoseResponse, Replace, Response, ScriptedServer
from tests.fakes.prime import FakePrime, Plan


@pytest.fixture(name="fake")
def _fake(tmp_path: Path) -> Iterator[FakePrime]:
    with FakePrime(tmp_path, machines=False) as fake:
        yield fake
        assert fake.violations == []


def first(pods: PrimePods, hardware: HardwareSpec = HARDWARE) -> Offer:
    return rank(pods.offers(hardware), hardware).best[0]


def rent(pods: PrimePods, hardware: HardwareSpec = HARDWARE) -> Pod:
    return pods.create(NAME, first(pods, hardware), hardware)


def ordered(fake: FakePrime) -> Any:
    return fake.requests_to("POST", "/pods/")[-1].json


# ------------------------------------------------------------------------------------------------------------
# orders


def test_an_order_repeats_the_row_with_a_ceiling_for_its_price(fake: FakePrime) -> None:
    hardware = HARDWARE.model_copy(update={"spot": Spot.NEVER})
    pod = rent(pods_of(fake), hardware)

    assert ordered(fake) == {
        "pod": {
            "name": NAME,
            "cloudId": "NVIDIA A100 80GB PCIe",
            "gpuType": "A100_80GB",
            "socket": "PCIe",
            "gpuCount": 1,
            "diskSize": 120,
            "vcpus": 14,
            "memory": 125,
            "maxPrice": 1.7397,
            "image": "ubuntu_22_cuda_12",
            "dataCenterId": "US-KS-2",
            "country": "US",
            "security": "secure_cloud",
            "autoRestart": False,
        },
        "provider": {"type": "runpod"},
    }
    assert pod.usd_per_hour == 1.6568


@pytest.mark.parametrize(
    ("image", "sent"),
    [
        ("prime_rl", {"image": "prime_rl"}),
        ("template:cm3x8", {"image": "custom_template", "customTemplateId": "cm3x8"}),
    ],
)
def test_a_machine_starts_from_the_image_that_the_run_names(
    fake: FakePrime, image: str, sent: dict[str, str]
) -> None:
    rent(pods_of(fake), HARDWARE.model_copy(update={"image": image}))
    order = ordered(fake)["pod"]
    assert {name: order[name] for name in ("image", "customTemplateId") if name in order} == sent


def test_the_ceiling_is_never_above_what_the_run_allows(fake: FakePrime) -> None:
    rent(pods_of(fake), HARDWARE.model_copy(update={"usd_per_hour_max": 0.63}))
    assert ordered(fake)["pod"]["maxPrice"] == 0.63


def test_the_machine_gets_the_key_that_can_reach_it_and_the_team_pays(fake: FakePrime) -> None:
    fake.add_team(fakes.Team("t1"))
    pods = PrimePods(client_of(fake, team_id="t1"), Pushed(), public_key=PUBLIC_KEY)
    pod = rent(pods)
    rent(pods)

    assert fake.pod(pod.pod_id).public_key == PUBLIC_KEY
    assert ordered(fake)["team"] == {"teamId": "t1"}
    assert len(fake.requests_to("POST", "/ssh_keys/")) == 1


def test_an_offer_of_another_process_is_looked_for_in_the_list(fake: FakePrime) -> None:
    offer = first(pods_of(fake))
    assert pods_of(fake).create(NAME, offer, HARDWARE).name == NAME


def test_an_offer_that_is_no_longer_listed_is_no_capacity(fake: FakePrime) -> None:
    offer = first(pods_of(fake))
    fake.rows = []
    error = raised(lambda: pods_of(fake).create(NAME, offer, HARDWARE))

    assert isinstance(error, NoCapacity)
    assert fake.requests_to("POST", "/pods/") == []


def test_a_machine_that_has_become_dearer_than_allowed_is_not_ordered(fake: FakePrime) -> None:
    offer = first(pods_of(fake))
    error = raised(
        lambda: pods_of(fake).create(NAME, offer, HARDWARE.model_copy(update={"usd_per_hour_max": 0.5}))
    )

    assert isinstance(error, NoCapacity)
    assert "above hardware.usd_per_hour_max" in str(error)
    assert fake.alive == []


def test_a_machine_that_would_not_be_rented_is_refused_with_the_reason(fake: FakePrime) -> None:
    offer = first(pods_of(fake))
    error = raised(lambda: pods_of(fake, terms=Terms(images=("none",))).create(NAME, offer, HARDWARE))

    assert isinstance(error, PermanentError)
    assert "has none of the images" in str(error)


# ------------------------------------------------------------------------------------------------------------
# what fails


def test_a_machine_that_comes_dearer_than_its_ceiling_is_given_back(fake: FakePrime) -> None:
    fake.plan = Plan(usd_per_hour=5.0)
    error = raised(lambda: rent(pods_of(fake)))

    assert isinstance(error, NoCapacity)
    assert "was rented at $5.0000/h, above $0.6510" in str(error)
    assert fake.alive == []


def test_a_dear_machine_that_cannot_be_given_back_is_not_reported_to_be_gone(fake: FakePrime) -> None:
    fake.plan = Plan(usd_per_hour=5.0)
    fake.fail(fakes.SERVER_ERROR, method="DELETE", times=ALWAYS)
    pods = pods_of(fake)
    error = raised(lambda: rent(pods))

    assert isinstance(error, TemporaryError)
    assert [pod.name for pod in pods.list()] == [NAME]


def test_a_price_within_the_tolerance_is_paid(fake: FakePrime) -> None:
    fake.plan = Plan(usd_per_hour=0.65)
    assert rent(pods_of(fake)).usd_per_hour == 0.65


@pytest.mark.parametrize(
    "refusal",
    [(400, "Requested GPU is out of stock"), (409, "conflict"), (503, "no capacity at the provider")],
)
def test_a_lost_race_for_the_last_machine_is_no_capacity(fake: FakePrime, refusal: tuple[int, str]) -> None:
    fake.terms.no_capacity = refusal
    fake.change_after_listing([])
    pods = pods_of(fake)
    offer = first(pods)
    error = raised(lambda: pods.create(NAME, offer, HARDWARE))

    assert isinstance(error, NoCapacity)
    assert offer.offer_id in str(error)
    assert fake.alive == []


def test_a_price_that_rose_since_the_listing_is_refused(fake: FakePrime) -> None:
    fake.change_after_listing([fakes.SPOT.priced(3.0)])
    assert isinstance(raised(lambda: rent(pods_of(fake))), PermanentError)
    assert fake.alive == []


def test_an_empty_wallet_is_refused_with_what_to_do(fake: FakePrime) -> None:
    fake.balance_usd = 0.0
    error = raised(lambda: rent(pods_of(fake)))

    assert isinstance(error, NoFunds)
    assert "wallet" in str(error)


@pytest.mark.parametrize("form", list(fakes.InvalidForm))
def test_an_order_that_is_not_understood_names_the_field(fake: FakePrime, form: fakes.InvalidForm) -> None:
    fake.is_checked = False
    fake.terms.invalid_form = form
    fake.rows = [fakes.SPOT.model_copy(update={"socket": "SXM9"})]
    error = raised(lambda: rent(pods_of(fake)))

    assert isinstance(error, PermanentError)
    assert "pod.socket" in str(error)


@pytest.mark.parametrize(
    "fault",
    [
        LoseResponse(),
        Replace(fakes.BAD_GATEWAY),
        Replace(Response(200, b"<html>")),
        Replace(Response(200, b'{"id": ""}')),
    ],
)
def test_a_create_call_without_a_clear_answer_is_made_once_and_found_by_its_name(
    fake: FakePrime, fault: Any
) -> None:
    fake.fail(fault, method="POST", path="/pods/")
    pods = pods_of(fake)
    error = raised(lambda: rent(pods))

    assert isinstance(error, TemporaryError)
    assert len(fake.requests_to("POST", "/pods/")) == 1
    assert [pod.name for pod in pods.list()] == [NAME]


def test_a_limit_of_rate_says_how_long_to_wait(fake: FakePrime) -> None:
    fake.fail(fakes.detail(429, "Too many requests", **{"Retry-After": "9"}))
    error = raised(lambda: pods_of(fake).list())

    assert isinstance(error, TemporaryError)
    assert error.delay_s == 9.0


class RateLimitPause:
    """Pods of a fake Prime that asks for a pause, and a clock that the test advances."""

    def __init__(self, fake: FakePrime) -> None:
        self.fake, self.now_s = fake, 0.0
        client = PrimeClient(PrimeSettings(fake.api_key, base_url=fake.url), clock=lambda: self.now_s)
        self.pods = PrimePods(client, Pushed(), pause=Pauses())

    def asks(self, seconds: int, *, method: str = "GET", path: str = "/pods/", times: int = 1) -> None:
        self.fake.fail(
            fakes.detail(429, "Too many requests", **{"Retry-After": str(seconds)}),
            method=method,
            path=path,
            times=times,
        )

    def requested(self, method: str = "GET") -> int:
        return sum(request.method == method for request in self.fake.requests)


@pytest.fixture(name="quiet")
def _quiet(fake: FakePrime) -> RateLimitPause:
    return RateLimitPause(fake)


def test_a_watcher_that_looks_each_5_seconds_leaves_prime_alone_as_long_as_it_asks(
    quiet: RateLimitPause,
) -> None:
    """This holds for all other requests, too."""
    offer = first(quiet.pods)
    quiet.asks(60, times=ALWAYS)
    raised(quiet.pods.list)
    requested = quiet.requested(), quiet.requested("POST")
    for _ in range(11):
        quiet.now_s += 5
        calls = (
            quiet.pods.list,
            lambda: quiet.pods.offers(HARDWARE),
            lambda: quiet.pods.create(NAME, offer, HARDWARE),
        )
        for error in map(raised, calls):
            assert isinstance(error, TemporaryError)
            assert error.delay_s == 60 - quiet.now_s
            assert "has asked for no requests" in str(error)
    assert (quiet.requested(), quiet.requested("POST")) == requested
    quiet.now_s += 5
    assert "429" in str(raised(quiet.pods.list))
    assert quiet.requested() == requested[0] + 1


def test_nobody_is_left_unwatched_longer_than_a_few_minutes(quiet: RateLimitPause) -> None:
    quiet.asks(3600)
    raised(quiet.pods.list)
    quiet.now_s = QUIET_S_MAX - 1
    assert isinstance(raised(quiet.pods.list), TemporaryError)
    quiet.now_s = QUIET_S_MAX
    assert quiet.pods.list() == []


def test_a_machine_is_given_back_while_prime_is_left_alone(quiet: RateLimitPause) -> None:
    pod = rent(quiet.pods)
    quiet.asks(60)
    raised(quiet.pods.list)
    quiet.pods.terminate(pod.pod_id)
    quiet.now_s = 60
    assert quiet.pods.list() == []


def test_giving_back_is_bounded_and_does_not_make_the_quiet_endless(quiet: RateLimitPause) -> None:
    pod = rent(quiet.pods)
    quiet.asks(200)
    quiet.asks(200, method="DELETE", path=".", times=ALWAYS)
    raised(quiet.pods.list)
    quiet.now_s = 199
    errors = [raised(lambda: quiet.pods.terminate(pod.pod_id)) for _ in range(GIVEN_BACK_MAX + 5)]
    assert quiet.requested("DELETE") == GIVEN_BACK_MAX
    assert {type(error) for error in errors} == {TemporaryError}
    quiet.now_s = QUIET_S_MAX - 1
    raised(quiet.pods.list)
    quiet.now_s = QUIET_S_MAX
    assert len(quiet.pods.list()) == 1


def test_too_much_at_once_without_a_word_for_how_long_is_retried_at_the_usual_pace(
    quiet: RateLimitPause,
) -> None:
    quiet.fake.fail(fakes.detail(429, "Too many requests"))
    raised(quiet.pods.list)
    assert quiet.pods.list() == []


def test_a_key_without_the_right_is_reported_which_rights_are_needed(
    fake: FakePrime, caplog: pytest.LogCaptureFixture
) -> None:
    fake.world.api_keys["pit_reader"] = fakes.ApiKey(scope={"availability": frozenset({"read"})})
    pods = PrimePods(client_of(fake, "pit_reader"), Pushed())
    with caplog.at_level(logging.DEBUG):
        error = raised(lambda: rent(pods))
        other = raised(lambda: PrimePods(client_of(fake, "pit_unknown"), Pushed()).list())

    assert isinstance(error, PermanentError)
    assert "Instances (read and write)" in str(error)
    assert isinstance(other, PermanentError)
    assert "pit_" not in str(error) + str(other) + caplog.text + repr(pods) + repr(vars(pods))


# ------------------------------------------------------------------------------------------------------------
# what is for rent


def test_all_pages_are_read(fake: FakePrime) -> None:
    fake.rows = [fakes.SPOT.model_copy(update={"dataCenter": f"DC-{number}"}) for number in range(250)]

    assert len(pods_of(fake).offers(HARDWARE)) == 250
    assert [request.query_lists["page"] for request in fake.requests_to("GET", "/availability/gpus")] == [
        ["1"],
        ["2"],
        ["3"],
    ]


def test_a_list_that_ends_early_is_taken_for_what_it_has(caplog: pytest.LogCaptureFixture) -> None:
    body = json.dumps({"items": [fakes.SPOT.model_dump()], "totalCount": 608}).encode()
    with ScriptedServer(Response(200, body), Response(200, b'{"items": [], "totalCount": 0}')) as there:
        pods = PrimePods(PrimeClient(PrimeSettings("pit_x", base_url=there.url)), Pushed(), pause=Pauses())
        assert len(pods.offers(HARDWARE)) == 1

    assert len(there.requests) == 2 + EMPTY_RETRIES_MAX
    assert "ended after 1 of 608" in caplog.text


def test_an_empty_list_is_not_believed_at_once(fake: FakePrime) -> None:
    fake.terms.empty_listings = 2
    pauses = Pauses()

    assert len(pods_of(fake, pause=pauses).offers(HARDWARE)) == len(fakes.EXAMPLES)
    assert pauses == [EMPTY_PAUSE_S] * 2


def test_a_list_that_stays_empty_is_held_against_the_summary(fake: FakePrime) -> None:
    fake.terms.empty_listings = ALWAYS
    pauses = Pauses()
    error = raised(lambda: pods_of(fake, pause=pauses).offers(HARDWARE))

    assert isinstance(error, TemporaryError)
    assert "summary" in str(error)
    assert len(pauses) == EMPTY_RETRIES_MAX


def test_where_there_is_nothing_for_rent_there_are_no_offers(fake: FakePrime) -> None:
    fake.rows = []
    assert list(pods_of(fake).offers(HARDWARE)) == []


def test_a_row_that_is_unusual_does_not_hide_the_others(caplog: pytest.LogCaptureFixture) -> None:
    rows = [fakes.SPOT.model_dump(), fakes.ON_DEMAND.model_dump() | {"gpuCount": "many"}]
    body = json.dumps({"items": rows, "totalCount": 2}).encode()
    with ScriptedServer(Response(200, body)) as there:
        offers = PrimePods(PrimeClient(PrimeSettings("pit_x", base_url=there.url)), Pushed()).offers(HARDWARE)

    assert [offer.spot for offer in offers] == [True]
    assert (
        "1 of 2 machines for rent at Prime Intellect cannot be parsed and are left out: gpuCount"
        in caplog.text
    )
    assert "many" not in caplog.text


@pytest.mark.parametrize("price", ["-1", "1e308", "NaN", "Infinity", '"1.60"', "1e999"])
def test_a_row_whose_price_cannot_be_one_is_skipped_and_nothing_is_rented_by_it(price: str) -> None:
    unusual = fakes.ON_DEMAND.model_dump_json().replace('"onDemand":1.64', f'"onDemand":{price}')
    body = f'{{"items": [{fakes.SPOT.model_dump_json()}, {unusual}], "totalCount": 2}}'.encode()
    with ScriptedServer(Response(200, body)) as there:
        offers = PrimePods(PrimeClient(PrimeSettings("pit_x", base_url=there.url)), Pushed()).offers(HARDWARE)

    assert [offer.usd_per_hour for offer in offers] == [0.62]


@pytest.mark.parametrize(
    "body",
    [b"[]", b"{}", b"<html>", b'{"items": [{"a": 1}], "totalCount": 1}', b'{"items": [7], "totalCount": 1}'],
)
def test_a_list_that_is_not_understood_is_for_later(body: bytes) -> None:
    with ScriptedServer(Response(200, body)) as there:
        pods = PrimePods(PrimeClient(PrimeSettings("pit_x", base_url=there.url)), Pushed())
        assert isinstance(raised(lambda: pods.offers(HARDWARE)), TemporaryError)


# -----------------------------------------------------------------------------------------------------------
# pods that are there


def test_every_pod_of_ours_is_listed_and_nobody_elses(fake: FakePrime) -> None:
    pods = pods_of(fake)
    pod = fake.pod(rent(pods).pod_id)
    for name in ["notebook", *(f"pt-tiny-1-e{attempt}" for attempt in range(2, 131))]:
        order = pod.order.model_copy(update={"pod": pod.order.pod.model_copy(update={"name": name})})
        fake.world.pods[name] = replace(pod, pod_id=name, order=order)

    assert {listed.name for listed in pods.list()} == {f"pt-tiny-1-e{attempt}" for attempt in range(1, 131)}
    assert len(client_of(fake).pods()) == 131


def test_a_list_that_is_cut_short_says_nothing_of_what_is_not_in_it(fake: FakePrime) -> None:
    pods = pods_of(fake)
    rented = [rent(pods).pod_id for _ in range(3)]
    fake.terms.cut_listings = 2
    error = raised(pods.list)

    assert isinstance(error, TemporaryError)
    assert "the list is incomplete: 1 entries of 3" in str(error)
    assert [pod.pod_id for pod in pods.list()] == rented


def test_a_provider_that_gives_shorter_pages_than_it_is_requested_is_asked_to_the_end(
    fake: FakePrime,
) -> None:
    pods = pods_of(fake)
    rented = [rent(pods).pod_id for _ in range(5)]
    fake.terms.pods_a_page = 2

    assert [pod.pod_id for pod in pods.list()] == rented


def listing(*names: str, **reported: object) -> Response:
    return Response(
        200,
        json.dumps({"data": [{"id": name, "name": f"pt-{name}-e1"} for name in names], **reported}).encode(),
    )


@pytest.mark.parametrize(
    ("pages", "names"),
    [
        ([listing("a", "b"), listing("c"), listing()], "abc"),
        ([listing("a", "b", total_count=None), listing("c"), listing("c")], "abc"),
        ([listing("a", "b", total_count=3), listing("b", "c", total_count=3)], "abc"),
        ([listing("a", total_count=0)], "a"),
        ([listing("a", total_count=True), listing()], "a"),
    ],
)
def test_a_list_is_followed_until_it_has_what_it_says_or_nothing_new(
    pages: list[Response], names: str
) -> None:
    with ScriptedServer(*pages) as there:
        assert (
            "".join(pod.id for pod in PrimeClient(PrimeSettings("pit_x", base_url=there.url)).pods()) == names
        )


@pytest.mark.parametrize(
    "pages",
    [
        [listing("a", total_count=2), listing(total_count=2)],
        [listing("a", total_count=2), listing("a", total_count=2)],
        # One that ends between two pages moves another one to the page that has been read.
        [listing("a", "b", total_count=4), listing("d", total_count=3)],
        [listing(total_count=1)],
    ],
)
def test_a_list_of_pods_in_which_some_may_be_missing_is_none(pages: list[Response]) -> None:
    with ScriptedServer(*pages) as there:
        assert "the list is incomplete" in str(
            raised(PrimeClient(PrimeSettings("pit_x", base_url=there.url)).pods)
        )


@pytest.mark.parametrize("forgets", [False, True])
def test_a_deleted_pod_is_gone_whether_prime_still_knows_its_id_or_not(
    fake: FakePrime, forgets: bool
) -> None:
    fake.terms.forgets_deleted = forgets
    pods = pods_of(fake)
    pod = rent(pods)
    for _ in range(3):
        pods.terminate(pod.pod_id)
        assert is_gone(pods.get(pod.pod_id))
        assert pods.list() == []
    assert raised(lambda: pods.put_agent(pod, TICKET)).args == (f"pod {pod.pod_id} is gone",)


def test_the_limit_of_an_account_is_reported_as_such_and_of_no_offer(fake: FakePrime) -> None:
    fake.terms.instances_max = 1
    pods = pods_of(fake)
    rent(pods)
    error = raised(lambda: rent(pods))

    assert isinstance(error, LimitReached)
    assert "Limit: 1" in str(error)
    assert first(pods).offer_id not in str(error)


@pytest.mark.parametrize("price", [b"-3.5", b"1e308", b"1e999", b"NaN", b'"free"'])
def test_a_pod_whose_price_cannot_be_one_is_reckoned_with_at_none(price: bytes) -> None:
    body = (
        b'{"data": [{"id": "a", "name": "pt-a-e1", "status": "ACTIVE", "priceHr": '
        + price
        + b'}], "total_count": 1}'
    )
    with ScriptedServer(Response(200, body)) as there:
        pods = PrimePods(PrimeClient(PrimeSettings("pit_x", base_url=there.url)), Pushed())
        assert [pod.usd_per_hour for pod in pods.list()] == [0.0]
        assert pods.burn_usd_per_hour(None) == 0.0


@pytest.mark.parametrize(
    ("end", "seen"),
    [
        (fakes.End.TERMINATED, None),
        (fakes.End.MISSING, None),
        (fakes.End.DELETED, None),
        (fakes.End.ERROR, PodStatus.BROKEN),
    ],
)
def test_a_machine_that_was_taken_away_is_gone_where_prime_says_so(
    fake: FakePrime, end: fakes.End, seen: PodStatus | None
) -> None:
    pods = pods_of(fake)
    pod = rent(pods)
    fake.preempt(pod.pod_id, seen_as=end)
    found = pods.get(pod.pod_id)

    assert is_gone(found) if seen is None else found is not None and found.status is seen
    assert found is None or seen is not None or (found.ended_s or 0) >= pod.created_s > 0
    assert [pod.status for pod in pods.list()] == ([seen] if seen else [])


def test_a_route_that_prime_no_longer_has_does_not_say_that_a_pod_is_gone(fake: FakePrime) -> None:
    pods = pods_of(fake)
    pod = rent(pods)
    no_route = Response(404, b'{"detail":"Not Found"}')
    fake.fail(no_route, times=ALWAYS, path=r"/pods/[^/]+$")
    for error in (raised(lambda: pods.get(pod.pod_id)), raised(lambda: pods.terminate(pod.pod_id))):
        assert isinstance(error, PermanentError)
        assert "its API may have changed" in str(error)
    assert [pod.pod_id for pod in fake.alive] == [pod.pod_id]


def test_a_pod_that_neither_its_route_nor_the_list_knows_is_gone(fake: FakePrime) -> None:
    pods = pods_of(fake)
    pod = rent(pods)
    fake.preempt(pod.pod_id, seen_as=fakes.End.MISSING)
    fake.fail(Response(404, b'{"detail":"Not Found"}'), times=ALWAYS, path=r"/pods/[^/]+$")
    assert is_gone(pods.get(pod.pod_id))


def test_a_page_of_a_proxy_does_not_say_that_a_pod_is_gone(fake: FakePrime) -> None:
    pods = pods_of(fake)
    pod = rent(pods)
    fake.fail(Response(404, b"<html>Not Found</html>", "text/html"), times=2)

    assert isinstance(raised(lambda: pods.get(pod.pod_id)), TemporaryError)
    assert isinstance(raised(lambda: pods.terminate(pod.pod_id)), TemporaryError)
    assert [pod.pod_id for pod in fake.alive] == [pod.pod_id]


def test_a_pod_that_is_being_deleted_is_not_gone_yet(fake: FakePrime) -> None:
    fake.plan = Plan(deleting_s=60)
    pods = pods_of(fake)
    pod = rent(pods)
    pods.terminate(pod.pod_id)
    seen = pods.get(pod.pod_id)

    assert seen is not None
    assert seen.status is PodStatus.UNKNOWN
    fake.advance(61)
    assert is_gone(pods.get(pod.pod_id))


def test_a_pod_is_active_when_it_is_installed(fake: FakePrime) -> None:
    fake.plan = Plan(provision_s=60, install_s=60)
    pods = pods_of(fake)
    pod = rent(pods)
    statuses = []
    for _ in range(3):
        seen = pods.get(pod.pod_id)
        statuses.append(seen.status if seen else None)
        fake.advance(61)

    assert statuses == [PodStatus.PENDING, PodStatus.PENDING, PodStatus.ACTIVE]


# ------------------------------------------------------------------------------------------------------------
# its agent


@pytest.mark.parametrize("form", list(fakes.SshForm))
def test_the_agent_is_brought_to_where_the_pod_says_it_is(fake: FakePrime, form: fakes.SshForm) -> None:
    fake.plan = Plan(ssh_form=form)
    pushed = Pushed()
    pods = pods_of(fake, pusher=pushed)
    pod = rent(pods)
    pods.put_agent(pod, TICKET)

    assert pushed == [(SshAddress(pod.pod_id, "root", "127.0.0.1", 9), TICKET)]


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        (Plan(provision_s=60), "booting"),
        (Plan(install_s=60), "booting"),
        (Plan(ssh_hidden_s=60), "has no SSH address yet"),
        (Plan(install_failure="no driver"), "ERROR, no driver"),
    ],
)
def test_no_agent_is_brought_to_a_pod_that_is_not_ready(fake: FakePrime, plan: Plan, says: str) -> None:
    fake.plan = plan
    pushed = Pushed()
    pods = pods_of(fake, pusher=pushed)
    pod = rent(pods)
    error = raised(lambda: pods.put_agent(pod, TICKET))

    assert isinstance(error, TemporaryError)
    assert says in str(error)
    assert pushed == []


def test_no_agent_is_brought_to_what_is_no_pod(fake: FakePrime) -> None:
    error = raised(
        lambda: pods_of(fake).put_agent(
            replace(Pod("x", NAME, PodStatus.ACTIVE), pod_id="../ssh_keys"), TICKET
        )
    )
    assert "gone" in str(error)


# ------------------------------------------------------------------------------------------------------------
# account


def test_a_key_for_ssh_is_added_once_whatever_its_comment(fake: FakePrime) -> None:
    fake.add_ssh_key("ssh-rsa BBBB another")
    client = client_of(fake)
    added = client.ssh_key_id(PUBLIC_KEY + "\n", "prime-train")

    assert client.ssh_key_id(PUBLIC_KEY.replace("me@here", "you@there"), "prime-train") == added
    assert [key.public_key for key in fake.world.ssh_keys.all()] == ["ssh-rsa BBBB another", PUBLIC_KEY]


def test_what_a_pod_cost_in_all_is_reported_after_its_end(fake: FakePrime) -> None:
    pods, client = pods_of(fake), client_of(fake)
    pod = rent(pods)
    fake.advance(3600)
    pods.terminate(pod.pod_id)

    (billed,) = client.history()
    assert billed.id == pod.pod_id
    assert billed.total_billed_price == pytest.approx(0.62)
    assert client.wallet().balance_usd == pytest.approx(99.38)


def test_the_wallet_is_the_teams_where_a_team_pays(fake: FakePrime) -> None:
    fake.add_team(fakes.Team("t1"), balance_usd=7.0)

    assert client_of(fake, team_id="t1").wallet().balance_usd == 7.0
    assert client_of(fake).wallet().balance_usd == 100.0


def test_a_key_tells_whose_it_is_and_what_it_may(fake: FakePrime) -> None:
    fake.world.api_keys["pit_reader"] = fakes.ApiKey(
        scope={"user": frozenset({"read"}), "instances": frozenset({"read"})}
    )
    person = client_of(fake, "pit_reader").whoami()

    assert person.email == "user-1@example.com"
    assert person.scope is not None
    assert (person.scope["instances"].read, person.scope["instances"].write) == (True, False)


@pytest.mark.parametrize(
    ("body", "log"),
    [
        (b'"a\\nb"', "a\nb"),
        (b'{"logs": ["a", "b"]}', "a\nb"),
        (b'{"logs": "a\\nb"}', "a\nb"),
        (b"a\nb", "a\nb"),
        (b'{"x": 1}', '{"x": 1}'),
    ],
)
def test_the_log_of_a_pod_is_text_whatever_its_shape(body: bytes, log: str) -> None:
    with ScriptedServer(Response(200, body)) as there:
        assert PrimeClient(PrimeSettings("pit_x", base_url=there.url)).log("p1", 7) == log

    assert there.requests[0].target == "/api/v1/pods/p1/log?tail=7"


def test_a_server_that_gives_the_same_page_again_and_again_is_not_queried_for_ever() -> None:
    body = json.dumps(
        {"data": [{"id": str(number), "name": f"pt-a-e{number + 1}"} for number in range(100)]}
    ).encode()
    with ScriptedServer(Response(200, body)) as there:
        assert len(PrimeClient(PrimeSettings("pit_x", base_url=there.url)).pods()) == 100

    assert len(there.requests) == 2


def test_no_request_is_redirected(fake: FakePrime) -> None:
    pods = pods_of(fake, public_key=PUBLIC_KEY)
    pods.terminate(rent(pods).pod_id)
    pods.list()
    client_of(fake).history()

    assert {request.status for request in fake.requests} == {200}
