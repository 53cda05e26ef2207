"""What the webhook holds: the store, the master keys, the secrets, and what it remembers of runs so that a beat costs one write."""

from functools import lru_cache

from prime_train.core.wire import attempt_key
from prime_train.ports import Secrets, Store

CACHED_MAX = 16_384
BEAT_S = 30
"""The pace told to a run nobody knows."""


class Desk:
    """What the webhook needs: the store, the master keys (the first makes new ones, all are accepted), secrets, and where the bucket is.
    `provider`, `public_url` and `watches` are told to the operator: from whom it rents, what machines are to call, and whether a watcher
    runs beside this webhook."""

    def __init__(
        self,
        store: Store,
        masters: tuple[bytes, ...],
        *,
        secrets: Secrets,
        bucket_url: str,
        bucket_keys: Secrets | None = None,
        provider: str = "",
        public_url: str = "",
        watches: bool = False,
    ) -> None:
        if not masters or not all(masters):
            raise ValueError("a webhook needs at least one master key, and none may be empty")
        self.store, self.masters, self.secrets, self.bucket_url = store, masters, secrets, bucket_url
        self.provider, self.public_url, self.watches = provider, public_url, watches
        self.bucket_keys = dict(bucket_keys or {})
        self.keys = lru_cache(CACHED_MAX)(lambda run_id, epoch: tuple(attempt_key(master, run_id, epoch) for master in masters))
        """The keys an attempt may sign with, one a master."""
        self._paces: dict[str, int] = {}

    def pace_s(self, run_id: str) -> int:
        """Seconds between beats as the run's spec has it; it never changes, so it is read once."""
        known = self._paces.get(run_id)
        if known is not None:
            return known
        held = self.store.load(run_id)
        if held is None:
            return BEAT_S
        if len(self._paces) >= CACHED_MAX:
            self._paces.clear()
        self._paces[run_id] = held.run.spec.health.beat_s
        return held.run.spec.health.beat_s
