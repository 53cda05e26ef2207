"""Signatures by the SSH keys (ssh-ed25519) that people already have, in the format of `ssh-keygen -Y sign`,
which also verifies them.

The format is that of OpenSSH's PROTOCOL.sshsig.
"""

import base64
import hashlib
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_ssh_private_key,
    load_ssh_public_key,
)

from prime_train.errors import UsageError

KIND = b"ssh-ed25519"
KEY_BYTES_MAX = 64 * 1024
SIGNATURE_BYTES_MAX = 16 * 1024
_MAGIC, _VERSION, _HASH = b"SSHSIG", 1, b"sha512"
_ARMOUR = re.compile(rb"\s*-----BEGIN SSH SIGNATURE-----\s([A-Za-z0-9+/=\s]+)-----END SSH SIGNATURE-----\s*")
_LINE_CHARS = 70


@dataclass(frozen=True)
class SigningKey:
    """A private key. `fingerprint`: as `ssh-keygen -l` prints it."""

    private: Ed25519PrivateKey = field(repr=False)

    @property
    def fingerprint(self) -> str:
        return fingerprint(_wire(self.private.public_key()))


def signing_key(path: Path, passphrase: Callable[[], str]) -> SigningKey:
    """Return the private key in a file of OpenSSH. `passphrase` is called if the key has one. Raises
    UsageError if the file cannot be read, is of another kind, or the passphrase is wrong.
    """
    data = _read(path)
    try:
        key = _loaded(data, passphrase)
    except (ValueError, UnsupportedAlgorithm) as error:
        # The library's message may repeat parts of the file.
        raise UsageError(
            f"{path} is not a private key of OpenSSH, or its passphrase is wrong",
            fix="ssh-keygen -t ed25519 makes one",
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(
            f"{path} is not of the kind {KIND.decode()}", fix="ssh-keygen -t ed25519 makes such a key"
        )
    return SigningKey(key)


def public_key(named: str) -> bytes:
    """Return the public key in a file such as id_ed25519.pub, or in the line itself, as its bytes on the
    wire. Raises UsageError if it is not of the kind ssh-ed25519.
    """
    line = named.encode() if named.startswith("ssh-") else _read(Path(named))
    try:
        key = load_ssh_public_key(line.strip())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UsageError(
            f"{named[:200]} is not a public key of OpenSSH", fix="name a file such as id_ed25519.pub"
        ) from error
    if not isinstance(key, Ed25519PublicKey):
        raise UsageError(
            f"{named[:200]} is not of the kind {KIND.decode()}", fix="name a file such as id_ed25519.pub"
        )
    return _wire(key)


def sign(data: bytes, key: SigningKey, namespace: str) -> bytes:
    """Return the armoured signature of the data. `namespace`: what it is used for, so that it counts for
    nothing else.
    """
    signature = _string(KIND) + _string(key.private.sign(_signed(data, namespace)))
    parts = (_wire(key.private.public_key()), namespace.encode(), b"", _HASH, signature)
    text = base64.b64encode(_MAGIC + struct.pack(">I", _VERSION) + b"".join(map(_string, parts))).decode()
    lines = [text[at : at + _LINE_CHARS] for at in range(0, len(text), _LINE_CHARS)]
    return "\n".join(["-----BEGIN SSH SIGNATURE-----", *lines, "-----END SSH SIGNATURE-----", ""]).encode()


def signer_of(data: bytes, signature: bytes, namespace: str) -> bytes | None:
    """Return the public key by which the data is signed for this namespace, as its bytes on the wire; None if
    the signature is not valid. Whose key that is, the signature does not say.
    """
    try:
        wire, found = _parsed(signature, namespace)
        key = load_ssh_public_key(KIND + b" " + base64.b64encode(wire))
        if not isinstance(key, Ed25519PublicKey):
            return None
        key.verify(found, _signed(data, namespace))
    except (ValueError, InvalidSignature, UnsupportedAlgorithm):
        return None
    return wire


def fingerprint(wire: bytes) -> str:
    """Return the fingerprint of a public key as `ssh-keygen -l` prints it."""
    return f"SHA256:{base64.b64encode(hashlib.sha256(wire).digest()).decode().rstrip('=')}"


def _loaded(data: bytes, passphrase: Callable[[], str]) -> object:
    try:
        return load_ssh_private_key(data, None)
    except TypeError:  # the key has a passphrase
        return load_ssh_private_key(data, passphrase().encode())


def _parsed(signature: bytes, namespace: str) -> tuple[bytes, bytes]:
    """Return key and signature. Raises ValueError."""
    armour = _ARMOUR.fullmatch(signature) if len(signature) <= SIGNATURE_BYTES_MAX else None
    if armour is None:
        raise ValueError("no signature")
    blob = base64.b64decode(b"".join(armour[1].split()), validate=True)
    head = _MAGIC + struct.pack(">I", _VERSION)
    wire, used_for, _, hashed, inner = _strings(blob.removeprefix(head), 5)
    kind, found = _strings(inner, 2)
    if not blob.startswith(head) or used_for != namespace.encode() or hashed != _HASH or kind != KIND:
        raise ValueError("another kind of signature")
    return wire, found


def _strings(data: bytes, count: int) -> list[bytes]:
    found = list(_each(data))
    if len(found) != count:
        raise ValueError("another number of fields")
    return found


def _each(data: bytes) -> Iterator[bytes]:
    while data:
        size = int.from_bytes(data[:4], "big")
        if len(data) < 4 + size:
            raise ValueError("a field is cut off")
        yield data[4 : 4 + size]
        data = data[4 + size :]


def _signed(data: bytes, namespace: str) -> bytes:
    return _MAGIC + b"".join(map(_string, (namespace.encode(), b"", _HASH, hashlib.sha512(data).digest())))


def _string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def _wire(key: Ed25519PublicKey) -> bytes:
    return base64.b64decode(key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).split()[1])


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(KEY_BYTES_MAX)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror or error}", fix="name a file such as ~/.ssh/id_ed25519"
        ) from error
