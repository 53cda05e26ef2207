"""A server whose every request and response is checked against the published description of its API."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from prime_train.providers.answers.known import KnownAnswer
from tests.fakes.answers import has_answer
from tests.fakes.http import HttpFake, Refusal, Request, Response, json_response
from tests.fakes.http.routes import Route
from tests.fakes.openapi.description import Description

NOT_IN_TABLE = "this answer is in no table, and so nobody says where it is known from"
OUTSIDE = 599
"""The status of a request or response outside of the description."""


class DescribedFake(HttpFake):
    """A fake of a documented API. The templates of its `routes` are the paths of the description, apart from
    the kinds of their parameters.

    Handlers return what they know of a response; required fields that they do not know are filled in.
    Requests and responses outside of the description are answered 599 and recorded in `violations`; a test
    asserts that there are none. Responses of faults (`fail`) are not checked.
    """

    description: Description
    table: Sequence[KnownAnswer] = ()
    """All answers that the fake has, each with its source; if it is empty, they are not compared with it."""
    is_checked = True
    """Whether requests and responses are checked, which takes most of the time; a test of thousands of calls,
    which others make too, sets it to False.
    """

    def __init__(self, *, port: int = 0) -> None:
        super().__init__(port=port)
        self._violations: list[str] = []

    @property
    def violations(self) -> list[str]:
        """Return what was outside of the description."""
        with self.lock:
            return list(self._violations)

    def dispatch(self, route: Route, request: Request) -> Response:
        """Check the request, let the route handle it, and check the response, also one that refuses the
        request.
        """
        template, what = re.sub(r":\w+}", "}", route.template), f"{request.method} {request.path}"
        described = self.description.sent(
            request.method, template, request.params, request.query, request.body
        )
        faults = self.description.request_faults(described, template) if self.is_checked else []
        if faults:
            refused = self.refuse_outside(faults)
            return self._outside([f"{what}: {fault}" for fault in faults]) if refused is None else refused
        try:
            content = self.handled(route, request)
            response = content if isinstance(content, Response) else self._written(request, template, content)
        except Refusal as refusal:
            response = refusal.response
        response = self.finished(request, response)
        faults = self.description.answer_faults(described, template, response) if self.is_checked else []
        faults += (
            [NOT_IN_TABLE]
            if self.is_checked and self.table and not has_answer(self.table, request, response)
            else []
        )
        return (
            self._outside([f"{what} was answered {response.status}: {fault}" for fault in faults])
            if faults
            else response
        )

    def handled(self, route: Route, request: Request) -> object:
        """Call the route's handler; override this for checks that precede all of them, such as that of the
        key.
        """
        return route.handler(self, request)

    def finished(self, request: Request, response: Response) -> Response:
        """Return the response with what all responses have, such as headers that tell the limits."""
        return response

    def refuse_outside(self, faults: list[str]) -> Response | None:
        """Return how the API itself refuses a request that its description forbids; None records it as a
        violation, because no client of ours should send one. Override this in tests of such refusals.
        """
        return None

    def no_route(self, request: Request) -> Response:
        return self._outside(
            [f"{request.method} {request.path}: the description that the fake has knows no such call"]
        )

    def _written(self, request: Request, template: str, content: Any) -> Response:
        """Return the response of the first status below 300 that is described."""
        statuses = [
            int(status)
            for status in self.description.operation(request.method, template)["responses"]
            if status.startswith("2")
        ]
        status = min(statuses, default=200)
        if content is None:
            return Response(status)
        return replace(
            json_response(self.description.filled(request.method, template, status, content)), status=status
        )

    def _outside(self, violations: list[str]) -> Response:
        self._violations += violations
        return json_response({"error": "; ".join(violations)}, OUTSIDE)
