"""JSON web tokens by which an app identifies itself: RS256, ten minutes at most."""

import base64
import binascii
import json
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.fakes.github.refusals import Refused

AGE_S_MAX = 600.0
DRIFT_S = 60.0
EXPIRES = "'Expiration time' claim ('exp')"


def new_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form, plain = serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, form, plain).decode()


def issuer(token: str) -> str:
    """Return the issuer that the token names, without verification."""
    return str(_part(token, 1).get("iss", ""))


def check(token: str, private_key: str, now_s: float) -> None:
    """Refuse a token that was not signed with the key, or is not valid now."""
    key = serialization.load_pem_private_key(private_key.encode(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    signed, _, signature = token.rpartition(".")
    try:
        key.public_key().verify(_decoded(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature:
        raise _undecodable() from None
    claims = _part(token, 1)
    issued_s, expires_s = claims.get("iat"), claims.get("exp")
    if not isinstance(issued_s, int) or issued_s > now_s + DRIFT_S:
        raise Refused(
            401,
            "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was "
            "issued",
        )
    if not isinstance(expires_s, int) or expires_s <= now_s:
        raise Refused(
            401,
            f"{EXPIRES} must be a numeric value representing the future time at which the assertion expires",
        )
    if expires_s > now_s + AGE_S_MAX + DRIFT_S:
        raise Refused(401, f"{EXPIRES} is too far in the future")


def _part(token: str, number: int) -> dict[str, Any]:
    parts = token.split(".")
    if len(parts) != 3:
        raise _undecodable()
    try:
        head, found = (json.loads(_decoded(parts[at])) for at in (0, number))
    except ValueError:
        raise _undecodable() from None
    if not isinstance(head, dict) or not isinstance(found, dict) or head.get("alg") != "RS256":
        raise _undecodable()
    return found


def _decoded(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raise _undecodable() from None


def _undecodable() -> Refused:
    return Refused(401, "A JSON web token could not be decoded")
