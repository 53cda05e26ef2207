"""Client of Prime's compute API: one method per route, which parses the response and raises the errors of
`errors`.

A 429 response with a delay stops all requests for that time: see `quiet`. Collections are requested with
their final slash: without it the server redirects, and a redirect may lose the method or the key.
"""

import logging
import re
from collections.abc import Iterator
from typing import Unpack

from prime_train.errors import PermanentError, TemporaryError
from prime_train.http import HttpResponse, Parameters
from prime_train.providers.prime import errors
from prime_train.providers.prime.models import POD_ID, Billed, Person, PrimePod, SshKey, Wallet
from prime_train.providers.prime.settings import API, PrimeSettings
from prime_train.providers.rental.client import CREATE_READ_S, RentalClient, Timing
from prime_train.providers.rental.parsing import P, parsed, read_answer

TITLE = "Prime Intellect"
PAGES_MAX = 50
PAGE_ITEMS = 100
LOG_LINES = 100

_NO_IDS = frozenset({"status", "history"})

log = logging.getLogger(__name__)


def is_pod_id(text: str) -> bool:
    """Return whether `text` can be a pod's id; anything else must not become a part of a URL."""
    return re.fullmatch(POD_ID, text) is not None and text not in _NO_IDS


class PrimeClient(RentalClient[PrimePod]):
    """Client of Prime's API for one key and, if set, one team."""

    refusals = errors.REFUSALS

    def __init__(self, settings: PrimeSettings, **timing: Unpack[Timing]) -> None:
        self.team_id = settings.team_id
        super().__init__(TITLE, settings.base_url + API, settings.key, **timing)

    # --------------------------------------------------------------------------------------------------------
    # pods

    def create(self, body: dict[str, object]) -> PrimePod:
        """Rent a machine, without retries, because the route has no idempotency key. NoCapacity and
        PermanentError guarantee that nothing was rented.
        """
        answer = self._created(self._ask("POST", "/pods/", body=body, read_s=CREATE_READ_S))
        return read_answer(PrimePod, answer)

    def pods(self) -> list[PrimePod]:
        """Return every pod that the key may see, from all pages. Raises TemporaryError if there are fewer
        than the reported total.
        """
        return list(self.listed(PrimePod, "/pods/", complete=True))

    def pod(self, pod_id: str) -> PrimePod | None:
        """Return the pod, or None if Prime does not know the id. Where it may be the route that Prime does
        not know, the list has to lack the pod as well; raises PermanentError if the list has it.
        """
        answer = self._ask("GET", f"/pods/{pod_id}")
        if self._is_known(answer):
            return read_answer(PrimePod, answer)
        self._refuse_unknown_route(answer, pod_id)
        return None

    def delete(self, pod_id: str) -> bool:
        """Delete the pod. Return False if Prime does not know the id. For a pod that has ended already, Prime
        may answer either way. Raises PermanentError if it may be the route that Prime does not know, and the
        list has the pod.
        """
        answer = self._ask("DELETE", f"/pods/{pod_id}")
        if self._is_known(answer):
            return True
        self._refuse_unknown_route(answer, pod_id)
        return False

    def log(self, pod_id: str, lines: int = LOG_LINES) -> str:
        """Return the machine's set-up log unchanged: text, or JSON without a documented shape."""
        answer = self.get(f"/pods/{pod_id}/log", {"tail": lines})
        content = answer.content()
        match content:
            case str(text) | {"logs": str(text)} | {"data": str(text)}:
                return text
            case {"logs": [*rows]} | {"data": [*rows]} | [*rows]:
                return "\n".join(map(str, rows))
            case _:
                return answer.body.decode(errors="replace")

    def history(self, limit: int = PAGE_ITEMS) -> list[Billed]:
        """Return ended pods with their total cost, newest first, at most `limit`."""
        parameters: Parameters = {
            "sort_by": "terminatedAt",
            "sort_order": "desc",
            "offset": 0,
            "limit": min(limit, PAGE_ITEMS),
        }
        answer = self.get("/pods/history", parameters)
        return [parsed(Billed, item, answer.what) for item in _items(answer)]

    # --------------------------------------------------------------------------------------------------------
    # account

    def ssh_key_id(self, public_key: str, name: str) -> str:
        """Return the id of the key, after adding it under `name` if it is missing. Comments at the end of
        keys are ignored in the comparison.
        """
        for key in self.listed(SshKey, "/ssh_keys/"):
            if _material(key.public_key or "") == _material(public_key):
                return key.id
        return parsed(SshKey, *self._post("/ssh_keys/", {"name": name, "publicKey": public_key.strip()})).id

    def wallet(self) -> Wallet:
        """Return the team's wallet if a team pays, else the person's. At a balance of 0, Prime deletes every
        pod at once.
        """
        parameters: Parameters = {"limit": 1, "teamId": self.team_id} if self.team_id else {"limit": 1}
        answer = self.get("/billing/wallet", parameters)
        return read_answer(Wallet, answer)

    def whoami(self) -> Person:
        answer = self.get("/user/whoami")
        match answer.content():
            case {"data": content} | content:
                return parsed(Person, content, answer.what)

    def paid_by(self) -> dict[str, object]:
        """Return the field of a request body that names who pays. Whether the team's members may share the
        rented machine is left at Prime's default: its documentation and its tool spell that field
        differently, and an unknown field is refused.
        """
        return {"team": {"teamId": self.team_id}} if self.team_id else {}

    # --------------------------------------------------------------------------------------------------------
    # inside

    def listed(self, kind: type[P], path: str, *, complete: bool = False) -> Iterator[P]:
        """Yield the entries of all pages of a list, at most `PAGES_MAX` pages of any size. Each entry is
        yielded once, even if it moves between pages.

        With `complete`, raises TemporaryError if entries are missing: fewer than the reported total, or a
        total that changed between two pages, so that an entry may have moved past the reader.
        """
        seen: set[str] = set()
        totals: set[int | None] = set()
        offset = 0
        for _ in range(PAGES_MAX):
            answer = self.get(path, {"offset": offset, "limit": PAGE_ITEMS})
            items, total = _items(answer), total_of(answer)
            fresh = {
                item_id: item
                for item_id, item in ((_id_of(item), item) for item in items)
                if item_id not in seen
            }
            yield from (parsed(kind, item, answer.what) for item in fresh.values())
            seen |= fresh.keys()
            totals.add(total)
            offset += len(items)
            # Without a total, only a page with nothing new is the end, because a short page may be all that
            # the server returns at once. A server that ignores the parameters returns the same page again.
            if not fresh or (total is not None and len(seen) >= total):
                break
        else:
            log.warning("%s has more than %d pages; the rest was not read", path, PAGES_MAX)
            totals.add(len(seen) + 1)
        most = max((total for total in totals if total is not None), default=0)
        if complete and (len(seen) < most or len(totals) > 1):
            raise TemporaryError(f"GET {path}: the list is incomplete: {len(seen)} entries of {most}")

    def _refuse_unknown_route(self, answer: HttpResponse, pod_id: str) -> None:
        if errors.names_nothing(answer) and any(rented.id == pod_id for rented in self.pods()):
            raise PermanentError(
                f"{answer.what} was answered with {answer.status}, although pod {pod_id} is on Prime's list: "
                "its API may have changed; update prime-train, and end the machine on Prime's page if it is "
                "no longer needed"
            )

    def _post(self, path: str, body: dict[str, object]) -> tuple[object, str]:
        answer = self._succeeded(self._ask("POST", path, body=body))
        return answer.content(), answer.what


def _items(answer: HttpResponse) -> list[object]:
    match answer.content():
        case {"data": [*items]} | {"items": [*items]} | [*items]:
            return items
        case _:
            raise TemporaryError(f"{answer.what}: the answer cannot be parsed: it is not a list")


def total_of(answer: HttpResponse) -> int | None:
    """Return the total number of entries on all pages, or None if the response does not give it."""
    match answer.content():
        case {"total_count": int(total)} | {"totalCount": int(total)} if not isinstance(total, bool):
            return total
        case _:
            return None


def _id_of(item: object) -> str:
    return str(item.get("id")) if isinstance(item, dict) else str(item)


def _material(public_key: str) -> list[str]:
    return public_key.split()[:2]
