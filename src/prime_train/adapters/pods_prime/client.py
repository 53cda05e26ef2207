"""Prime's compute API, call by call: one method a route, its answer parsed, its refusals told by `errors`.

An answer of 429 that says for how long Prime wants to be left alone is kept to: see `quiet`.

Collections are asked for with their final slash: without it the server redirects, and a redirect may lose the method or the key.
"""

import logging
import re
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from pydantic import ValidationError

from prime_train.adapters.http import PAUSE_S, READ_S, Answer, Http, Parameters
from prime_train.adapters.pods_prime import errors
from prime_train.adapters.pods_prime.models import Billed, Disk, Part, Person, Rented, SshKey, Wallet
from prime_train.adapters.pods_prime.quiet import Quiet
from prime_train.adapters.pods_prime.settings import API, Settings
from prime_train.ports import TemporaryError

CREATE_READ_S = 90.0
"""Prime asks the provider before it answers. Longer helps nobody: the pod is found by its name."""
PAGES_MAX = 50
PAGE_ITEMS = 100
LOG_LINES = 100
COMPLAINT_CHARS_MAX = 200

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
_NO_IDS = frozenset({"status", "history"})

P = TypeVar("P", bound=Part)

log = logging.getLogger(__name__)


def is_pod_id(text: str) -> bool:
    """Whether it can be an id: what else it may be must not become a piece of a URL."""
    return _ID.fullmatch(text) is not None and text not in _NO_IDS


def parsed(kind: type[P], content: object, what: str) -> P:
    """TemporaryError names what is not understood; of a call that changed something nothing more is known."""
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise TemporaryError(f"{what}: the answer is not understood: {complaint(error)}") from None


