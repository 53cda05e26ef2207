"""The key pair with which a control plane logs in to its machines."""

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
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from prime_train.ports import PermanentError, TemporaryError

NAME = "id_ed25519"
COMMENT = "prime-train"


@dataclass(frozen=True)
class LoginKey:
    """`public` is a line of OpenSSH's, to be registered where machines are rented."""

    public: str
    private: paramiko.PKey = field(repr=False)


def login_key(folder: Path, master: bytes) -> LoginKey:
    """The pair in `folder`: id_ed25519, for its owner only. Where there is none it is made of the master key, so that every watcher of one
    control plane has the same, wherever it runs. Many may ask at once; all get the same.

    PermanentError: what is there is no key. TemporaryError: it cannot be read or written.
    """
    path = folder / NAME
    try:
        if not path.exists():
            _make(path, hmac.new(master, b"pt/ssh/v1", hashlib.sha256).digest())
        return _read(path)
    except OSError as error:
        raise TemporaryError(f"{path}: {error.strerror or error}") from error


def _make(path: Path, seed: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    text = Ed25519PrivateKey.from_private_bytes(seed).private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # A link, not a rename: it fails where somebody else was first, whose key may be registered already.
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _read(path: Path) -> LoginKey:
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        private = paramiko.Ed25519Key.from_private_key(io.StringIO(text))
    except (paramiko.SSHException, ValueError, IndexError):
        # Not chained: what it holds is a piece of the file.
        raise PermanentError(f"{path} is no Ed25519 key without a passphrase; move it away, and a new pair is made") from None
    return LoginKey(f"{private.get_name()} {private.get_base64()} {COMMENT}", private)
