"""Checks requests and responses against the published description of an API."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from openapi_core import Config, OpenAPI
from openapi_core.datatypes import RequestParameters
from openapi_core.exceptions import OpenAPIError
from werkzeug.datastructures import ImmutableMultiDict

from tests.fakes.http import Response
from tests.fakes.openapi.schemas import Filler, Json, resolved, unknown

JSON = "application/json"
PROBLEM = "application/problem+json"
HOST = "https://api.example.com"
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
class Received:
    """A response in the form that the checker needs."""

    status_code: int
    data: bytes
    headers: Mapping[str, Any]
    content_type: str = JSON


class Description:
    """The description in the file `path`. `whose`: the name of the API's owner, for messages.
    `is_usual_error`: whether the body of an error that is not described has the form of this API's errors.
    """

    def __init__(self, path: Path, whose: str, is_usual_error: Callable[[Json], object]) -> None:
        self._path = path
        self._whose = whose
        self._is_usual_error = is_usual_error

    @cached_property
    def complete(self) -> Json:
        """Return the whole description."""
        return dict(json.loads(self._path.read_text(encoding="utf-8")))

    @cached_property
    def _checker(self) -> OpenAPI:
        # That the description itself is right was checked when it was cut; to check it again takes seconds.
        unseen = Config(
            spec_validator_cls=None,  # type: ignore[arg-type]  # None is what openapi-core itself asks for; its annotation lags
            extra_media_type_deserializers={PROBLEM: json.loads},
        )
        # Servers are left out, because a path is matched without the name of its host.
        return OpenAPI.from_dict(
            {name: value for name, value in self.complete.items() if name != "servers"}, config=unseen
        )

    @property
    def operations(self) -> set[tuple[str, str]]:
        """Return method and path of every call."""
        verbs = ("get", "put", "post", "patch", "delete", "head", "options")
        return {
            (method.upper(), path)
            for path, item in self.complete["paths"].items()
            for method in item
            if method in verbs
        }

    def operation(self, method: str, template: str) -> Json:
        """Return the description of a call, with the parameters that all calls of its path share."""
        item = self.complete["paths"][template]
        found: Json = item[method.lower()]
        return {**found, "parameters": [*item.get("parameters", ()), *found.get("parameters", ())]}

    def takes(self, method: str, template: str, name: str) -> bool:
        """Return whether the query may have this parameter."""
        return name in self._queries(self.operation(method, template))

    def answer_schema(self, method: str, template: str, status: int) -> Json:
        """Return the schema of the body; empty if there is none in JSON."""
        found = self._answer_content(method, template, status)
        return dict(next((each.get("schema", {}) for kind, each in found.items() if "json" in kind), {}))

    def filled(self, method: str, template: str, status: int, known: Any) -> Any:
        """Return the body `known` with everything that the description requires of such a response, and
        without what it does not allow.
        """
        return Filler(self.complete).filled(self.answer_schema(method, template, status), known)

    # --------------------------------------------------------------------------------------------------------
    # checks

    def sent(
        self, method: str, template: str, params: Mapping[str, object], query: Mapping[str, str], body: bytes
    ) -> Sent:
        """Return the request in the form that the checks need. `params`: the values in the path."""
        path = template.format_map({name: quote(str(value), safe="") for name, value in params.items()})
        return Sent(method.lower(), path, body or None, RequestParameters(query=ImmutableMultiDict(query)))

    def request_faults(self, request: Sent, template: str) -> list[str]:
        """Return what is wrong with the request, including what the API would silently ignore."""
        try:
            self._checker.validate_request(request)
        except OpenAPIError as error:
            return [_reported(error)]
        return list(self._overlooked(request, self.operation(request.method, template)))

    def answer_faults(self, request: Sent, template: str, response: Response) -> list[str]:
        """Return what is wrong with the response. Errors that are not described must have the API's usual
        form, or one of several forms that include each other.
        """
        statuses = self.operation(request.method, template)["responses"]
        alike = response.status >= 400 and "oneOf" in self.answer_schema(
            request.method, template, response.status
        )
        described = str(response.status) in statuses or "default" in statuses
        kind = response.content_type.partition(";")[0].strip()
        received = Received(response.status, response.body, response.headers, kind)
        try:
            if described and not alike:
                self._checker.validate_response(request, received)
            elif response.status == 304:
                return []
            elif response.status < 400:
                return [f"an answer {response.status} is not described"]
            elif not self._is_usual_error(json.loads(response.body)):
                return [f"an answer {response.status} without {self._whose}'s usual error"]
        except OpenAPIError as error:
            return [_reported(error)]
        return []

    def _answer_content(self, method: str, template: str, status: int) -> Json:
        responses = self.operation(method, template)["responses"]
        found = responses.get(str(status), responses.get("default", {}))
        return dict(resolved(self.complete, found).get("content", {}))

    def _overlooked(self, request: Sent, described: Json) -> Iterator[str]:
        for name in request.parameters.query:
            if name not in self._queries(described):
                yield f"the query has {name!r}, which {self._whose} does not know"
        schema = described.get("requestBody", {}).get("content", {}).get(JSON, {}).get("schema", {})
        if request.body and "requestBody" not in described:
            yield "there is a body where none is wanted"
        elif request.body:
            for path in unknown(self.complete, schema, json.loads(request.body)):
                yield f"the body has {path!r}, which {self._whose} does not know"

    def _queries(self, described: Json) -> set[str]:
        parameters = [resolved(self.complete, each) for each in described["parameters"]]
        return {each["name"] for each in parameters if each["in"] == "query"}


def _reported(error: OpenAPIError) -> str:
    """Return the error's message with those of the nested errors, because the outer error only says that
    there is one.
    """
    words, below = [str(error)[:WORDS_MAX]], error.__cause__
    while below is not None:
        found = [
            f"{each.json_path}: {each.message[-WORDS_MAX:]}" for each in getattr(below, "schema_errors", ())
        ]
        words += found or [str(below)[:WORDS_MAX]]
        below = below.__cause__
    return "; ".join(words)
