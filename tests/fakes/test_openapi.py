"""A description that was cut checks as much as the complete one, and the fakes that use it find what is
wrong.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, ClassVar

import pytest
import requests

from tests.fakes.github.extract import EVENTS, extract_schemas
from tests.fakes.github.routes import OPERATIONS
from tests.fakes.github.schemas import webhooks
from tests.fakes.http import Refusal, Request, Response, json_response
from tests.fakes.http.routes import Route
from tests.fakes.kubernetes import FakeKubernetes
from tests.fakes.kubernetes.__main__ import EXPORTED
from tests.fakes.lambda_cloud import FakeLambdaCloud
from tests.fakes.openapi import OUTSIDE, DescribedFake, Description
from tests.fakes.openapi.cut import cut
from tests.fakes.runpod import FakeRunPod
from tests.fakes.vast import FakeVast

ROOT = Path(__file__).resolve().parents[2]
COMPLETE = """
openapi: 3.1.0
info: {title: Acme, version: "7", description: long prose}
servers: [{url: https://acme.example}]
security: [{bearer: []}]
paths:
  /v2/boxes:
    get:
      summary: prose
      parameters: [{name: count, in: query, schema: {type: integer, minimum: 1}}]
      responses:
        "200": {description: prose, content: {application/json: {schema: {type: array, items: {$ref: "#/components/schemas/Box"}}}}}
    post:
      requestBody:
        required: true
        content: {application/json: {schema: {$ref: "#/components/schemas/NewBox"}}}
      responses:
        "201": {description: made, content: {application/json: {schema: {$ref: "#/components/schemas/Box"}}}}
        default: {$ref: "#/components/responses/Problem"}
  /v2/boxes/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    delete:
      responses: {"204": {description: gone}}
  /v2/unused:
    get: {responses: {"200": {description: never asked, content: {application/json: {schema: {$ref: "#/components/schemas/Unused"}}}}}}
components:
  securitySchemes: {bearer: {type: http, scheme: bearer}}
  responses:
    Problem: {description: refused, content: {application/problem+json: {schema: {type: object, required: [title]}}}}
  schemas:
    Unused: {type: object}
    Place: {type: object, properties: {city: {type: string}}}
    NewBox:
      allOf:
        - {type: object, required: [name], properties: {name: {type: string, minLength: 1, examples: [a]}}}
        - {type: object, properties: {place: {$ref: "#/components/schemas/Place"}, title: {type: object, default: {title: kept}}}}
        - {type: object, properties: {labels: {type: array, items: {type: object, properties: {key: {type: string}}}}}}
    Box:
      allOf:
        - {$ref: "#/components/schemas/NewBox"}
        - type: object
          required: [id, status, note, since, sides]
          properties:
            id: {type: string}
            status: {type: string, enum: [UP, DOWN]}
            note: {type: [string, "null"]}
            since: {type: string, format: date-time}
            sides: {type: array, minItems: 2, items: {type: integer, minimum: 3}}
"""
DESCRIBED: dict[str, type[DescribedFake]] = {
    "kubernetes": FakeKubernetes,
    "lambda": FakeLambdaCloud,
    "runpod": FakeRunPod,
    "vast": FakeVast,
}
CUTS: dict[str, tuple[set[tuple[str, str]], tuple[str, ...]]] = {
    "github": (set(OPERATIONS), ("basic-error",)),
    **{
        name: (
            {(route.method, re.sub(r":\w+}", "}", route.template)) for route in fake.routes},
            EXPORTED if name == "kubernetes" else (),
        )
        for name, fake in DESCRIBED.items()
    },
}
"""The calls of the fakes of documented APIs, and schemas that are kept though no call refers to them; by
folders below tests/data.
"""
CALLS = ("GET /v2/boxes", "POST /v2/boxes", "DELETE /v2/boxes/{id}")


@pytest.fixture(scope="module", name="acme")
def _acme(tmp_path_factory: pytest.TempPathFactory) -> Description:
    folder = tmp_path_factory.mktemp("acme")
    (folder / "acme.yaml").write_text(COMPLETE)
    origin = ("--from", "https://acme.example/openapi.yaml", "--date", "2026-11-22")
    arguments = (str(folder / "acme.yaml"), str(folder / "cut" / "openapi.json"), *origin, *CALLS)
    subprocess.run([sys.executable, "-m", "tests.fakes.openapi", *arguments], check=True, cwd=ROOT)
    return Description(folder / "cut" / "openapi.json", "Acme", is_usual_error=lambda body: "title" in body)


def _answer(fake: "_Boxes", request: Request) -> object:
    content = fake.answers[request.method]
    if isinstance(content, Response):
        raise Refusal(content)
    return content


class _Boxes(DescribedFake):
    answers: ClassVar[dict[str, Any]] = {}
    routes = tuple(Route(call.split()[0], call.split()[1], _answer) for call in CALLS)


@pytest.fixture(name="boxes")
def _boxes(acme: Description) -> Iterator[_Boxes]:
    with _Boxes() as boxes:
        boxes.description = acme
        yield boxes


def test_a_cut_names_its_source_and_has_nothing_that_is_not_used(acme: Description) -> None:
    assert acme.complete["info"] == {
        "title": "Acme",
        "version": "7",
        "x-source": "https://acme.example/openapi.yaml",
        "x-read": "2026-11-22",
    }
    assert acme.operations == {("GET", "/v2/boxes"), ("POST", "/v2/boxes"), ("DELETE", "/v2/boxes/{id}")}
    assert sorted(acme.complete["components"]["schemas"]) == ["Box", "NewBox", "Place"]
    assert "prose" not in json.dumps(acme.complete)
    title = acme.complete["components"]["schemas"]["NewBox"]["allOf"][1]["properties"]["title"]
    assert title == {"type": "object", "default": {"title": "kept"}}


def test_every_description_is_of_a_fake() -> None:
    assert {path.parent.name for path in (ROOT / "tests" / "data").glob("*/openapi.json")} == set(CUTS)


@pytest.mark.parametrize("name", CUTS)
def test_a_description_says_where_and_when_it_was_read_and_has_only_the_calls_of_its_fake(name: str) -> None:
    """What a cut of it would leave out, such as prose and schemas that no call refers to, is not there."""
    complete = json.loads((ROOT / "tests" / "data" / name / "openapi.json").read_text(encoding="utf-8"))
    calls, schemas = CUTS[name]
    assert complete["info"]["x-source"]
    assert date.fromisoformat(complete["info"]["x-read"]) >= date(2026, 1, 1)
    assert cut(complete, sorted(calls, key=lambda call: call[1]), complete["info"], schemas) == complete


def test_the_description_of_githubs_events_says_where_and_when_it_was_read_and_has_only_the_events_of_its_fake() -> (
    None
):
    complete = webhooks()
    read_on = complete["$comment"].rpartition(" read on ")[2]
    assert date.fromisoformat(read_on) >= date(2026, 1, 1)
    assert {"$comment": complete["$comment"]} | extract_schemas(complete, EVENTS) == complete


@pytest.mark.parametrize(
    ("method", "path", "body", "why"),
    [
        ("GET", "/v2/boxes?count=0", None, "minimum"),
        ("GET", "/v2/boxes?counted=1", None, "'counted', which Acme does not know"),
        ("POST", "/v2/boxes", {}, "'name' is a required property"),
        ("POST", "/v2/boxes", {"name": ""}, "should be non-empty"),
        ("POST", "/v2/boxes", {"name": "a", "nam": "b"}, "the body has 'nam', which Acme does not know"),
        (
            "POST",
            "/v2/boxes",
            {"name": "a", "place": {"town": "b"}},
            "the body has 'place.town', which Acme does not know",
        ),
        (
            "POST",
            "/v2/boxes",
            {"name": "a", "labels": [{"key": "b"}, {"kye": "b"}]},
            "the body has 'labels[1].kye'",
        ),
        ("DELETE", "/v2/boxes/1", {"now": True}, "there is a body where none is wanted"),
        ("GET", "/v2/unused", None, "no such call"),
    ],
)
def test_a_request_outside_of_the_description_is_a_violation(
    boxes: _Boxes, method: str, path: str, body: object, why: str
) -> None:
    refused = requests.request(method, boxes.url + path, json=body, timeout=60)
    assert refused.status_code == OUTSIDE
    assert len(boxes.violations) == 1
    assert why in boxes.violations[0]


@pytest.mark.parametrize(
    ("method", "answer", "why"),
    [
        ("GET", [{"status": "SIDEWAYS"}], "'SIDEWAYS' is not one of"),
        ("POST", {"id": 5}, "5 is not of type 'string'"),
        (
            "POST",
            Response(409, b'{"detail": "no"}', "application/problem+json"),
            "'title' is a required property",
        ),
        ("DELETE", json_response({"detail": "no"}, 404), "404 without Acme's usual error"),
        ("DELETE", json_response({}, 202), "202 is not described"),
    ],
)
def test_a_response_outside_of_the_description_is_a_violation(
    boxes: _Boxes, monkeypatch: pytest.MonkeyPatch, method: str, answer: object, why: str
) -> None:
    monkeypatch.setattr(_Boxes, "answers", {method: answer})
    path = "/v2/boxes/1" if method == "DELETE" else "/v2/boxes"
    refused = requests.request(
        method, boxes.url + path, json={"name": "a"} if method == "POST" else None, timeout=60
    )
    assert refused.status_code == OUTSIDE
    assert why in boxes.violations[0]


def test_what_a_fake_does_not_know_is_filled_in_and_what_is_right_passes(
    boxes: _Boxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = Response(409, b'{"title": "Conflict"}', "application/problem+json")
    monkeypatch.setattr(_Boxes, "answers", {"POST": {"id": "1", "name": "a"}, "DELETE": None, "GET": []})
    made = requests.post(f"{boxes.url}/v2/boxes", json={"name": "a"}, timeout=60)
    assert (made.status_code, made.json()["status"], made.json()["note"], made.json()["sides"]) == (
        201,
        "UP",
        None,
        [3, 3],
    )
    assert requests.delete(f"{boxes.url}/v2/boxes/1", timeout=60).status_code == 204
    assert requests.get(f"{boxes.url}/v2/boxes?count=2", timeout=60).json() == []
    monkeypatch.setattr(_Boxes, "answers", {"POST": refusal})
    assert requests.post(f"{boxes.url}/v2/boxes", json={"name": "a"}, timeout=60).status_code == 409
    assert boxes.violations == []