def complaint(error: ValidationError) -> str:
    """Field and reason of the first mistake, without the value, which may be anything."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}"[:COMPLAINT_CHARS_MAX]


class PrimeClient:
    """Speaks for one key and, where it is set, one team. TemporaryError and PermanentError as every adapter raises them. `read_s`: how long
    an answer may take; `pause_s`: before it is asked for again, longer each time. `clock`: seconds that only rise.

    While Prime wants to be left alone, nothing is asked: every method raises TemporaryError with the time that is left, but for those that
    give something back, which have their own bound."""

    def __init__(
        self, settings: Settings, *, read_s: float = READ_S, pause_s: float = PAUSE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.team_id = settings.team_id
        self._read_s, self._quiet = read_s, Quiet(clock)
        self._http = Http(settings.base_url + API, key=settings.key, pause_s=pause_s)

    def get(self, path: str, parameters: Parameters | None = None) -> Answer:
        """Any answer of success; what else comes is raised."""
        answer = self._ask("GET", path, parameters=parameters)
        if not answer.is_ok:
            raise errors.refusal(answer)
        return answer

    # ------------------------------------------------------------------------------------------------------------------- pods

    def create(self, body: dict[str, object]) -> Rented:
        """Never asked twice: there is no key that would make it the same call. NoCapacity, PermanentError: nothing was rented."""
        answer = self._ask("POST", "/pods/", body=body, read_s=CREATE_READ_S)
        if not answer.is_ok:
            raise errors.create_refusal(answer)
        return parsed(Rented, answer.content(), answer.what)

    def pods(self) -> list[Rented]:
        """Every pod the key may see, all pages. TemporaryError: there are fewer than Prime says that there are."""
        return list(self.listed(Rented, "/pods/", whole=True))

    def pod(self, pod_id: str) -> Rented | None:
        """None: Prime does not know the id."""
        answer = self._ask("GET", f"/pods/{pod_id}")
        if errors.is_unknown(answer):
            return None
        if not answer.is_ok:
            raise errors.refusal(answer)
        return parsed(Rented, answer.content(), answer.what)

    def delete(self, pod_id: str) -> bool:
        """False: Prime does not know the id. Of one that is gone it may say so, or take the request quietly."""
        return self._delete(f"/pods/{pod_id}")

    def log(self, pod_id: str, lines: int = LOG_LINES) -> str:
        """What the machine printed while it was set up, as it comes: text, or JSON of no promised shape."""
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
        """Pods that are no more, the last one first, `limit` at most: what they cost in all."""
        parameters: Parameters = {"sort_by": "terminatedAt", "sort_order": "desc", "offset": 0, "limit": min(limit, PAGE_ITEMS)}
        answer = self.get("/pods/history", parameters)
        return [parsed(Billed, item, answer.what) for item in _items(answer)]

    # ---------------------------------------------------------------------------------------------------------------- account

    def ssh_key_id(self, public_key: str, name: str) -> str:
        """The id of the key, which is added under `name` where it is not there. Comments at its end do not count."""
        for key in self.listed(SshKey, "/ssh_keys/"):
            if _material(key.public_key or "") == _material(public_key):
                return key.id
        return parsed(SshKey, *self._post("/ssh_keys/", {"name": name, "publicKey": public_key.strip()})).id

    def disks(self) -> list[Disk]:
        return list(self.listed(Disk, "/disks/"))

    def create_disk(self, name: str, size_gb: int, *, provider: str, data_center: str) -> Disk:
        """It outlives its pods, is paid for until it is deleted, and can be attached in this data centre only."""
        body: dict[str, object] = {
            "disk": {"name": name, "size": size_gb, "dataCenterId": data_center},
            "provider": {"type": provider},
        }
        return parsed(Disk, *self._post("/disks/", body | self.paid_by()))

    def delete_disk(self, disk_id: str) -> None:
        """One that is gone is no error."""
        self._delete(f"/disks/{disk_id}")

    def wallet(self) -> Wallet:
        """The team's, where one pays. At a balance of 0 Prime deletes every pod at once."""
        parameters: Parameters = {"limit": 1, "teamId": self.team_id} if self.team_id else {"limit": 1}
        answer = self.get("/billing/wallet", parameters)
        return parsed(Wallet, answer.content(), answer.what)

    def whoami(self) -> Person:
        answer = self.get("/user/whoami")
        match answer.content():
            case {"data": content} | content:
                return parsed(Person, content, answer.what)

    def paid_by(self) -> dict[str, object]:
        """What says in a body who pays. Whether the team's members may share what is rented is left at Prime's own default: its
        documents and its tool spell that field differently, and one that is not known is refused."""
        return {"team": {"teamId": self.team_id}} if self.team_id else {}

    # ----------------------------------------------------------------------------------------------------------------- inside

    def listed(self, kind: type[P], path: str, *, whole: bool = False) -> Iterator[P]:
        """All pages of a list, `PAGES_MAX` at most, whatever size they have. An entry comes once, whatever moves between two pages.

        `whole`: TemporaryError where entries are missing: fewer than the number that is given with them, or a number that changes between
        two pages, so that one may have slipped from the one to the other.
        """
        seen: set[str] = set()
        totals: set[int | None] = set()
        offset = 0
        for _ in range(PAGES_MAX):
            answer = self.get(path, {"offset": offset, "limit": PAGE_ITEMS})
            items, total = _items(answer), total_of(answer)
            fresh = {item_id: item for item_id, item in ((_id_of(item), item) for item in items) if item_id not in seen}
            yield from (parsed(kind, item, answer.what) for item in fresh.values())
            seen |= fresh.keys()
            totals.add(total)
            offset += len(items)
            # Without a number only a page with nothing new is the end: a short page may be all that the server gives at once. One that
            # does not know the parameters gives the same page again.
            if not fresh or (total is not None and len(seen) >= total):
                break
        else:
            log.warning("%s has more than %d pages; the rest was not read", path, PAGES_MAX)
            totals.add(len(seen) + 1)
        most = max((total for total in totals if total is not None), default=0)
        if whole and (len(seen) < most or len(totals) > 1):
            raise TemporaryError(f"GET {path}: the list is cut short: {len(seen)} entries of {most}")

    def _post(self, path: str, body: dict[str, object]) -> tuple[object, str]:
        answer = self._ask("POST", path, body=body)
        if not answer.is_ok:
            raise errors.refusal(answer)
        return answer.content(), answer.what

    def _delete(self, path: str) -> bool:
        answer = self._ask("DELETE", path)
        if not answer.is_ok and not errors.is_unknown(answer):
            raise errors.refusal(answer)
        return answer.is_ok

    def _ask(
        self, method: str, path: str, *, parameters: Parameters | None = None, body: object = None, read_s: float | None = None
    ) -> Answer:
        self._quiet.check(method, path)
        answer = self._http.ask(method, path, parameters=parameters, body=body, read_s=self._read_s if read_s is None else read_s)
        self._quiet.heed(answer)
        return answer


def _items(answer: Answer) -> list[object]:
    match answer.content():
        case {"data": [*items]} | {"items": [*items]} | [*items]:
            return items
        case _:
            raise TemporaryError(f"{answer.what}: the answer is not understood: it is no list")


def total_of(answer: Answer) -> int | None:
    """How many there are on all pages; None: that is not given."""
    match answer.content():
        case {"total_count": int(total)} | {"totalCount": int(total)} if not isinstance(total, bool):
            return total
        case _:
            return None


def _id_of(item: object) -> str:
    return str(item.get("id")) if isinstance(item, dict) else str(item)


def _material(public_key: str) -> list[str]:
    return public_key.split()[:2]
