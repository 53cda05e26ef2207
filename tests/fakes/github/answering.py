"""From a request to its answer: the description, the key, the limits, the permission, then the table of routes."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlencode

from tests.fakes.github.asked import Answered, Asked, Page, Told
from tests.fakes.github.contract import answer_faults, answer_schema, request_faults, sent, takes
from tests.fakes.github.described import openapi
from tests.fakes.github.filling import Filler
from tests.fakes.github.http_front import Target
from tests.fakes.github.limits import Purse
from tests.fakes.github.refusals import OUTSIDE, Refused, not_found, problem
from tests.fakes.github.repos import ROLES, Repo
from tests.fakes.github.routes import ROUTES, Route
from tests.fakes.github.tokens import Kind, Token
from tests.fakes.github.world import World
from tests.fakes.prime.faults import Answer

VERSIONS = ("2022-11-28", "2026-03-10")
PER_PAGE = 30
PER_PAGE_MAX = 100


class Responder:
    """`violations`: whatever was asked or answered outside GitHub's description of its API."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.violations: list[str] = []

    def answer(self, target: Target) -> Answer:
        """Does what is asked."""
        what = f"{target.method} {target.path}"
        found = next(((route, names) for route in ROUTES if (names := route.match(target.method, target.path)) is not None), None)
        if found is None:
            return self._outside([f"{what}: the description that the fake has knows no such path"])
        route, names = found
        request = sent(target.method, route.path, names, target.query, target.body)
        faults = request_faults(request, route.path)
        if faults:
            return self._outside([f"{what}: {fault}" for fault in faults])
        told = self._told(route, names, target)
        faults = answer_faults(request, route.path, told) if "json" in told.content_type and "raw" not in told.content_type else []
        return self._outside([f"{what} was answered {told.status}: {fault}" for fault in faults]) if faults else told

    def _outside(self, violations: list[str]) -> Answer:
        self.violations += violations
        return problem(OUTSIDE, "; ".join(violations))

    def _told(self, route: Route, names: Mapping[str, str], target: Target) -> Answer:
        world, purse = self._world, None
        try:
            _check_headers(target)
            token = None if route.by_app else _token(world, target)
            purse = world.limits.purse(token, world.now_s(), by_app=route.by_app)
            if route.path != "/rate_limit":
                world.limits.take(purse, target.method, world.now_s(), content=route.content)
            repo = None if route.by_app else _repo(world, route, names, token)
            asked = Asked(names, target.query, target.headers, target.body, token, repo)
            told = _written(world, route, target, route.answer(world, asked))
        except Refused as refused:
            told = refused.answer()
        return _known_already(target, told, purse)


def _check_headers(target: Target) -> None:
    if not target.headers.get("user-agent"):
        raise Refused(403, "Request forbidden by administrative rules. Please make sure your request has a User-Agent header.")
    version = target.headers.get("x-github-api-version", VERSIONS[0])
    if version not in VERSIONS:
        raise Refused(400, f"{version} is not a supported version.")


def _token(world: World, target: Target) -> Token | None:
    """None where nobody says who they are."""
    kind, _, value = target.headers.get("authorization", "").partition(" ")
    if not kind:
        return None
    token = world.tokens.get(value.strip()) if kind.lower() in ("bearer", "token") else None
    if token is None or world.now_s() >= token.expires_s:
        raise Refused(401, "Bad credentials")
    return token


def _repo(world: World, route: Route, names: Mapping[str, str], token: Token | None) -> Repo | None:
    """The repository of the path, for one who may do this there. Of a private one strangers are not told that there is one."""
    if "repo" not in names:
        return None
    repo = world.repo(names["owner"], names["repo"])
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
        raise Refused(403, f"Resource not accessible by {token.whom}", headers={"x-accepted-github-permissions": accepted})
    return repo


def _written(world: World, route: Route, target: Target, answered: Answered) -> Answer:
    """With all that GitHub would say besides; of a list the page that was asked for."""
    headers: dict[str, str] = {}
    told = answered if isinstance(answered, Told) else Told(200)
    if isinstance(told.content, bytes):
        return Answer(told.status, told.content, "application/vnd.github.raw+json; charset=utf-8")
    content = answered if isinstance(answered, dict) else told.content
    if isinstance(answered, Page):
        content, headers = _page(world, route, target, answered)
    if content is None:
        return Answer(told.status)
    full = Filler(openapi()).filled(answer_schema(route.method, route.path, told.status), content)
    return Answer(told.status, json.dumps(full).encode(), "application/json; charset=utf-8", headers)


def _page(world: World, route: Route, target: Target, page: Page) -> tuple[object, dict[str, str]]:
    """The part of the list, and where the other parts are."""
    if not takes(route.method, route.path, "per_page"):
        return list(page.items), {}
    per_page = min(max(int(target.query.get("per_page", PER_PAGE)), 1), PER_PAGE_MAX)
    number, last = max(int(target.query.get("page", 1)), 1), max(1, -(-len(page.items) // per_page))
    part = list(page.items[(number - 1) * per_page : number * per_page])
    links = {"prev": number - 1, "next": number + 1, "last": last, "first": 1}
    shown = [name for name in links if (name in ("prev", "first") and number > 1) or (name in ("next", "last") and number < last)]
    urls = {name: f"{world.url}{target.path}?{urlencode({**target.query, 'page': links[name]})}" for name in shown}
    headers = {"Link": ", ".join(f'<{url}>; rel="{name}"' for name, url in urls.items())} if urls else {}
    return ({"total_count": len(page.items), page.under: part} if page.under else part), headers


def _known_already(target: Target, told: Answer, purse: Purse | None) -> Answer:
    """Says only that nothing has changed, where nothing has; that costs nothing of the hour's requests."""
    headers = dict(told.headers)
    if target.method == "GET" and told.status == 200:
        headers["ETag"] = f'W/"{hashlib.sha256(told.body).hexdigest()}"'
        if purse and target.headers.get("if-none-match", "").removeprefix("W/") == headers["ETag"].removeprefix("W/"):
            purse.used -= 1
            return Answer(304, headers=headers | purse.headers())
    return replace(told, headers=headers | (purse.headers() if purse else {}))
