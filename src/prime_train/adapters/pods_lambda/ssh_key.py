"""This control plane's SSH key in the account: instances are launched with one key, by its name."""

import hashlib
import threading

from prime_train.adapters.pods_lambda.client import LambdaClient
from prime_train.adapters.pods_lambda.models import SshKey
from prime_train.ports import PermanentError

DIGEST_CHARS = 12


class OwnSshKey:
    """The key with this public half, in OpenSSH's format. Thread-safe."""

    def __init__(self, client: LambdaClient, public_key: str) -> None:
        self._client, self._public_key, self._lock = client, public_key.strip(), threading.Lock()
        self._found: SshKey | None = None

    def find(self) -> SshKey | None:
        """Return the account's entry of the key; None if it has none. An entry that was found is kept."""
        with self._lock:
            return self._find()

    def find_or_add(self) -> SshKey:
        """Return the account's entry of the key, after adding it if it is missing."""
        with self._lock:
            found = self._find()
            if found is not None:
                return found
            if not self._public_key:
                raise PermanentError("a machine cannot be rented without the control plane's public SSH key")
            # A name of its own for each key, because control planes may share an account.
            digest = hashlib.sha256(material(self._public_key).encode()).hexdigest()[:DIGEST_CHARS]
            self._found = self._client.add_ssh_key(f"prime-train-{digest}", self._public_key)
            return self._found

    def forget(self) -> None:
        """Look again next time, because the key may have been removed from the account."""
        with self._lock:
            self._found = None

    def _find(self) -> SshKey | None:
        if self._found is None and self._public_key:
            ours = [key for key in self._client.ssh_keys() if material(key.public_key or "") == material(self._public_key)]
            # Of several entries that were added at the same time, every process takes the same.
            self._found = min(ours, key=lambda key: key.id, default=None)
        return self._found


def material(public_key: str) -> str:
    """Return type and key without the comment at its end, for comparison."""
    return " ".join(public_key.split()[:2])
