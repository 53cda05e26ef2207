"""Opens the bucket of a remote control plane with temporary keys. The control plane issues them to whoever
has its master key.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from prime_train.buckets.open import open_bucket
from prime_train.buckets.port import Bucket
from prime_train.elapsed import Elapsed
from prime_train.errors import ExternalError, PermanentError

if TYPE_CHECKING:
    from prime_train.runs.wire import PodKeys
    from prime_train.stores.remote import RemoteStore
    from prime_train.stores.remote_calls import Opening

OWN = ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "R2_ACCESS_KEY_ID", "B2_APPLICATION_KEY_ID", "GS_ACCESS_KEY_ID")
"""Variables that name keys, or where they are; if one is set, the user's own keys are used."""
RENEWED_S = 600.0
"""Seconds before their end at which keys are renewed."""
RETRY_S = 30.0
"""Seconds between attempts to renew, because every request to the bucket asks for its keys."""

_log = logging.getLogger(__name__)


def has_own(environment: Mapping[str, str]) -> bool:
    return any(environment.get(name) for name in OWN)


def borrowed(url: str, environment: Mapping[str, str], plane: "RemoteStore") -> Bucket:
    opening = plane.opening()
    renewed = Renewed(opening, plane.opening) if opening.keys is not None else None
    return open_bucket(url, {**environment, **opening.environment}, renewed)


class Renewed:
    """Temporary keys that are renewed before they expire. If the renewal fails, the old keys are used until
    they expire; from then on, the error of `ask` is raised. Thread-safe. `clock`: seconds that only rise,
    also while a laptop sleeps; None: this machine's.
    """

    def __init__(
        self, opening: "Opening", ask: "Callable[[], Opening]", clock: Callable[[], float] | None = None
    ) -> None:
        self._ask, self._clock, self._lock = ask, clock or Elapsed(), threading.Lock()
        self._take(opening)

    def __call__(self) -> "PodKeys":
        with self._lock:
            if self._clock() >= self._renew_s:
                self._renew()
            return self._keys.model_copy(update={"valid_s": max(0, int(self._ends_s - self._clock()))})

    def _renew(self) -> None:
        try:
            self._take(self._ask())
        except ExternalError as error:
            now_s = self._clock()
            if now_s >= self._ends_s:
                raise
            _log.warning(
                "new keys to the bucket could not be fetched, the old ones expire in %d s: %s",
                self._ends_s - now_s,
                error,
            )
            self._renew_s = min(now_s + RETRY_S, self._ends_s)

    def _take(self, opening: "Opening") -> None:
        if opening.keys is None:
            raise PermanentError("the control plane no longer provides keys to its bucket")
        self._keys, self._ends_s = opening.keys, self._clock() + opening.keys.valid_s
        self._renew_s = self._ends_s - RENEWED_S
