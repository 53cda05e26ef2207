"""Client of a rental API: how a request is sent and its outcome told apart, and the requests that every
provider has.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Generic, TypedDict, TypeVar, Unpack

from prime_train.api_exchange import Witness
from prime_train.errors import PermanentError, TemporaryError
from prime_train.http import PAUSE_S, READ_S, Http, HttpResponse, Parameters
from prime_train.providers.rental.rate_limit import RateLimitPause
from prime_train.providers.rental.reasons import Refusals

Rented = TypeVar("Rented")
CREATE_READ_S = 90.0
"""Read timeout in seconds of the create call: some providers query others before they respond. A longer
timeout would not help, because a pod whose response is lost is found by its name.
"""


class Timing(TypedDict, total=False):
    """Limits of time of a client, and who looks on, each of which may be left out. `read_s`: read timeout in
    seconds; `pause_s`: first pause before a retry, growing with each. `clock` returns monotonic seconds.
    `witness` is told every exchange.
    """

    read_s: float
    pause_s: float
    clock: Callable[[], float]
    witness: Witness | None


class RentalClient(ABC, Generic[Rented]):
    """Client of an API for one key. Raises TemporaryError and PermanentError as every adapter does. `title`:
    the provider; `base_url`: the address before the paths; `refusals`: what the provider's refusals mean.

    While the provider has asked for a pause, no request is sent: every method raises TemporaryError with the
    remaining seconds, except `delete`, which has its own limit.
    """

    refusals: ClassVar[Refusals]

    def __init__(self, title: str, base_url: str, key: str, **timing: Unpack[Timing]) -> None:
        self.base_url = base_url
        self._read_s = timing.get("read_s", READ_S)
        self._quiet = RateLimitPause(title, timing.get("clock", time.monotonic))
        self._http = Http(
            base_url, key=key, pause_s=timing.get("pause_s", PAUSE_S), witness=timing.get("witness")
        )

    @abstractmethod
    def pods(self) -> list[Rented]:
        """Return every pod that the key may see. Raises TemporaryError if any of it cannot be read, because a
        list with a gap would look complete.
        """

    @abstractmethod
    def pod(self, pod_id: str) -> Rented | None:
        """Return the pod, or None if the provider does not know the id."""

    @abstractmethod
    def delete(self, pod_id: str) -> bool:
        """Terminate the pod. Return False if the provider does not know the id."""

    # --------------------------------------------------------------------------------------------------------
    # for subclasses

    def _refusal(self, answer: HttpResponse) -> TemporaryError | PermanentError:
        """Return the error for a response that is not a success."""
        return self.refusals.error(answer)

    def get(self, path: str, parameters: Parameters | None = None) -> HttpResponse:
        """Return the response if it is a success; raise an error for any other status."""
        return self._succeeded(self._ask("GET", path, parameters=parameters))

    def _succeeded(self, answer: HttpResponse) -> HttpResponse:
        if not answer.is_ok:
            raise self._refusal(answer)
        return answer

    def _created(self, answer: HttpResponse) -> HttpResponse:
        """Return the response to a create call if it is a success. NoCapacity, NoFunds and PermanentError
        guarantee that nothing was rented."""
        if not answer.is_ok:
            raise self.refusals.create_error(answer) or self._refusal(answer)
        return answer

    def _is_known(self, answer: HttpResponse) -> bool:
        """Return True for a success, and False if the provider does not know the id; raise an error for
        anything else.
        """
        return not self.refusals.is_unknown(answer) and self._succeeded(answer).is_ok

    def _ask(
        self,
        method: str,
        path: str,
        *,
        parameters: Parameters | None = None,
        body: object = None,
        read_s: float | None = None,
    ) -> HttpResponse:
        self._before(method, path)
        answer = self._http.ask(
            method, path, parameters=parameters, body=body, read_s=self._read_s if read_s is None else read_s
        )
        self._after(path, answer)
        return answer

    def _before(self, method: str, path: str) -> None:
        """Raise TemporaryError if the request may not be sent now."""
        self._quiet.check(method, path)

    def _after(self, path: str, answer: HttpResponse) -> None:
        """Begin the pause that the response asks for."""
        self._quiet.heed(answer)
