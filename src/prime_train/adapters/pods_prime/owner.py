"""Whose account it is. To another one, all our machines would look gone: they would be rented anew there, and go on being paid here."""

import logging
import threading
from pathlib import Path

from prime_train.adapters.pods_prime.client import PrimeClient
from prime_train.ports import PermanentError, TemporaryError

log = logging.getLogger(__name__)


class Owner:
    """Called before anything is asked of the provider. `file`: where the account is remembered; made at the first time."""

    def __init__(self, client: PrimeClient, file: Path) -> None:
        self._client, self._file = client, file
        self._lock = threading.Lock()
        self._sure = False

    def __call__(self) -> None:
        """PermanentError: the key is of another account than the one that is remembered. TemporaryError: it is not known whose it is."""
        with self._lock:
            if not self._sure:
                self._check()
                self._sure = True

    def _check(self) -> None:
        try:
            now = self._client.whoami().id
        except PermanentError as error:
            log.warning("whose key it is can not be asked: %s", error)
            return
        try:
            before = self._file.read_text().strip() if self._file.exists() else ""
            if not before:
                self._file.write_text(f"{now}\n")
        except OSError as error:
            raise TemporaryError(f"{self._file}: {error.strerror or error}") from error
        if before and before != now:
            raise PermanentError(
                f"the key for Prime Intellect is of another account than the machines of this home were rented with; set the old key, or "
                f"delete {self._file} when none of its machines is left"
            )
