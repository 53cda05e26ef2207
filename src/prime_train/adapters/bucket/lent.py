"""Keys to a bucket that end by themselves, as the bulk library asks for them."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from prime_train.core.wire import PodKeys

if TYPE_CHECKING:
    from obstore.store import S3Config, S3Credential

Lent = Callable[[], PodKeys]
"""The newest there are. Called for each request, by any thread."""
KEPT_UNTIL = datetime(2000, 1, 1, tzinfo=UTC)
"""The library would keep what it was given until five minutes before its end by a clock that may be set meanwhile."""


class LentKeys:
    """A credential provider that is asked for each request; one that is under way goes on with the keys it was signed by."""

    def __init__(self, lent: Lent) -> None:
        self._lent = lent
        self.config: S3Config = {}

    def __call__(self) -> "S3Credential":
        keys = self._lent()
        return {
            "access_key_id": keys.access_key_id,
            "secret_access_key": keys.secret_access_key,
            "token": keys.session_token,
            "expires_at": KEPT_UNTIL,
        }
