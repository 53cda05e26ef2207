"""Content addressing: the hash by which content is named.

Chunks are uploaded and trusted by this name, so it must be a cryptographic hash; BLAKE3 is the fastest of
those.
"""

from blake3 import blake3

from prime_train.buckets.port import Data


def digest_of(data: Data) -> str:
    """Return `blake3-<hex>` of the content. Releases Python's global interpreter lock, so other threads run
    meanwhile.
    """
    return f"blake3-{blake3(data).hexdigest()}"
