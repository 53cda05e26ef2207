"""What the runs of a control plane show of machines, read over HTTPS with a key that permits nothing else."""

from collections.abc import Iterable, Mapping

from prime_train.errors import PermanentError
from prime_train.http import failure
from prime_train.market.observations import Observations
from prime_train.market.shared import unpacked
from prime_train.runs.signing import MARKET_PATH
from prime_train.stores.signed_http import SignedHttp, reason_of

MARKET_KEY = "PRIME_TRAIN_MARKET_KEY"
READ_S = 10.0
HINTS: Mapping[int, str] = {
    401: f"check that {MARKET_KEY} is the market key of this control plane",
    403: "check that this is the address of a control plane",
    404: "check that this is the address of a control plane, without a path, and that it is not of an older "
    "version",
}
"""Advice for the user by HTTP status."""


def read_market(
    url: str, key: str, *, configs: Iterable[str], images: Iterable[str], read_s: float = READ_S
) -> Observations:
    """Return what the control plane at `url` has seen, with what is about these configs and images by name.
    Raises PermanentError or TemporaryError if it cannot be read; a failure that may pass has been retried a
    few times.
    """
    answer = SignedHttp(url, key, read_s=read_s).ask("GET", MARKET_PATH)
    if not answer.is_ok:
        raise failure(answer, "; ".join(filter(None, (reason_of(answer), HINTS.get(answer.status)))))
    try:
        return unpacked(answer.body, configs, images)
    except ValueError:  # not chained: it would repeat what the server wrote
        raise PermanentError(
            f"{answer.what}: the answer cannot be parsed; it may be of another version"
        ) from None
