"""Temporary bucket credentials, in the form that obstore requests them."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from prime_train.core.wire import PodKeys

if TYPE_CHECKING:
    from obstore.store import S3Config, S3Credential

Lent = Callable[[], PodKeys]
"""Returns the newest keys. Called for each request, from any thread."""
KEPT_UNTIL = datetime(2000, 1, 1, tzinfo=UTC)
"""A time in the past, so that obstore asks for every request: it would otherwise cache keys until five minutes before their end, by a clock
that may be set meanwhile."""


class LentKeys:
    """A credential provider that is called for each request; a request under way continues with the keys it was signed with."""

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
