"""Host keys pinned on first use.

Nobody tells the key of a machine that was just rented, so the first one that is shown is believed; from then on it is this machine's only
if it shows the same. A provider gives the same address to one customer after the other, so keys are kept by the pod's id, and a file is for
one attempt. It has the format of OpenSSH: `ssh -o UserKnownHostsFile=FILE -o HostKeyAlias=POD_ID`.
"""

import fcntl
import os
from pathlib import Path

import paramiko

from prime_train.ports import PermanentError, TemporaryError

FILE_BYTES_MAX = 2**20


class KnownHosts:
    """The file at `path`, which need not be there yet. Safe between threads and processes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def check(self, pod_id: str, key: paramiko.PKey) -> None:
        """Pins the key where none is. PermanentError: this pod has shown another one. TemporaryError: the file cannot be kept."""
        shown = f"{pod_id} {key.get_name()} {key.get_base64()}"
        try:
            pinned = self._pinned(pod_id, shown)
        except OSError as error:
            raise TemporaryError(f"{self._path}: {error.strerror or error}") from error
        if pinned != shown:
            raise PermanentError(
                f"the machine of pod {pod_id} shows a changed host key, {key.fingerprint}: it is not the one that was there before, "
                f"or somebody is in between; nothing was sent to it. If the change was meant, delete {self._path}"
            )

    def knows(self, pod_id: str) -> bool:
        """Whether a key is pinned for this pod: only then has anybody logged in there. TemporaryError: the file cannot be read."""
        try:
            with self._path.open(encoding="utf-8", errors="replace") as file:
                return any(line.split(" ")[0] == pod_id for line in file.read(FILE_BYTES_MAX).splitlines())
        except FileNotFoundError:
            return False
        except OSError as error:
            raise TemporaryError(f"{self._path}: {error.strerror or error}") from error

    def _pinned(self, pod_id: str, shown: str) -> str:
        """The line of this pod; from now on `shown`, if there was none."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            lines = file.read(FILE_BYTES_MAX).splitlines()
            found = next((line for line in lines if line.split(" ")[0] == pod_id), None)
            if found is None:
                file.write(shown + "\n")
            return found or shown
