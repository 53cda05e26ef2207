"""Each answer of a provider's fake names its source, or is listed as a belief."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from prime_train.errors import ExternalError
from prime_train.providers.lambda_cloud.client import LambdaClient
from prime_train.providers.lambda_cloud.settings import LambdaSettings
from prime_train.providers.rental.answers import known_answers, read_answers
from prime_train.providers.rental.rate_limit import RequestPace
from tests.fakes.answers import table_of
from tests.fakes.http import HttpFake, Route
from tests.fakes.lambda_cloud import FakeLambdaCloud
from tests.fakes.prime import FakePrime
from tests.fakes.runpod import FakeRunPod
from tests.fakes.vast import FakeVast

DATA = Path(__file__).parents[1] / "data"
FAKES: dict[str, type[HttpFake]] = {
    "lambda": FakeLambdaCloud,
    "runpod": FakeRunPod,
    "vast": FakeVast,
    "prime": FakePrime,
}
TABLE = """\
[sources]
page = "https://example.org"
[[answer]]
call = "GET /v1/pods"
status = [200]
says = "all pods"
source = "SOURCE"
"""


def example(fake: type[HttpFake], route: Route) -> str:
    return fake.prefix + re.sub(r"\{\w+(?::\w+)?\}", "17", route.template)


@pytest.mark.parametrize("name", FAKES)
def test_every_call_that_a_fake_answers_has_a_source_or_is_a_belief(name: str) -> None:
    fake = FAKES[name]
    routes: Sequence[Route] = fake.routes
    own = [
        answer
        for answer in table_of(name)
        if answer.method != "*" and any(status < 300 for status in answer.statuses)
    ]
    lacking = [
        f"{route.method} {route.template}"
        for route in routes
        if not any(answer.is_asked(route.method, example(fake, route), answer.asks) for answer in own)
    ]
    assert lacking == []


@pytest.mark.parametrize("name", ["lambda", "runpod", "vast"])
def test_what_is_said_to_be_described_is_described(name: str) -> None:
    paths = json.loads((DATA / name / "openapi.json").read_text())["paths"]
    described = {
        (method.upper(), re.sub(r"\{\w+\}", "{id}", path).rstrip("/")): set(call["responses"])
        for path, calls in paths.items()
        for method, call in calls.items()
        if isinstance(call, dict) and "responses" in call
    }
    wrong = [
        (answer.call, status)
        for answer in known_answers(name)
        if "OpenAPI" in answer.source or "spec.json" in answer.source
        if answer.method != "*"
        for status in answer.statuses
        if not {str(status), "default"} & described.get((answer.method, answer.path.rstrip("/")), set())
    ]
    assert wrong == []


def test_a_source_that_is_not_explained_is_refused() -> None:
    assert read_answers(TABLE.replace("SOURCE", "page"))[0].source == "https://example.org"
    assert read_answers(TABLE.replace("SOURCE", "belief"))[0].is_belief
    with pytest.raises(ValueError, match="'hearsay'"):
        read_answers(TABLE.replace("SOURCE", "hearsay"))


def test_a_fake_that_answers_what_its_table_lacks_is_told() -> None:
    class Surprising(FakeLambdaCloud):
        table = tuple(answer for answer in table_of("lambda") if 401 not in answer.statuses)

    with Surprising() as fake:
        with pytest.raises(ExternalError):
            LambdaClient(
                LambdaSettings("another-key", fake.url), pace=RequestPace("Lambda Cloud", {})
            ).instance_types()
        assert "in no table" in fake.violations[0]
