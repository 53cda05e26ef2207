"""Checks requests and responses against GitHub's published description of its API."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote

from openapi_core import Config, OpenAPI
from openapi_core.datatypes import RequestParameters
from openapi_core.exceptions import OpenAPIError
from werkzeug.datastructures import ImmutableMultiDict

from tests.fakes.github.schemas import openapi, resolved
from tests.fakes.http import Response

JSON = "application/json"
HOST = "https://api.github.com"
WORDS_MAX = 300
"""Maximum length of one error, which contains the complete wrong value and then the reason."""


@dataclass
class Sent:
    """A request in the form that the checker needs: `path` is its template with the found values."""

    method: str
    path: str
    body: bytes | None
    parameters: RequestParameters
    host_url: str = HOST
    content_type: str = JSON


@dataclass
class Got:
    status_code: int
    data: bytes
    headers: Mapping[str, Any]
    content_type: str = JSON


@cache
def _checker() -> OpenAPI:
    # That the description itself is right was seen when it was cut out; to see it again takes seconds.
    unseen = Config(spec_validator_cls=None)  # type: ignore[arg-type]  # None is what openapi-core itself asks for; its annotation lags
    return OpenAPI.from_dict(openapi(), config=unseen)


def sent(method: str, template: str, params: Mapping[str, object], query: Mapping[str, str], body: bytes) -> Sent:
    path = template.format_map({name: quote(str(value), safe="") for name, value in params.items()})
    return Sent(method.lower(), path, body or None, RequestParameters(query=ImmutableMultiDict(query)))


def operation(method: str, template: str) -> dict[str, Any]:
    return dict(openapi()["paths"][template][method.lower()])


def takes(method: str, template: str, name: str) -> bool:
    """Return whether the query may have this parameter."""
    return name in _queries(operation(method, template))


def answer_schema(method: str, template: str, status: int) -> dict[str, Any]:
    response = operation(method, template)["responses"].get(str(status), {})
    return dict(resolved(openapi(), response).get("content", {}).get(JSON, {}).get("schema", {}))


def request_faults(request: Sent, template: str) -> list[str]:
    """Return what is wrong with the request, including what GitHub would silently ignore."""
    try:
        _checker().validate_request(request)
    except OpenAPIError as error:
        return [_reported(error)]
    return list(_overlooked(request, operation(request.method, template)))


def answer_faults(request: Sent, template: str, response: Response) -> list[str]:
    """Return what is wrong with the response. Errors that are not described must have GitHub's usual form, or one of several forms that
    include each other."""
    statuses = operation(request.method, template)["responses"]
    alike = response.status >= 400 and "oneOf" in answer_schema(request.method, template, response.status)
    got = Got(response.status, response.body, response.headers)
    try:
        if str(response.status) in statuses and not alike:
            _checker().validate_response(request, got)
        elif response.status == 304:
            return []
        elif response.status < 400:
            return [f"an answer {response.status} is not described"]
        elif "message" not in json.loads(response.body):
            return [f"an answer {response.status} without a message"]
    except OpenAPIError as error:
        return [_reported(error)]
    return []


def _overlooked(request: Sent, described: Mapping[str, Any]) -> Iterator[str]:
    for name in request.parameters.query:
        if name not in _queries(described):
            yield f"the query has {name!r}, which GitHub does not know"
    schema = resolved(openapi(), described.get("requestBody", {}).get("content", {}).get(JSON, {}).get("schema", {}))
    if request.body and "properties" in schema and not {"additionalProperties", "oneOf", "anyOf"} & schema.keys():
        for name in json.loads(request.body).keys() - schema["properties"].keys():
            yield f"the body has {name!r}, which GitHub does not know"
    if request.body and "requestBody" not in described:
        yield "there is a body where none is wanted"


def _queries(described: Mapping[str, Any]) -> set[str]:
    parameters = [resolved(openapi(), each) for each in described.get("parameters", ())]
    return {each["name"] for each in parameters if each["in"] == "query"}


def _reported(error: OpenAPIError) -> str:
    """Return the error's message with those of the nested errors, because the outer error only says that there is one."""
    words, below = [str(error)[:WORDS_MAX]], error.__cause__
    while below is not None:
        found = [f"{each.json_path}: {each.message[-WORDS_MAX:]}" for each in getattr(below, "schema_errors", ())]
        words += found or [str(below)[:WORDS_MAX]]
        below = below.__cause__
    return "; ".join(words)
