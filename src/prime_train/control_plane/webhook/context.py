"""What the webhook holds: the store, the master keys, the secrets, and what it remembers of runs so that a heartbeat costs one write."""

from collections.abc import Callable

from prime_train.control_plane.admission.keyring import CACHED_MAX, Keyring
from prime_train.control_plane.admission.responses import HEARTBEAT_S
from prime_train.core.run_secrets import DEFAULT
from prime_train.core.wire import PodKeys
from prime_train.ports import Secrets, Store

KEYS = frozenset({"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"})
Lend = Callable[[str, int], PodKeys]
"""Keys to the bucket for one attempt, by its run and attempt; for "" and 0, the operator's. Raises OutsideError."""


class WebhookContext(Keyring):
    """What the webhook needs: the store, the master keys (the first makes new ones, all are accepted), secrets, and where the bucket is.
    `provider`, `public_url` and `watches` are told to the operator: from whom it rents, what machines are to call, and whether a watcher
    runs beside this webhook; and so is `run_secrets`, the list by which `secrets` was chosen. `lend`: where pods get keys that end, unless
    there are some that do not in `bucket_keys`."""

    def __init__(
        self,
        store: Store,
        masters: tuple[bytes, ...],
        *,
        secrets: Secrets,
        bucket_url: str,
        bucket_mark: str = "",
        bucket_keys: Secrets | None = None,
        lend: Lend | None = None,
        provider: str = "",
        public_url: str = "",
        watches: bool = False,
        run_secrets: tuple[str, ...] = DEFAULT,
    ) -> None:
        super().__init__(masters)
        self.store, self.secrets, self.bucket_url, self.bucket_mark = store, secrets, bucket_url, bucket_mark
        self.provider, self.public_url, self.watches, self.run_secrets = provider, public_url, watches, run_secrets
        self.bucket_keys, self.lend = dict(bucket_keys or {}), lend
        self._paces: dict[str, int] = {}

    @property
    def starts_with_lent(self) -> bool:
        """Whether an attempt begins with keys that end. One that has such gets new ones in any case."""
        return self.lend is not None and not KEYS.issubset(self.bucket_keys)

    def pace_s(self, run_id: str) -> int:
        """Seconds between heartbeats as the run's spec has it; it never changes, so it is read once."""
        known = self._paces.get(run_id)
        if known is not None:
            return known
        held = self.store.load(run_id)
        if held is None:
            return HEARTBEAT_S
        if len(self._paces) >= CACHED_MAX:
            self._paces.clear()
        self._paces[run_id] = held.run.spec.health.heartbeat_s
        return held.run.spec.health.heartbeat_s
