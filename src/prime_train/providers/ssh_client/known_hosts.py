"""Host keys pinned on first use.

No provider publishes the host key of a new machine, so the first key that a machine shows is trusted and
every later connection must show the same one. A provider reuses addresses for different customers, so keys
are stored by pod id, in one file per attempt. The file has OpenSSH's format: `ssh -o UserKnownHostsFile=FILE
-o HostKeyAlias=POD_ID`.
"""

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path

import paramiko

from prime_train.errors import PermanentError, TemporaryError
from prime_train.providers.port import SSH_PORT, SshAddress

FILE_BYTES_MAX = 2**20


def refuse_other(where: str, known: Sequence[str], shown: paramiko.PKey) -> None:
    """Raise PermanentError if host keys are known, and this is none of them."""
    if known and f"{shown.get_name()} {shown.get_base64()}" not in known:
        raise PermanentError(
            f"{where} shows a host key that is not the known one, {shown.fingerprint}: it is either another "
            "machine, or the connection is intercepted; nothing was sent"
        )


def known_keys(path: Path, address: SshAddress) -> tuple[str, ...]:
    """Return the keys of a server in a file in OpenSSH's format; empty if there are none. Raises
    PermanentError if the file cannot be read.
    """
    name = address.host if address.port == SSH_PORT else f"[{address.host}]:{address.port}"
    try:
        found = paramiko.HostKeys(str(path)).lookup(name) if path.exists() else None
    except (OSError, paramiko.SSHException, ValueError) as error:
        raise PermanentError(f"{path} with the keys of SSH servers cannot be read: {error}") from error
    return (
        tuple(f"{key.get_name()} {key.get_base64()}" for key in found.values()) if found is not None else ()
    )


class KnownHosts:
    """The known-hosts file at `path`, which is created when the first key is pinned. Safe between threads and
    processes.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def check(self, pod_id: str, key: paramiko.PKey) -> None:
        """Pin the key if none is pinned for this pod. Raises PermanentError if the pod has shown another key
        before, TemporaryError if the file cannot be read or written.
        """
        shown = f"{pod_id} {key.get_name()} {key.get_base64()}"
        try:
            pinned = self._pinned(pod_id, shown)
        except OSError as error:
            raise TemporaryError(f"{self._path}: {error.strerror or error}") from error
        if pinned != shown:
            raise PermanentError(
                f"the machine of pod {pod_id} has a changed host key, {key.fingerprint}: it is either "
                "another machine than before, or the connection is intercepted; nothing was sent. If the "
                "change is expected, delete "
                f"{self._path}"
            )

    def knows(self, pod_id: str) -> bool:
        """Return whether a key is pinned for this pod; if not, no login to it has succeeded yet. Raises
        TemporaryError if the file cannot be read.
        """
        try:
            with self._path.open(encoding="utf-8", errors="replace") as file:
                return any(line.split(" ")[0] == pod_id for line in file.read(FILE_BYTES_MAX).splitlines())
        except FileNotFoundError:
            return False
        except OSError as error:
            raise TemporaryError(f"{self._path}: {error.strerror or error}") from error

    def _pinned(self, pod_id: str, shown: str) -> str:
        """Return the pinned line of this pod, after writing `shown` if none was pinned."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(
            os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+"
        ) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            lines = file.read(FILE_BYTES_MAX).splitlines()
            found = next((line for line in lines if line.split(" ")[0] == pod_id), None)
            if found is None:
                file.write(shown + "\n")
            return found or shown
