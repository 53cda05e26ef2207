"""From a request to its response: the description, the token, the limits, the permission, then the table of
routes.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from tests.fakes.github.limits import Purse
from tests.fakes.github.messages import Call, Page, Reply, Result
from tests.fakes.github.refusals import OUTSIDE, Refused, not_found, problem
from tests.fakes.github.repos import ROLES, Repo
from tests.fakes.github.routes import ROUTES, GitHubRoute
from tests.fakes.github.schemas import DESCRIPTION
from tests.fakes.github.tokens import Kind, Token
from tests.fakes.github.world import World
from tests.fakes.http import Request, Response

VERSIONS = ("2022-11-28", "2026-03-10")
PER_PAGE = 30
PER_PAGE_MAX = 100


class Responder:
    """Answers requests. `violations`: requests and responses outside of GitHub's description of its API."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.violations: list[str] = []

    def answer(self, request: Request) -> Response:
        """Carry out a request, and return the response."""
        what = f"{request.method} {request.path}"
        found = next(
            (
                (route, params)
                for route in ROUTES
                if (params := route.match_request(request.method, request.path)) is not None
            ),
            None,
        )
        if found is None:
            return self._outside([f"{what}: the description that the fake has knows no such path"])
        route, request.params = found
        path = route.described_path
        described = DESCRIPTION.sent(request.method, path, request.params, request.query, request.body)
        faults = DESCRIPTION.request_faults(described, path)
        if faults:
            return self._outside([f"{what}: {fault}" for fault in faults])
        response = self._handled(route, request)
        is_json = "json" in response.content_type and "raw" not in response.content_type
        faults = DESCRIPTION.answer_faults(described, path, response) if is_json else []
        return (
            self._outside([f"{what} was answered {response.status}: {fault}" for fault in faults])
            if faults
            else response
        )

    def _outside(self, violations: list[str]) -> Response:
        self.violations += violations
        return problem(OUTSIDE, "; ".join(violations))

    def _handled(self, route: GitHubRoute, request: Request) -> Response:
        world, purse = self._world, None
        try:
            _check_headers(request)
            token = None if route.by_app else _token(world, request)
            purse = world.limits.purse(token, world.now_s(), by_app=route.by_app)
            if route.template != "/rate_limit":
                world.limits.take(purse, request.method, world.now_s(), content=route.content)
            repo = None if route.by_app else _repo(world, route, request.params, token)
            response = _with_scopes(
                _written(world, route, request, route.handler(world, Call(request, token, repo))), token
            )
        except Refused as refused:
            response = refused.response
        return _unless_unchanged(request, response, purse)


def _check_headers(request: Request) -> None:
    if not request.headers.get("user-agent"):
        raise Refused(
            403,
            "Request forbidden by administrative rules. Please make sure your request has a User-Agent "
            "header.",
        )
    version = request.headers.get("x-github-api-version", VERSIONS[0])
    if version not in VERSIONS:
        raise Refused(400, f"{version} is not a supported version.")


def _token(world: World, request: Request) -> Token | None:
    """Return the request's token; None if it has none."""
    kind, _, value = request.headers.get("authorization", "").partition(" ")
    if not kind:
        return None
    token = world.tokens.get(value.strip()) if kind.lower() in ("bearer", "token") else None
    if token is None or world.now_s() >= token.expires_s:
        raise Refused(401, "Bad credentials")
    return token


def _repo(world: World, route: GitHubRoute, params: Mapping[str, Any], token: Token | None) -> Repo | None:
    """Return the repository of the path, if the token may do this there. Others do not learn whether a
    private one exists.
    """
    if "repo" not in params:
        return None
    repo = world.repo(params["owner"], params["repo"])
    reads = route.method == "GET" and not repo.is_private
    if token is None:
        if not reads:
            raise not_found() if repo.is_private else Refused(401, "Requires authentication")
        return repo
    within = token.repos is None or repo.full_name in token.repos
    role = repo.role(token.login) if token.kind is Kind.PERSON else "admin"
    if repo.is_private and (not within or role == "none"):
        raise not_found()
    allowed = within and token.may_any(route.needs) and ROLES.index(role) >= ROLES.index(route.role_wanted)
    if not allowed and not (reads and not route.role):
        accepted = "; ".join(f"{name}={level}" for name, level in route.needs)
        raise Refused(
            403,
            f"Resource not accessible by {token.whom}",
            headers={"x-accepted-github-permissions": accepted},
        )
    return repo


def _written(world: World, route: GitHubRoute, request: Request, result: Result) -> Response:
    """Return the response with everything that GitHub adds; for a list, the requested page."""
    headers: dict[str, str] = {}
    reply = result if isinstance(result, Reply) else Reply(200)
    if isinstance(reply.content, bytes):
        return Response(reply.status, reply.content, "application/vnd.github.raw+json; charset=utf-8")
    content = result if isinstance(result, dict) else reply.content
    if isinstance(result, Page):
        content, headers = _page(world, route, request, result)
    if content is None:
        return Response(reply.status)
    full = DESCRIPTION.filled(route.method, route.described_path, reply.status, content)
    return Response(reply.status, json.dumps(full).encode(), "application/json; charset=utf-8", headers)


def _with_scopes(response: Response, token: Token | None) -> Response:
    """Return the response with the scopes that the token has; tokens with permissions have none."""
    if token is None or token.scopes is None:
        return response
    return replace(response, headers={**response.headers, "X-OAuth-Scopes": ", ".join(sorted(token.scopes))})


def _page(world: World, route: GitHubRoute, request: Request, page: Page) -> tuple[object, dict[str, str]]:
    """Return a page of the list, with links to the other pages."""
    if not DESCRIPTION.takes(route.method, route.described_path, "per_page"):
        return list(page.items), {}
    per_page = min(max(int(request.query.get("per_page", PER_PAGE)), 1), PER_PAGE_MAX)
    number, last = max(int(request.query.get("page", 1)), 1), max(1, -(-len(page.items) // per_page))
    part = list(page.items[(number - 1) * per_page : number * per_page])
    links = {"prev": number - 1, "next": number + 1, "last": last, "first": 1}
    present = [
        name
        for name in links
        if (name in ("prev", "first") and number > 1) or (name in ("next", "last") and number < last)
    ]
    urls = {
        name: f"{world.url}{request.path}?{urlencode({**request.query, 'page': links[name]})}"
        for name in present
    }
    headers = {"Link": ", ".join(f'<{url}>; rel="{name}"' for name, url in urls.items())} if urls else {}
    return ({"total_count": len(page.items), page.under: part} if page.under else part), headers


def _unless_unchanged(request: Request, response: Response, purse: Purse | None) -> Response:
    """Return "not modified" if nothing has changed, which does not count towards the hour's requests."""
    headers = dict(response.headers)
    if request.method == "GET" and response.status == 200:
        headers["ETag"] = f'W/"{hashlib.sha256(response.body).hexdigest()}"'
        if purse and request.headers.get("if-none-match", "").removeprefix("W/") == headers[
            "ETag"
        ].removeprefix("W/"):
            purse.used -= 1
            return Response(304, headers=headers | purse.headers())
    return replace(response, headers=headers | (purse.headers() if purse else {}))
