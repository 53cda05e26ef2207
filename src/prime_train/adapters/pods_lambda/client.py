"""Client of Lambda Cloud's API: one method per route, which parses the response and raises the errors of `errors`.

Every response has its content in `data`. Each request waits for its turn (`pace`), and after a 429 none is sent for a while.
"""

import time
from collections.abc import Callable

from prime_train.adapters.http import READ_S, Answer, Http
from prime_train.adapters.pods_lambda import errors
from prime_train.adapters.pods_lambda.models import Launched, Rented, SshKey, is_instance_id
from prime_train.adapters.pods_lambda.pace import LAUNCH_S, REQUEST_S, Pace
from prime_train.adapters.pods_lambda.settings import API, TITLE, Settings
from prime_train.adapters.rental_api.parsing import parsed
from prime_train.adapters.rental_api.rate_limit import TOO_MANY, RateLimitPause
from prime_train.ports import TemporaryError

LAUNCH = "/instance-operations/launch"
TERMINATE = "/instance-operations/terminate"
LAUNCH_READ_S = 90.0
"""Read timeout in seconds of a launch. An instance whose response is lost is found by its name."""
ITEMS_MAX = 10_000


class LambdaClient:
    """Client for one key. Raises TemporaryError and PermanentError as every adapter does. `read_s`: read timeout in seconds; `pause_s`:
    first pause before a retry, growing with each; `pace`: when requests may be sent. `clock` returns monotonic seconds.

    While Lambda Cloud has asked for a pause, no request is sent: every method raises TemporaryError with the remaining seconds, except
    `terminate`, which has its own limit.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        read_s: float = READ_S,
        pause_s: float = REQUEST_S,
        pace: Pace | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read_s, self._pace, self._quiet = read_s, pace if pace is not None else Pace(), RateLimitPause(TITLE, clock)
        self._http = Http(settings.base_url + API, key=settings.key, pause_s=pause_s)

    def instance_types(self) -> list[object]:
        """Return every type of machine with the regions in which it is free."""
        answer = self._get("/instance-types")
        match answer.content():
            case {"data": dict(types)}:
                return list(types.values())
            case _:
                raise _unreadable(answer, "types of machines")

    def launch(self, body: dict[str, object]) -> str:
        """Rent a machine and return its id, without retries, because the route has no idempotency key. NoCapacity, NoFunds and
        PermanentError guarantee that nothing was rented."""
        answer = self._ask("POST", LAUNCH, body=body, read_s=LAUNCH_READ_S)
        if not answer.is_ok:
            raise errors.launch_refusal(answer)
        ids = parsed(Launched, _data(answer), answer.what).instance_ids
        if not is_instance_id(ids[0]):
            raise _unreadable(answer, "ids that can be used")
        return ids[0]

    def instances(self) -> list[Rented]:
        """Return every instance of the account, which is one response without pages. Raises TemporaryError if any of it cannot be read,
        because a list with a gap would look complete."""
        answer = self._get("/instances")
        return [parsed(Rented, item, answer.what) for item in _items(answer)]

    def instance(self, instance_id: str) -> Rented | None:
        """Return the instance, or None if Lambda Cloud does not know the id. Raises TemporaryError if the answer is about another one."""
        answer = self._ask("GET", f"/instances/{instance_id}")
        if errors.is_unknown(answer):
            return None
        if not answer.is_ok:
            raise errors.refusal(answer)
        rented = parsed(Rented, _data(answer), answer.what)
        if rented.id != instance_id:
            raise TemporaryError(f"{answer.what}: the answer is about another instance")
        return rented

    def terminate(self, instance_id: str) -> bool:
        """Terminate the instance. Return False if Lambda Cloud does not know the id."""
        answer = self._ask("POST", TERMINATE, body={"instance_ids": [instance_id]})
        if not answer.is_ok and not errors.is_unknown(answer):
            raise errors.refusal(answer)
        return answer.is_ok

    def ssh_keys(self) -> list[SshKey]:
        answer = self._get("/ssh-keys")
        return [parsed(SshKey, item, answer.what) for item in _items(answer)]

    def add_ssh_key(self, name: str, public_key: str) -> SshKey:
        answer = self._ask("POST", "/ssh-keys", body={"name": name, "public_key": public_key})
        if not answer.is_ok:
            raise errors.refusal(answer)
        return parsed(SshKey, _data(answer), answer.what)

    # ----------------------------------------------------------------------------------------------------------------- inside

    def _get(self, path: str) -> Answer:
        answer = self._ask("GET", path)
        if not answer.is_ok:
            raise errors.refusal(answer)
        return answer

    def _ask(self, method: str, path: str, *, body: object = None, read_s: float | None = None) -> Answer:
        self._quiet.check(method, path, gives_back=path == TERMINATE)
        self._pace.take_turn(f"{method} {path}", launches=path == LAUNCH)
        answer = self._http.ask(method, path, body=body, read_s=self._read_s if read_s is None else read_s)
        if answer.status == TOO_MANY:
            # Without a Retry-After, the documented pace is the best guess.
            self._quiet.begin(answer.delay_s or (LAUNCH_S if path == LAUNCH else REQUEST_S))
        return answer


def _data(answer: Answer) -> object:
    content = answer.content()
    return content.get("data") if isinstance(content, dict) else None


def _items(answer: Answer) -> list[object]:
    items = _data(answer)
    if not isinstance(items, list) or len(items) > ITEMS_MAX:
        raise _unreadable(answer, "list")
    return items


def _unreadable(answer: Answer, what: str) -> TemporaryError:
    return TemporaryError(f"{answer.what}: the answer cannot be parsed: it has no {what}")
