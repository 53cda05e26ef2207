"""Temporary bucket credentials, in the form that obstore requests them."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from prime_train.runs.wire import PodKeys

if TYPE_CHECKING:
    from obstore.store import S3Config, S3Credential

Lent = Callable[[], PodKeys]
"""A function that returns the newest keys. It is called for each request, from any thread."""
KEPT_UNTIL = datetime(2000, 1, 1, tzinfo=UTC)
"""An expiry in the past, so that obstore requests the keys anew for every request. Otherwise it would cache
them until five minutes before they expire, by a wall clock that may be set meanwhile.
"""


class RefreshedCredentials:
    """A credential provider that is called for each request; a request under way continues with the keys it
    was signed with.
    """

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
