"""Client of RunPod's API: one method per route, which parses the response and raises the errors of `errors`.

Machines are managed by REST, version 2. Who owns the key, and what is left of the balance, is known only to the older GraphQL, which
answers 200 to what it refuses. RunPod allows so many requests in each minute, hour and day, and says in every response how many are left:
after the last one of them, and after a 429, no request is sent until its window ends.
"""

import re
import time
from collections.abc import Callable

from prime_train.adapters.http import PAUSE_S, READ_S, Answer, Http, Parameters
from prime_train.adapters.pods_runpod import errors
from prime_train.adapters.pods_runpod.models import POD_ID, Myself, Rented
from prime_train.adapters.pods_runpod.settings import TITLE, Settings
from prime_train.adapters.rental_api.parsing import parsed
from prime_train.adapters.rental_api.rate_limit import RateLimitPause
from prime_train.adapters.rental_api.reasons import answered, short
from prime_train.ports import PermanentError, TemporaryError

API = "/v2"
GRAPHQL = "/graphql"
CREATE_READ_S = 90.0
"""Read timeout in seconds of the create call. A pod whose response is lost is found by its name."""
PODS_MAX = 10_000
ENDED_STATUS = frozenset({404, 410})
CUDA_MIN = "12.8"
"""The CUDA version that a machine's driver must support: that of the image, which an older driver does not start."""

_WINDOW = re.compile(r'"[\w-]{1,32}"((?:;[a-z]+=\d{1,9})+)')
_MYSELF = "query { myself { id clientBalance currentSpendPerHr } }"


def is_pod_id(text: str) -> bool:
    """Return whether `text` can be a pod's id; anything else must not become a part of a URL."""
    return re.fullmatch(POD_ID, text) is not None


class RunPodClient:
    """Client for one key. Raises TemporaryError and PermanentError as every adapter does. `read_s`: read timeout in seconds; `pause_s`:
    first pause before a retry, growing with each. `clock` returns monotonic seconds.

    While RunPod has asked for a pause, no request is sent: every method raises TemporaryError with the remaining seconds, except deletions,
    which have their own limit.
    """

    def __init__(
        self, settings: Settings, *, read_s: float = READ_S, pause_s: float = PAUSE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read_s, self._quiet = read_s, RateLimitPause(TITLE, clock)
        self._http = Http(settings.base_url, key=settings.key, pause_s=pause_s)

    def gpus(self, cloud: str, count: int) -> list[object]:
        """Return the rows of the catalogue, with what is free in that cloud for pods with this many GPUs."""
        asked: Parameters = {"include": "AVAILABILITY", "product": "POD", "count": count, "cloud": cloud, "minCudaVersion": CUDA_MIN}
        return _list(self._get("/catalog/gpus", asked), "gpus")

    def create(self, body: dict[str, object]) -> Rented:
        """Rent a machine, without retries, because the route has no idempotency key. NoCapacity, NoFunds and PermanentError guarantee that
        nothing was rented."""
        answer = self._ask("POST", f"{API}/pods", body=body, read_s=CREATE_READ_S)
        if not answer.is_ok:
            raise errors.create_refusal(answer)
        return parsed(Rented, answer.content(), answer.what)

    def pods(self) -> list[Rented]:
        """Return every pod that the key may see, which is one response without pages. Raises TemporaryError if any of it cannot be read,
        because a list with a gap would look complete."""
        answer = self._get("/pods")
        items = _list(answer, "pods")
        if len(items) > PODS_MAX:
            raise TemporaryError(f"{answer.what}: the answer has more than {PODS_MAX} pods")
        return [parsed(Rented, item, answer.what) for item in items]

    def pod(self, pod_id: str) -> Rented | None:
        """Return the pod, or None if RunPod does not know the id. Raises TemporaryError if the answer is about another pod."""
        answer = self._ask("GET", f"{API}/pods/{pod_id}")
        if errors.is_unknown(answer):
            return None
        if not answer.is_ok:
            raise errors.refusal(answer)
        rented = parsed(Rented, answer.content(), answer.what)
        if rented.id != pod_id:
            raise TemporaryError(f"{answer.what}: the answer is about another pod")
        return rented

    def delete(self, pod_id: str) -> bool:
        """Terminate the pod. Return False if RunPod does not know the id."""
        answer = self._ask("DELETE", f"{API}/pods/{pod_id}")
        if not answer.is_ok and not errors.is_unknown(answer):
            raise errors.refusal(answer)
        return answer.is_ok

    def myself(self) -> Myself:
        """Return the owner of the key. Raises PermanentError also if the key may not ask for it, or if RunPod has ended GraphQL; machines
        are managed without it."""
        answer = self._ask("POST", GRAPHQL, body={"query": _MYSELF})
        if answer.status in ENDED_STATUS:
            raise PermanentError(f"{answered(answer)}: {TITLE} has no GraphQL there any more")
        if not answer.is_ok:
            raise errors.refusal(answer)
        match answer.content():
            case {"errors": [{"message": str(text)}, *_]}:
                raise PermanentError(f"{answer.what} was refused: {short(text)}")
            case {"data": {"myself": None}}:
                raise PermanentError(f"{answer.what} was answered without the owner of the key")
            case {"data": {"myself": content}}:
                return parsed(Myself, content, answer.what)
            case _:
                raise TemporaryError(f"{answer.what}: the answer cannot be parsed: it has no owner of the key")

    # ----------------------------------------------------------------------------------------------------------------- inside

    def _get(self, path: str, parameters: Parameters | None = None) -> Answer:
        answer = self._ask("GET", API + path, parameters=parameters)
        if not answer.is_ok:
            raise errors.refusal(answer)
        return answer

    def _ask(
        self, method: str, path: str, *, parameters: Parameters | None = None, body: object = None, read_s: float | None = None
    ) -> Answer:
        self._quiet.check(method, path)
        answer = self._http.ask(method, path, parameters=parameters, body=body, read_s=self._read_s if read_s is None else read_s)
        self._quiet.heed(answer)
        self._quiet.begin(spent_s(answer.headers.get("ratelimit", "")))
        return answer


def spent_s(header: str) -> float:
    """Return the seconds until the end of the longest window whose requests are used up, as in `"minute";r=0;t=12, "hour";r=2871;t=1312`;
    0 if there is none."""
    found = 0
    for window in _WINDOW.findall(header[:500]):
        figures = dict(pair.split("=") for pair in window.split(";")[1:])
        if int(figures.get("r", "1")) == 0:
            found = max(found, int(figures.get("t", "0")))
    return float(found)


def _list(answer: Answer, name: str) -> list[object]:
    content = answer.content()
    items = content.get(name) if isinstance(content, dict) else None
    if not isinstance(items, list):
        raise TemporaryError(f"{answer.what}: the answer cannot be parsed: it has no list of {name}")
    return items
