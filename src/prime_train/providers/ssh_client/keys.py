"""The SSH key pair with which a control plane logs in to its machines."""

import hashlib
import hmac
import io
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import paramiko
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from prime_train.errors import PermanentError, TemporaryError

NAME = "id_ed25519"
COMMENT = "prime-train"


@dataclass(frozen=True)
class LoginKey:
    """A key pair. `public` is a line in OpenSSH's format, to be registered with the provider of the
    machines.
    """

    public: str
    private: paramiko.PKey = field(repr=False)


def login_key(folder: Path, master: bytes) -> LoginKey:
    """Return the pair in `folder`, the file id_ed25519, readable by its owner only. If there is none, it is
    derived from the master key, so that every watcher of one control plane has the same pair on any machine.
    Concurrent calls get the same pair.

    Raises PermanentError if the file is not a key, TemporaryError if it cannot be read or written.
    """
    path = folder / NAME
    try:
        if not path.exists():
            _make(path, _derived(master))
        return _read(path)
    except OSError as error:
        raise TemporaryError(f"{path}: {error.strerror or error}") from error


def derived_public_key(master: bytes) -> str:
    """Return the public key, as a line in OpenSSH's format, of the pair that a control plane derives from
    this master key.
    """
    line = _derived(master).public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return f"{line.decode()} {COMMENT}"


def _derived(master: bytes) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(hmac.new(master, b"pt/ssh/v1", hashlib.sha256).digest())


def _make(path: Path, pair: Ed25519PrivateKey) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    text = pair.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    try:
        with os.fdopen(
            os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb"
        ) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # A link, not a rename: it fails if another process made the key first, which may already be
        # registered.
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _read(path: Path) -> LoginKey:
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        private = paramiko.Ed25519Key.from_private_key(io.StringIO(text))
    except (paramiko.SSHException, ValueError, IndexError):
        # Not chained: the exception holds a part of the file.
        raise PermanentError(
            f"{path} is not an Ed25519 key without a passphrase; move it away, and a new pair is created"
        ) from None
    return LoginKey(f"{private.get_name()} {private.get_base64()} {COMMENT}", private)
