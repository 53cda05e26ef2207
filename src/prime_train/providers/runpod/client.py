"""Client of RunPod's API: one method per route, which parses the response and raises the errors of `errors`.

Machines are managed by REST, version 2. Who owns the key, and what is left of the balance, is known only to
the older GraphQL, which answers 200 to what it refuses. RunPod allows so many requests in each minute, hour
and day, and says in every response how many are left: after the last one of them, and after a 429, no request
is sent until its window ends.
"""

import re
from typing import Unpack

from prime_train.errors import PermanentError, TemporaryError
from prime_train.http import HttpResponse, Parameters
from prime_train.providers.rental.client import CREATE_READ_S, RentalClient, Timing
from prime_train.providers.rental.parsing import items_in, parsed, read_answer, read_list
from prime_train.providers.rental.reasons import answered
from prime_train.providers.runpod import errors, spot
from prime_train.providers.runpod.models import POD_ID, Myself, NetworkVolume, RunPodPod
from prime_train.providers.runpod.settings import TITLE, RunPodSettings

API = "/v2"
GRAPHQL = "/graphql"
ENDED_STATUS = frozenset({404, 410})
CUDA_MIN = "12.8"
"""The CUDA version that a machine's driver must support: that of the image, which an older driver does not
start.
"""

CUDA_VERSIONS = ("12.8", "12.9", "13.0", "13.1", "13.2")
"""The same for GraphQL, which has no minimum."""

_WINDOW = re.compile(r'"[\w-]{1,32}"((?:;[a-z]+=\d{1,9})+)')
_MYSELF = "query { myself { id clientBalance currentSpendPerHr } }"


def is_pod_id(text: str) -> bool:
    """Return whether `text` can be a pod's id; anything else must not become a part of a URL."""
    return re.fullmatch(POD_ID, text) is not None


class RunPodClient(RentalClient[RunPodPod]):
    """Client for one key."""

    refusals = errors.REFUSALS

    def __init__(self, settings: RunPodSettings, **timing: Unpack[Timing]) -> None:
        super().__init__(TITLE, settings.base_url, settings.key, **timing)

    def gpus(self, cloud: str, count: int) -> list[object]:
        """Return the rows of the catalogue, with what is free in that cloud for pods with this many GPUs."""
        asked: Parameters = {
            "include": "AVAILABILITY",
            "product": "POD",
            "count": count,
            "cloud": cloud,
            "minCudaVersion": CUDA_MIN,
        }
        return items_in(self.get(f"{API}/catalog/gpus", asked), "gpus")

    def create(self, body: dict[str, object]) -> RunPodPod:
        """Rent a machine, without retries, because the route has no idempotency key. NoCapacity, NoFunds and
        PermanentError guarantee that nothing was rented.
        """
        answer = self._created(self._ask("POST", f"{API}/pods", body=body, read_s=CREATE_READ_S))
        return read_answer(RunPodPod, answer)

    def volume(self, volume_id: str) -> NetworkVolume | None:
        """Return the network volume; None if the account has none of that id."""
        if not is_pod_id(volume_id):
            return None
        answer = self._ask("GET", f"{API}/network-volumes/{volume_id}")
        return read_answer(NetworkVolume, answer) if self._is_known(answer) else None

    def bids(self, cloud: str, count: int) -> dict[str, float]:
        """Return what has to be bid in USD for one GPU and hour, by kind, for spot machines with this many
        GPUs.
        """
        answer = self._ask("POST", GRAPHQL, body={"query": spot.bids_query(count, cloud)})
        self._refuse_ended(answer)
        return spot.bids_in(self._succeeded(answer))

    def rent_spot(self, order: dict[str, object]) -> RunPodPod:
        """Rent a spot machine, without retries. NoCapacity, NoFunds and PermanentError guarantee that nothing
        was rented.
        """
        body = {"query": spot.RENT, "variables": {"input": order}}
        answer = self._ask("POST", GRAPHQL, body=body, read_s=CREATE_READ_S)
        self._refuse_ended(answer)
        return spot.rented_in(self._succeeded(answer), str(order["name"]))

    def pods(self) -> list[RunPodPod]:
        answer = self.get(f"{API}/pods")  # without pages
        return read_list(RunPodPod, answer, "pods")

    def pod(self, pod_id: str) -> RunPodPod | None:
        answer = self._ask("GET", f"{API}/pods/{pod_id}")
        return read_answer(RunPodPod, answer) if self._is_known(answer) else None

    def delete(self, pod_id: str) -> bool:
        return self._is_known(self._ask("DELETE", f"{API}/pods/{pod_id}"))

    def myself(self) -> Myself:
        """Return the owner of the key. Raises PermanentError also if the key may not ask for it, or if RunPod
        has ended GraphQL; machines are managed without it.
        """
        answer = self._ask("POST", GRAPHQL, body={"query": _MYSELF})
        self._refuse_ended(answer)
        match self._succeeded(answer).content():
            case {"errors": [{"message": str()}, *_]}:
                raise PermanentError(f"{answer.what} was refused: {errors.graphql_reason_in(answer)}")
            case {"data": {"myself": None}}:
                raise PermanentError(f"{answer.what} was answered without the owner of the key")
            case {"data": {"myself": content}}:
                return parsed(Myself, content, answer.what)
            case _:
                raise TemporaryError(
                    f"{answer.what}: the answer cannot be parsed: it has no owner of the key"
                )

    # --------------------------------------------------------------------------------------------------------
    # inside

    @staticmethod
    def _refuse_ended(answer: HttpResponse) -> None:
        if answer.status in ENDED_STATUS:
            raise PermanentError(f"{answered(answer)}: {TITLE} has no GraphQL there any more")

    def _after(self, path: str, answer: HttpResponse) -> None:
        super()._after(path, answer)
        self._quiet.begin(spent_s(answer.headers.get("ratelimit", "")))


def spent_s(header: str) -> float:
    """Return the seconds until the end of the longest window whose requests are used up, as in
    `"minute";r=0;t=12, "hour";r=2871;t=1312`; 0 if there is none.
    """
    found = 0
    for window in _WINDOW.findall(header[:500]):
        figures = dict(pair.split("=") for pair in window.split(";")[1:])
        if int(figures.get("r", "1")) == 0:
            found = max(found, int(figures.get("t", "0")))
    return float(found)
