"""What can be the key of an object: the same in a folder as in S3."""

from prime_train.ports import PermanentError

KEY_BYTES_MAX = 1024
HIDDEN = ".tmp"
"""Where a folder keeps what is being written."""


def check_key(key: str) -> None:
    """Raises PermanentError for what is no key: relative parts with / between them, no "." or "..", 1024 bytes at most."""
    parts = key.split("/")
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        raise PermanentError(f"the key {key[:80]!r} is not Unicode text") from None
    if "\0" in key or parts[0].startswith(HIDDEN) or any(part in ("", ".", "..") for part in parts):
        raise PermanentError(
            f"{key[:80]!r} is no key: parts with / between them, none empty, . or .., the first not starting with {HIDDEN}"
        )
    if size > KEY_BYTES_MAX:
        raise PermanentError(f"the key {key[:80]!r}... has {size} bytes, {KEY_BYTES_MAX} are allowed")
