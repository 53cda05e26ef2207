"""The attempt's expiring keys to the bucket, and their renewal in time.

New keys are requested after three quarters of their validity by the monotonic clock, and after failures at
growing intervals. Until they arrive the old keys are used, up to their last second. Renewal neither blocks
nor stops anything: a transfer that fails for lack of keys is retried by its caller.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable

from prime_agent.control_plane import Fenced
from prime_train.errors import ExternalError, TemporaryError
from prime_train.runs.wire import PodKeys

RENEW_SHARE = 0.75
RETRY_FIRST_S, RETRY_MAX_S = 5.0, 60.0
ASKED_S_MAX = 300.0
"""The longest pause that the control plane may ask for: old keys are renewed a quarter of an hour before they
expire.
"""
FAILURES_COUNTED_MAX = 16
KEPT_MAX = 256
"""Number of key sets that remain redacted. Each is valid for an hour, so these are the sets of about a
week.
"""

_log = logging.getLogger(__name__)


class KeyRing:
    """The keys in use. Any thread may read them; one thread replaces them. `requested_s` is when they were
    requested from the control plane, or earlier.
    """

    def __init__(self, first: PodKeys, requested_s: float, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._current = first, requested_s
        self._kept: deque[PodKeys] = deque([first], KEPT_MAX)

    def newest(self) -> PodKeys:
        """Return the newest keys with their remaining validity."""
        keys, requested_s = self._current
        left_s = keys.valid_s - (self._monotonic_s() - requested_s)
        return keys.model_copy(update={"valid_s": max(0, int(left_s))})

    def take(self, keys: PodKeys, requested_s: float) -> None:
        """Replace the keys. `requested_s` is when the new ones were requested, by the monotonic clock."""
        # Redacted from now on, before any code can use and print them.
        self._kept.append(keys)
        self._current = keys, requested_s

    @property
    def renew_s(self) -> float:
        """Time of the next request for keys, in seconds of the monotonic clock."""
        keys, requested_s = self._current
        return requested_s + keys.valid_s * RENEW_SHARE

    def secrets(self) -> dict[str, str]:
        """Return all keys of the last `KEPT_MAX` sets, newest first, each under a unique name."""
        named = {}
        for age, keys in enumerate(reversed(list(self._kept))):
            mark = f"-{age}" if age else ""
            named[f"AWS_SECRET_ACCESS_KEY{mark}"] = keys.secret_access_key
            named[f"AWS_SESSION_TOKEN{mark}"] = keys.session_token
            named[f"AWS_ACCESS_KEY_ID{mark}"] = keys.access_key_id
        return named


class Renewal:
    """Renewal of the keys. `ask` requests them from the control plane. `report` is called with a text for
    people on failure, and with "" once it works again.
    """

    def __init__(
        self,
        ring: KeyRing,
        ask: Callable[[], PodKeys],
        report: Callable[[str], None],
        monotonic_s: Callable[[], float],
    ) -> None:
        self._ring, self._ask, self._report, self._monotonic_s = ring, ask, report, monotonic_s
        self._failures = 0
        self._due_s: float | None = ring.renew_s

    @property
    def due_s(self) -> float | None:
        """Time of the next request for keys; None if there will be none, because another attempt has taken
        over.
        """
        return self._due_s

    def step(self) -> None:
        """Request new keys once."""
        requested_s = self._monotonic_s()
        try:
            keys = self._ask()
        except Fenced as error:
            _log.info("no new keys to the bucket: %s", error)
            self._due_s = None
        except ExternalError as error:
            self._failed(str(error), error.delay_s if isinstance(error, TemporaryError) else 0.0)
        except Exception as error:
            # A bug here must not end the renewal: without keys, no training progress is saved.
            _log.exception("new keys could not be requested")
            self._failed(type(error).__name__)
        else:
            self._renewed(keys, requested_s)

    def run(self, leaving: threading.Event) -> None:
        """Renew the keys until `leaving` is set; call this in its own thread."""
        while self._due_s is not None and not leaving.wait(max(0.0, self._due_s - self._monotonic_s())):
            self.step()

    def _renewed(self, keys: PodKeys, requested_s: float) -> None:
        self._ring.take(keys, requested_s)
        _log.info("new keys to the bucket, for %d s", keys.valid_s)
        if self._failures:
            self._report("")
        self._failures = 0
        self._due_s = max(self._ring.renew_s, self._monotonic_s() + RETRY_FIRST_S)

    def _failed(self, why: str, asked_s: float = 0.0) -> None:
        """Report the failure, and ask again after a pause; after `asked_s` if that is longer, but at most
        `ASKED_S_MAX`.
        """
        left_s = self._ring.newest().valid_s
        state = f"the old ones expire in {left_s} s" if left_s else "the old ones have expired"
        message = f"new keys to the bucket could not be fetched, {state}: {why}"
        _log.warning("%s", message)
        self._report(message)
        pause_s = min(RETRY_MAX_S, RETRY_FIRST_S * 2**self._failures)
        self._due_s = self._monotonic_s() + max(pause_s, min(asked_s, ASKED_S_MAX))
        self._failures = min(self._failures + 1, FAILURES_COUNTED_MAX)
