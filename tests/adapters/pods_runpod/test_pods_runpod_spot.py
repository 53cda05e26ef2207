"""Spot machines of RunPod, which are asked for and rented by its older API, and looked after by the current
one.
"""

from pathlib import Path
from typing import Any

import pytest

from prime_train.errors import ExternalError, NoCapacity, NoFunds, PermanentError, TemporaryError
from prime_train.providers.rental.pod_names import PodMark
from prime_train.providers.runpod.pods import RunPodPods
from prime_train.providers.runpod.settings import read_settings
from prime_train.runs.offer import Offer
from prime_train.runs.verdict import PodStatus
from prime_train.spec.causes import Cause
from prime_train.spec.choices import Spot
from tests.adapters.pods_runpod.runpod_pods import HARDWARE, RunPodDays, client_of, pods_of
from tests.adapters.rental_apis.shared import NAME, PUBLIC_KEY, raised, seen
from tests.adapters.rented_days import Days, Pushed, world_of
from tests.fakes.http import CutRequest, Fault, LoseResponse, Response, json_response
from tests.fakes.runpod import FakeRunPod, Status

ID = "NVIDIA-H100-80GB-HBM3:2x:anywhere:secure:spot"
ONLY = HARDWARE.model_copy(update={"spot": Spot.ONLY})
CREATE: dict[str, Any] = {"method": "POST", "path": "graphql"}


def spot(fake: FakeRunPod, **options: object) -> RunPodPods:
    return pods_of(fake, spot=True, **options)


def offer(pods: RunPodPods) -> Offer:
    return next(offer for offer in pods.offers(HARDWARE) if offer.offer_id == ID)


def orders(fake: FakeRunPod) -> list[dict[str, object]]:
    """Return the inputs of the mutations that were sent."""
    bodies = [request.json for request in fake.requests_to("POST", "/graphql")]
    return [body["variables"]["input"] for body in bodies if "variables" in body]


def test_a_spot_machine_costs_its_bid_and_its_disk(fake: FakeRunPod) -> None:
    found = offer(spot(fake))
    assert found.spot
    assert found.usd_per_hour == pytest.approx(2 * 2.99 / 2 + 54 * 0.10 / 730)
    assert not any(each.spot for each in pods_of(fake).offers(HARDWARE)), "nobody has asked for spot machines"


def test_the_bid_is_for_one_gpu_and_the_pod_is_found_by_the_current_api(fake: FakeRunPod) -> None:
    pods = spot(fake, public_key=PUBLIC_KEY)
    pod = pods.create(NAME, offer(pods), ONLY)
    (order,) = orders(fake)
    assert (order["bidPerGpu"], order["gpuCount"], order["cloudType"]) == (
        pytest.approx(2.99 / 2),
        2,
        "SECURE",
    )
    assert order["supportPublicIp"] is True
    assert order["env"] == [{"key": "PUBLIC_KEY", "value": PUBLIC_KEY}]
    assert [each.pod_id for each in pods.list()] == [pod.pod_id]
    assert seen(pods, pod) is PodStatus.ACTIVE
    pods.terminate(pod.pod_id)
    assert not fake.alive


def test_a_spot_machine_that_is_not_cheaper_is_not_offered(fake: FakeRunPod) -> None:
    fake.terms.spot_share = 1.0
    assert not any(each.spot for each in spot(fake).offers(HARDWARE))


@pytest.mark.parametrize(
    "end",
    [
        json_response(
            {"errors": [{"message": 'Cannot query field "lowestPrice" on type "GpuType".'}], "data": None}
        ),
        Response(404),
        Response(503),
        CutRequest(),
    ],
)
def test_if_runpod_ends_its_spot_machines_the_others_are_still_offered(fake: FakeRunPod, end: Fault) -> None:
    fake.fail(end, times=100, **CREATE)
    found = spot(fake).offers(HARDWARE)
    assert found
    assert not any(each.spot for each in found)


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ("There are no longer any instances available with the requested specifications.", NoCapacity),
        ("There are no instances available with the request specifications", NoCapacity),
        (
            "This machine does not have the resources to deploy your pod. Please try a different machine",
            NoCapacity,
        ),
        ("There are not enough free GPUs on the host machine to start this pod.", NoCapacity),
        ("Your balance is too low to rent this pod.", NoFunds),
        ('Cannot query field "podRentInterruptable" on type "Mutation".', PermanentError),
        ("Something went wrong. Please try again later or contact support.", TemporaryError),
    ],
)
def test_a_refusal_in_an_answer_with_status_200_is_taken_as_it_is_meant(
    fake: FakeRunPod, message: str, error: type[ExternalError]
) -> None:
    pods = spot(fake)
    wanted = offer(pods)
    fake.fail(json_response({"errors": [{"message": message}], "data": None}), times=1, **CREATE)
    assert type(raised(lambda: pods.create(NAME, wanted, ONLY))) is error
    assert not fake.alive


def test_a_pod_whose_answer_was_lost_is_found_by_its_name(fake: FakeRunPod) -> None:
    pods = spot(fake)
    wanted = offer(pods)
    fake.fail(LoseResponse(), times=1, **CREATE)
    assert isinstance(raised(lambda: pods.create(NAME, wanted, ONLY)), TemporaryError)
    assert [each.name for each in pods.list()] == [NAME]


def test_a_run_on_a_spot_machine_that_was_taken_away_goes_on_elsewhere(
    fake: FakeRunPod, tmp_path: Path
) -> None:
    client, pushed = client_of(fake, clock=fake.now_s), Pushed(fake)
    pods = RunPodPods(client, pushed, mark=PodMark("11111111"), spot=True)
    days: RunPodDays = Days(fake, "runpod", world_of("runpod", pods, tmp_path), pushed)
    days.pass_by(300)
    assert days.is_training_alone()
    first = days.pod
    assert orders(fake)
    fake.end(first.id, Status.EXITED)
    days.pass_by(900)
    assert days.run().attempts[0].cause in (Cause.PREEMPTED, Cause.MACHINE_LOST)
    assert days.is_training_alone()
    assert first.deleted, "a pod that has exited would wake up again, and its disk is charged"
    assert days.most_alive == 1


@pytest.mark.parametrize(("text", "wanted"), [("", False), ("no", False), ("yes", True), (" YES ", True)])
def test_spot_machines_are_rented_where_the_setting_says_so(text: str, wanted: bool) -> None:
    assert read_settings({"RUNPOD_API_KEY": "rpa_x", "PRIME_TRAIN_RUNPOD_SPOT": text}).spot is wanted


def test_a_setting_that_is_neither_is_refused() -> None:
    error = raised(lambda: read_settings({"RUNPOD_API_KEY": "rpa_x", "PRIME_TRAIN_RUNPOD_SPOT": "cheap"}))
    assert "PRIME_TRAIN_RUNPOD_SPOT is 'cheap'; set it to yes" in str(error)
