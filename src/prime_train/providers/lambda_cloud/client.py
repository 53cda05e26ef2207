"""Client of Lambda Cloud's API: one method per route, which parses the response and raises the errors of
`errors`.

Every response has its content in `data`. Each request waits for its turn (`RequestPace`), and after a 429
none is sent for a while.
"""

from typing import Unpack

from prime_train.errors import PermanentError, TemporaryError
from prime_train.http import HttpResponse
from prime_train.providers.lambda_cloud import errors
from prime_train.providers.lambda_cloud.models import LambdaInstance, LaunchResponse, SshKey, is_instance_id
from prime_train.providers.lambda_cloud.settings import API, TITLE, LambdaSettings
from prime_train.providers.rental.client import CREATE_READ_S, RentalClient, Timing
from prime_train.providers.rental.parsing import parsed, read_list
from prime_train.providers.rental.rate_limit import TOO_MANY, RequestPace

LAUNCH = "/instance-operations/launch"
TERMINATE = "/instance-operations/terminate"
LEAST_S = {"request": 1.0, "launch": 12.0}
"""Seconds between two requests of any kind, and between two launches, that Lambda Cloud demands."""


class LambdaClient(RentalClient[LambdaInstance]):
    """Client for one key. `pace`: when requests may be sent."""

    refusals = errors.REFUSALS

    def __init__(
        self, settings: LambdaSettings, *, pace: RequestPace | None = None, **timing: Unpack[Timing]
    ) -> None:
        timing.setdefault("pause_s", LEAST_S["request"])
        super().__init__(TITLE, settings.base_url + API, settings.key, **timing)
        self._pace = pace if pace is not None else RequestPace(TITLE, LEAST_S)

    def instance_types(self) -> list[object]:
        """Return every type of machine with the regions in which it is free."""
        answer = self.get("/instance-types")
        match answer.content():
            case {"data": dict(types)}:
                return list(types.values())
            case _:
                raise _unreadable(answer, "types of machines")

    def launch(self, body: dict[str, object]) -> str:
        """Rent a machine and return its id, without retries, because the route has no idempotency key.
        NoCapacity, NoFunds and PermanentError guarantee that nothing was rented.
        """
        answer = self._created(self._ask("POST", LAUNCH, body=body, read_s=CREATE_READ_S))
        ids = parsed(LaunchResponse, _data(answer), answer.what).instance_ids
        if not is_instance_id(ids[0]):
            raise _unreadable(answer, "ids that can be used")
        return ids[0]

    def pods(self) -> list[LambdaInstance]:
        answer = self.get("/instances")  # without pages
        return read_list(LambdaInstance, answer, "data")

    def pod(self, pod_id: str) -> LambdaInstance | None:
        answer = self._ask("GET", f"/instances/{pod_id}")
        return parsed(LambdaInstance, _data(answer), answer.what) if self._is_known(answer) else None

    def delete(self, pod_id: str) -> bool:
        return self._is_known(self._ask("POST", TERMINATE, body={"instance_ids": [pod_id]}))

    def ssh_keys(self) -> list[SshKey]:
        answer = self.get("/ssh-keys")
        return read_list(SshKey, answer, "data")

    def add_ssh_key(self, name: str, public_key: str) -> SshKey:
        answer = self._succeeded(
            self._ask("POST", "/ssh-keys", body={"name": name, "public_key": public_key})
        )
        return parsed(SshKey, _data(answer), answer.what)

    # --------------------------------------------------------------------------------------------------------
    # inside

    def _refusal(self, answer: HttpResponse) -> TemporaryError | PermanentError:
        return errors.refusal(answer)

    def _before(self, method: str, path: str) -> None:
        self._quiet.check(method, path, gives_back=path == TERMINATE)
        self._pace.take_turn(f"{method} {path}", "request", *(("launch",) if path == LAUNCH else ()))

    def _after(self, path: str, answer: HttpResponse) -> None:
        super()._after(path, answer)
        if answer.status == TOO_MANY:
            # Without a Retry-After, the documented pace is the best guess.
            self._quiet.begin(0.0 if answer.delay_s else LEAST_S["launch" if path == LAUNCH else "request"])


def _data(answer: HttpResponse) -> object:
    content = answer.content()
    return content.get("data") if isinstance(content, dict) else None


def _unreadable(answer: HttpResponse, what: str) -> TemporaryError:
    return TemporaryError(f"{answer.what}: the answer cannot be parsed: it has no {what}")
