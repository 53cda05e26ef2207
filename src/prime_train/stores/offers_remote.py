"""What a control plane's providers have for rent, read over HTTPS by whoever has a key of the control plane
and none of the providers.
"""

import time
from collections.abc import Callable, Mapping

from prime_train.errors import PermanentError, TemporaryError
from prime_train.http import failure
from prime_train.runs.offer import Offer
from prime_train.runs.signing import OFFERS_PATH
from prime_train.spec.spec import HardwareSpec
from prime_train.stores.remote_calls import OFFERS_GIVES
from prime_train.stores.signed_http import SignedHttp, reason_of

TRIES_MAX = 10
PAUSE_S_MAX = 10.0
"""Longest time in seconds to wait at once, for others that the control plane asks its providers for."""
HINTS: Mapping[int, str] = {
    401: "check that the key is one of this control plane, and that it is not of an older version",
    404: "the control plane is of an older version, or this is not its address",
}
"""Advice for the user by HTTP status."""


def read_offers(
    http: SignedHttp, hardware: HardwareSpec, *, pause: Callable[[float], None] = time.sleep
) -> list[Offer] | None:
    """Return the offers of the providers that `hardware` names or, if it names none, of those from which the
    control plane rents; None if none of these is set up there. `pause` waits for so many seconds. Raises
    PermanentError or TemporaryError if they cannot be read.
    """
    body = f"[{hardware.model_dump_json(exclude_defaults=True)}]".encode()
    for left in reversed(range(TRIES_MAX)):
        answer = http.ask("POST", OFFERS_PATH, body)
        if answer.is_ok:
            break
        refusal = failure(answer, "; ".join(filter(None, (reason_of(answer), HINTS.get(answer.status)))))
        if left == 0 or not isinstance(refusal, TemporaryError) or refusal.delay_s > PAUSE_S_MAX:
            raise refusal
        pause(refusal.delay_s)
    try:
        return OFFERS_GIVES.validate_json(answer.body)
    except ValueError:  # not chained: it would repeat what the server wrote
        raise PermanentError(
            f"{answer.what}: the answer cannot be parsed; it may be of another version"
        ) from None
