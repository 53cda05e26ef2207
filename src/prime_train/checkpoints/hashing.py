"""The name of a content: its hash.

BLAKE3, because a name that decides what is sent and what is trusted has to be a cryptographic one, and this is the fastest of those.
"""

from blake3 import blake3

from prime_train.ports import Data


def digest_of(data: Data) -> str:
    """`blake3-<hex>` of the content; other threads run meanwhile."""
    return f"blake3-{blake3(data).hexdigest()}"
