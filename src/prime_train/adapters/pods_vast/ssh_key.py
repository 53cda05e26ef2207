"""This control plane's SSH key, which is put on each of its instances and not in the account: instances of others do not accept it, and
nothing of the account is changed."""

import threading

from prime_train.adapters.pods_vast.client import VastClient
from prime_train.adapters.rental_api.reasons import short
from prime_train.ports import PermanentError, TemporaryError


class OwnSshKey:
    """The key with this public half, in OpenSSH's format; empty: the keys of the account are used. Thread-safe."""

    def __init__(self, client: VastClient, public_key: str) -> None:
        self._client, self._public_key, self._lock = client, public_key.strip(), threading.Lock()
        self._attached: set[str] = set()

    def attach(self, pod_id: str) -> None:
        """Let the instance accept the key; does nothing if it does already. Raises TemporaryError also if it is refused, because the
        instance may not have been ready."""
        if not self._public_key:
            return
        with self._lock:
            if pod_id in self._attached:
                return
            if " ".join(self._public_key.split()[:2]) not in self._client.ssh_keys(pod_id):
                try:
                    self._client.attach_ssh_key(pod_id, self._public_key)
                except PermanentError as error:
                    raise TemporaryError(f"instance {short(pod_id)} does not take the control plane's SSH key: {error}") from error
            self._attached.add(pod_id)
