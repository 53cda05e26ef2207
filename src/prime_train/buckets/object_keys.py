"""Valid object keys, the same for a folder and for S3."""

from prime_train.errors import PermanentError

KEY_BYTES_MAX = 1024
HIDDEN = ".tmp"
"""Name of the folder in a folder bucket that holds unfinished writes."""


def check_key(key: str) -> None:
    """Raise PermanentError if `key` is not valid: relative parts with / between them, no "." or "..", no
    control characters, at most 1024 bytes of UTF-8, not starting with `HIDDEN`.
    """
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        raise PermanentError(f"the key {key[:80]!r} is not Unicode text") from None
    if not _is_path(key) or key.startswith(HIDDEN):
        reason = (
            "a key has parts separated by /, none of them empty, . or .., without control characters, and "
            "the first part must not "
            f"start with {HIDDEN}"
        )
        raise PermanentError(f"{key[:80]!r} is not a valid key: {reason}")
    if size > KEY_BYTES_MAX:
        raise PermanentError(f"the key {key[:80]!r}... has {size} bytes; at most {KEY_BYTES_MAX} are allowed")


def folder_of(prefix: str) -> str | None:
    """Return the folder that contains all keys with this prefix ("" for the root), or None if no valid key
    can have it.
    """
    folder = prefix.rpartition("/")[0]
    return folder if (not folder and not prefix.startswith("/")) or _is_path(folder) else None


def _is_path(text: str) -> bool:
    return not any(part in ("", ".", "..") for part in text.split("/")) and not any(
        ord(c) < 32 or ord(c) == 127 for c in text
    )
