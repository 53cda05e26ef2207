"""Client of Vast.ai's API: one method per route, which parses the response and raises the errors of `errors`.

Requests of each kind have a least interval (`RequestPace`); after a 429, none of that kind is sent for as
long as the response asks. Addresses end in a slash, as those of Vast.ai's own client: without it some are
redirected, and no redirect is followed with a key.
"""

import json
import time
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Unpack

from prime_train.errors import PermanentError, TemporaryError
from prime_train.http import HttpResponse, Parameters
from prime_train.providers.rental.client import CREATE_READ_S, RentalClient, Timing
from prime_train.providers.rental.parsing import items_in, parsed, read_answer
from prime_train.providers.rental.rate_limit import RateLimitPause, RequestPace
from prime_train.providers.vast import errors
from prime_train.providers.vast.models import Charge, Counts, Created, User, VastInstance
from prime_train.providers.vast.settings import TITLE, VastSettings

SEARCH = "/api/v0/bundles/"
INSTANCES = "/api/v0/instances/"
LIST = "/api/v1/instances/"
USER = "/api/v0/users/current/"
CHARGES = "/api/v0/charges/"
PAGE_ROWS = 25
CHARGES_ROWS = 500
PAGES_MAX = 400
BY_ID = json.dumps([{"col": "id", "dir": "asc"}])


class RequestKind(StrEnum):
    """The kinds of requests that have an interval of their own."""

    SEARCH = "search"
    CREATE = "create"
    LIST = "list"
    GET = "get"
    DESTROY = "destroy"
    SSH_KEY = "ssh-key"
    USER = "user"
    CHARGES = "charges"


LEAST_S: Mapping[str, float] = {
    RequestKind.SEARCH: 1.0,
    RequestKind.CREATE: 4.5,
    RequestKind.LIST: 1.0,
    RequestKind.GET: 2.0,
    RequestKind.DESTROY: 3.0,
    RequestKind.SSH_KEY: 1.0,
    RequestKind.USER: 1.0,
    RequestKind.CHARGES: 1.0,
}
"""The intervals in seconds that Vast.ai's 429 responses name."""


