"""What holds for a pod at every rental API, whatever the provider calls it."""

from pathlib import Path
from typing import Any

import pytest

from prime_train.errors import NoCapacity, PermanentError
from tests.adapters.rental_apis.cases import Api
from tests.adapters.rental_apis.shared import NAME, first, raised
from tests.builders import is_gone
from tests.fakes.http import ALWAYS, Response


@pytest.mark.parametrize("pod_id", ["../account/ssh-keys", "a/b", "a?b", "", "x" * 129, "-x", "a b", "a%2fb"])
def test_no_id_becomes_a_part_of_a_url_that_it_must_not(
    api: Api, fake: Any, pod_id: str, tmp_path: Path
) -> None:
    pods = api.pods(fake, tmp_path, owner=None)
    assert is_gone(pods.get(pod_id))
    assert pods.connection(pod_id) is None
    pods.terminate(pod_id)
    assert not fake.requests


@pytest.mark.parametrize(
    "answer", [Response(404, b"<html>no route</html>"), Response(404, b'{"message": "no"}'), Response(301)]
)
def test_a_404_that_is_not_the_providers_own_proves_nothing_gone(
    api: Api, fake: Any, answer: Response, tmp_path: Path
) -> None:
    pods = api.pods(fake, tmp_path)
    pod = pods.create(NAME, first(pods, api.hardware), api.hardware)
    fake.fail(answer, path=api.one(pod.pod_id), times=ALWAYS)
    raised(lambda: pods.get(pod.pod_id))
    raised(lambda: pods.connection(pod.pod_id))


def test_an_offer_of_another_process_is_looked_up_again(api: Api, fake: Any, tmp_path: Path) -> None:
    offer = first(api.pods(fake, tmp_path), api.hardware)
    assert api.pods(fake, tmp_path).create(NAME, offer, api.hardware).name == NAME
    assert len(fake.alive) == 1


def test_a_machine_that_costs_more_than_the_run_allows_is_not_ordered(
    api: Api, fake: Any, tmp_path: Path
) -> None:
    offer = first(api.pods(fake, tmp_path), api.hardware)
    hardware = api.hardware.model_copy(update={"usd_per_hour_max": offer.usd_per_hour / 2})
    error = raised(lambda: api.pods(fake, tmp_path).create(NAME, offer, hardware))
    assert isinstance(error, NoCapacity)
    assert "above hardware.usd_per_hour_max" in str(error)
    assert not fake.alive


def test_a_control_plane_that_machines_cannot_reach_rents_nothing(
    api: Api, fake: Any, tmp_path: Path
) -> None:
    pods = api.pods(fake, tmp_path, closed="rented machines could not reach the bucket")
    error = raised(lambda: pods.offers(api.hardware))
    assert isinstance(error, PermanentError)
    assert "could not reach the bucket" in str(error)
