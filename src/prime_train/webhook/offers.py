"""The answer to those who ask what is for rent: the control plane has the providers' keys, so that nobody
else needs them.
"""

import hashlib
import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from prime_train.elapsed import Elapsed
from prime_train.errors import ExternalError
from prime_train.webhook.responses import RETRY_S

if TYPE_CHECKING:
    from prime_train.runs.offer import Offer
    from prime_train.spec.spec import HardwareSpec

KEPT_S = 60
"""How long an answer is given again, in seconds."""
KEPT_MAX = 100
WAIT_S = 12.0
"""Seconds to wait for providers: less than a function of the control plane may take."""

LATER_S = 60
"""Seconds after which providers that did not answer may."""

log = logging.getLogger(__name__)

AskOffers = Callable[["HardwareSpec"], "Sequence[Offer] | None"]
"""Asks the providers that the hardware names; returns None if none of them is set up. Raises
ExternalError.
"""


class NotNow(Exception):
    """The offers are not known now; the message says why. `delay_s`: seconds after which it is worth while to
    ask again.
    """

    def __init__(self, why: str, delay_s: int) -> None:
        super().__init__(why)
        self.delay_s = delay_s


class OffersAnswer:
    """The offers for each kind of hardware, kept for `KEPT_S`. Thread-safe.

    Whoever may ask may be anybody who may push to a repository, so the providers are asked by one thread at a
    time, which then rests for as long as they took: at most half of this process's time goes into it, and
    others are told to come back.
    """

    def __init__(
        self, ask: AskOffers | None, *, wait_s: float = WAIT_S, clock: Callable[[], float] | None = None
    ) -> None:
        self._ask, self._wait_s, self._clock = ask, wait_s, clock or Elapsed()
        self._lock, self._is_asking, self._rests_until_s = threading.Lock(), False, 0.0
        self._kept: dict[str, tuple[float, list[Offer] | None]] = {}

    def told(self, hardware: "HardwareSpec") -> "list[Offer] | None":
        """Return the offers; None if none of the providers is set up here. Raises NotNow."""
        if self._ask is None:
            return None
        named, now_s = hashlib.sha256(hardware.model_dump_json().encode()).hexdigest(), self._clock()
        with self._lock:
            known = self._kept.get(named)
            if known is not None and 0 <= now_s - known[0] < KEPT_S:
                return known[1]
            if self._is_asking or now_s < self._rests_until_s:
                raise NotNow("the providers are being asked for others; retry later", RETRY_S)
            self._is_asking = True
        failed: list[Exception] = []
        asking = threading.Thread(
            target=self._keep, args=(self._ask, hardware, named, failed), name="offers", daemon=True
        )
        asking.start()
        asking.join(self._wait_s)
        if failed and not isinstance(failed[0], ExternalError):
            raise failed[0]
        with self._lock:
            known = self._kept.get(named)
        if known is None or known[0] < now_s:
            raise NotNow("the providers do not answer now; the log of the control plane may say why", LATER_S)
        return known[1]

    def _keep(self, ask: AskOffers, hardware: "HardwareSpec", named: str, failed: list[Exception]) -> None:
        begun_s = self._clock()
        try:
            offers = ask(hardware)
            with self._lock:
                if len(self._kept) >= KEPT_MAX:
                    self._kept.clear()
                self._kept[named] = self._clock(), None if offers is None else list(offers)
        except Exception as error:
            log.warning("the providers were asked for offers: %s", error)
            failed.append(error)
        finally:
            with self._lock:
                self._is_asking, self._rests_until_s = False, 2 * self._clock() - begun_s