class VastClient(RentalClient[VastInstance]):
    """Client for one key. `pace`: when requests may be sent."""

    refusals = errors.REFUSALS

    def __init__(
        self, settings: VastSettings, *, pace: RequestPace | None = None, **timing: Unpack[Timing]
    ) -> None:
        super().__init__(TITLE, settings.base_url, settings.key, **timing)
        clock = timing.get("clock", time.monotonic)
        self._pace = pace if pace is not None else RequestPace(TITLE, LEAST_S)
        self._pauses = {kind: RateLimitPause(TITLE, clock) for kind in RequestKind}

    def search(self, query: dict[str, object]) -> list[object]:
        """Return the rows of offers that the query finds. Raises QuotaUsedUp if the account may search no
        more today.
        """
        answer = self._succeeded(self._ask("POST", SEARCH, body=query))
        return items_in(answer, "offers")

    def create(self, ask_id: int, body: dict[str, object]) -> str:
        """Rent a machine and return the id of its instance, without retries, because the route has no
        idempotency key. NoCapacity, NoFunds and PermanentError guarantee that nothing was rented, apart from
        what LeftStopped names.
        """
        answer = self._ask("PUT", f"/api/v0/asks/{ask_id}/", body=body, read_s=CREATE_READ_S)
        if errors.is_refused(answer):
            raise errors.create_refusal(answer)
        return str(read_answer(Created, answer).new_contract)

    def pods(self) -> list[VastInstance]:
        """Return every instance of the account, page by page. Raises TemporaryError also if the pages have
        fewer than the last of them counts.
        """
        return self._listed({})

    def labelled(self, label: str) -> list[VastInstance]:
        """Return the instances with this label. Raises TemporaryError if others are listed, because the
        filter had no effect then.
        """
        found = self._listed({"label": {"eq": label}})
        if any(rented.label != label for rented in found):
            raise TemporaryError(
                f"GET {LIST}: the list has instances with another label than the one that was asked for"
            )
        return found

    def pod(self, pod_id: str) -> VastInstance | None:
        """Return the instance, or None if Vast.ai does not know the id.

        Where there is no instance, Vast.ai answers null. That is too little to give up a machine for, so the
        list has to lack it as well.
        """
        answer = self._ask("GET", f"{INSTANCES}{pod_id}/")
        if not self._is_known(answer):
            return None
        match answer.content():
            case {"instances": None}:
                listed = self._listed({"id": {"eq": int(pod_id)}})
                return next((rented for rented in listed if rented.pod_id == pod_id), None)
            case {"instances": content}:
                return parsed(VastInstance, content, answer.what)
            case _:
                raise _unreadable(answer, "instance")

    def delete(self, pod_id: str) -> bool:
        answer = self._ask("DELETE", f"{INSTANCES}{pod_id}/")
        if answer.is_ok and errors.is_refused(answer):
            raise TemporaryError(f"{answer.what} was refused: {errors.reason_in(answer)}")
        return self._is_known(answer)

    def ssh_keys(self, pod_id: str) -> str:
        """Return the public keys that were attached to the instance, as text that contains each of them."""
        answer = self.get(f"{INSTANCES}{pod_id}/ssh/")
        match answer.content():
            case {"ssh_keys": str(text)}:
                return text
            case {"ssh_keys": list(keys)}:
                return json.dumps(keys)
            case _:
                raise _unreadable(answer, "SSH keys")

    def attach_ssh_key(self, pod_id: str, public_key: str) -> None:
        self._succeeded(self._ask("POST", f"{INSTANCES}{pod_id}/ssh/", body={"ssh_key": public_key}))

    def user(self) -> User:
        """Return the owner of the key."""
        answer = self.get(USER)
        return read_answer(User, answer)

    def charges(self, first_s: int, last_s: int) -> list[Charge]:
        """Return what each instance has cost between two days, in seconds since 1970."""
        filters = {"day": {"gte": first_s, "lte": last_s}, "type": {"in": ["instance"]}}
        parameters: Parameters = {"select_filters": json.dumps(filters), "limit": CHARGES_ROWS}
        pages = self._pages(CHARGES, parameters)
        return [parsed(Charge, item, answer.what) for answer in pages for item in items_in(answer, "results")]

    # --------------------------------------------------------------------------------------------------------
    # inside

    def _listed(self, filters: dict[str, object]) -> list[VastInstance]:
        """Return the instances that meet the filters."""
        parameters: Parameters = {
            "limit": PAGE_ROWS,
            "order_by": BY_ID,
            "select_filters": json.dumps(filters),
        }
        found: dict[str, VastInstance] = {}
        total = 0
        for answer in self._pages(LIST, parameters):
            items, counts = items_in(answer, "instances"), read_answer(Counts, answer)
            if len(items) != counts.instances_found:
                raise _incomplete(len(items), counts.instances_found)
            for item in items:
                rented = parsed(VastInstance, item, answer.what)
                found[rented.pod_id] = rented
            total = counts.total_instances
        if len(found) < total:
            raise _incomplete(len(found), total)
        return list(found.values())

    def _pages(self, path: str, parameters: Parameters) -> Iterator[HttpResponse]:
        """Yield the pages of a list, up to the one that names no next page. Raises TemporaryError if there is
        none.
        """
        token, seen = "", set[str]()
        for _ in range(PAGES_MAX):
            answer = self.get(path, {**parameters, **({"after_token": token} if token else {})})
            yield answer
            token = _next_token(answer)
            if not token:
                return
            if token in seen:
                break
            seen.add(token)
        raise TemporaryError(f"GET {path}: the list has no end")

    def _before(self, method: str, path: str) -> None:
        kind = _kind(method, path)
        self._pauses[kind].check(method, path)
        self._pace.take_turn(f"{method} {path}", kind)

    def _after(self, path: str, answer: HttpResponse) -> None:
        self._pauses[_kind(answer.what.partition(" ")[0], path)].begin(errors.pause_s(answer))

    def _refusal(self, answer: HttpResponse) -> TemporaryError | PermanentError:
        return errors.refusal(answer)


def _kind(method: str, path: str) -> RequestKind:
    """Return the kind of a request, by which Vast.ai counts it."""
    by_path = {
        SEARCH: RequestKind.SEARCH,
        LIST: RequestKind.LIST,
        USER: RequestKind.USER,
        CHARGES: RequestKind.CHARGES,
    }
    if path in by_path:
        return by_path[path]
    if path.endswith("/ssh/"):
        return RequestKind.SSH_KEY
    return {"PUT": RequestKind.CREATE, "DELETE": RequestKind.DESTROY}.get(method, RequestKind.GET)


def _next_token(answer: HttpResponse) -> str:
    """Return what asks for the next page; empty if there is none."""
    match answer.content():
        case {"next_token": None}:
            return ""
        case {"next_token": str(token)} if token:
            return token
        case _:
            raise _unreadable(answer, "word on the next page")


def _incomplete(there: int, counted: int) -> TemporaryError:
    return TemporaryError(
        f"GET {LIST}: the list is incomplete: it has {there} instances, and counts {counted}"
    )


def _unreadable(answer: HttpResponse, what: str) -> TemporaryError:
    return TemporaryError(f"{answer.what}: the answer cannot be parsed: it has no {what}")
