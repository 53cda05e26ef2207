"""The mark of a bucket: an object that holds its identity, written when the bucket is made.

A folder on an unmounted disk looks like a new and empty bucket, and a mistyped address may lead to another
person's bucket. A control plane stores the identity of the bucket at each address that it has used, and
refuses a bucket without that mark.
"""

import json
import re
from secrets import token_hex

from prime_train.buckets.keys import MARK_KEY
from prime_train.buckets.port import Bucket
from prime_train.errors import PermanentError, TemporaryError

MARK_BYTES_MAX = 4096
_MARK = re.compile(r"[0-9a-f]{32}")


class OtherBucket(TemporaryError):
    """The bucket known at this address is missing, or another one is in its place."""


def other_bucket(where: str, found: str, known: str) -> str:
    """Return the error message. `found` is the identity of the bucket at the address; empty if it has no
    mark.
    """
    what = f"is another bucket ({found})" if found else f"lacks its identity file, {MARK_KEY}"
    return f"the bucket {where} {what}; at this address another bucket is known here ({known})"


def mark_in(data: bytes) -> str:
    """Return the identity in the mark's content, or an empty string if the content is not a mark."""
    try:
        mark = json.loads(data).get("id")
    except (ValueError, AttributeError, RecursionError):
        return ""
    return mark if isinstance(mark, str) and _MARK.fullmatch(mark) else ""


def mark_of(bucket: Bucket) -> str:
    """Return the identity of the bucket, or an empty string if it has no mark. Raises ExternalError."""
    content = bucket.get(MARK_KEY)
    return mark_in(content.data) if content is not None else ""


def marked(bucket: Bucket) -> str:
    """Return the identity of the bucket, after giving it one if it has none; the first of concurrent callers
    sets it. Raises ExternalError.
    """
    if bucket.get(MARK_KEY) is None:
        bucket.put_if(MARK_KEY, json.dumps({"id": token_hex(16)}).encode() + b"\n", tag=None)
    found = mark_of(bucket)
    if not found:
        raise PermanentError(
            f"{MARK_KEY} in the bucket is not an identity file; move it away if it is something else"
        )
    return found
