"""From a request to its answer: the path, the key, then the table of routes; and every refusal in Prime's words."""

import json
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

from pydantic import ValidationError

from tests.fakes.prime.accounts import ApiKey
from tests.fakes.prime.faults import Answer, detail
from tests.fakes.prime.queries import Asked
from tests.fakes.prime.refusals import Refused, invalid
from tests.fakes.prime.routes import ROUTES, Route, canonical
from tests.fakes.prime.world import World

PREFIX = "/api/v1"


@dataclass
class Request:
    """What a client sent, and what it was told; `status` is 0 where it was told nothing. `path` is without /api/v1 and the query."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes
    status: int = 0

    @property
    def json(self) -> object:
        return json.loads(self.body) if self.body else None


@dataclass(frozen=True)
class Target:
    """`method` and `target` as they came; names of headers in lower case."""

    method: str
    target: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    def request(self) -> Request:
        at = urlsplit(self.target)
        return Request(self.method, at.path.removeprefix(PREFIX), parse_qs(at.query), self.headers, self.body)


def elsewhere(target: str, host: str) -> Answer | None:
    """The redirect to the canonical path, the answer that there is none, or None where the path is right."""
    at = urlsplit(target)
    wanted = canonical(at.path.removeprefix(PREFIX)) if at.path.startswith(PREFIX) else None
    if wanted is None:
        return detail(404, "Not Found")
    if PREFIX + wanted == at.path:
        return None
    return Answer(307, headers={"Location": f"http://{host}{PREFIX}{wanted}" + (f"?{at.query}" if at.query else "")})


def answer(world: World, request: Request) -> Answer:
    """Does what is asked."""
    try:
        route, found = _route(request)
        key = _key(world, request, route)
        told = route.answer(world, Asked(request.query, request.body, key, found))
    except Refused as refused:
        return detail(refused.status, refused.detail)
    except ValidationError as error:
        return Answer(422, json.dumps(invalid(error, world.terms.invalid_form)).encode())
    return Answer(200, json.dumps(told).encode())


def _route(request: Request) -> tuple[Route, str]:
    """The route and the id in the path."""
    for route in ROUTES:
        match = route.match(request.path)
        if match is not None and route.method == request.method:
            return route, match[1] if match.groups() else ""
    raise Refused(405, "Method Not Allowed")


def _key(world: World, request: Request, route: Route) -> ApiKey:
    kind, _, value = request.headers.get("authorization", "").partition(" ")
    key = world.api_keys.get(value) if kind.lower() == "bearer" else None
    if key is None:
        raise Refused(world.terms.bad_key_status, "Could not validate credentials")
    if not key.may(route.permission, route.deed):
        raise Refused(world.terms.no_scope_status, f"API key lacks the permission {route.permission}:{route.deed}")
    return key
