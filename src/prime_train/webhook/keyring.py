"""The keys with which requests may be signed."""

from functools import lru_cache

from prime_train.runs.launch_key import launch_secret
from prime_train.runs.signing import attempt_key, market_key, operator_key

CACHED_MAX = 16_384


class Keyring:
    """Keys derived from the master keys: the first master signs new keys, keys of all are accepted.
    `notice_secrets`: those with which a provider may sign its notices, newest first; empty if none are taken.
    """

    def __init__(self, masters: tuple[bytes, ...], notice_secrets: tuple[str, ...] = ()) -> None:
        if not masters or not all(masters):
            raise ValueError("a webhook needs at least one master key, and none may be empty")
        self.masters, self.notice_secrets = masters, notice_secrets
        self.keys = lru_cache(CACHED_MAX)(
            lambda run_id, attempt, identity="": tuple(
                attempt_key(master, run_id, attempt, identity) for master in masters
            )
        )
        """Return the keys with which an attempt may sign, one for each master key."""

    @property
    def operator_keys(self) -> tuple[str, ...]:
        return tuple(operator_key(master) for master in self.masters)

    def launch_secrets(self, name: str) -> tuple[str, ...]:
        """Return the secrets of the launch key with this name, one for each master key."""
        return tuple(launch_secret(master, name) for master in self.masters)

    @property
    def market_keys(self) -> tuple[str, ...]:
        return tuple(market_key(master) for master in self.masters)
