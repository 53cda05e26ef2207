"""Objects by key, in a folder or in any S3-compatible server."""

from prime_train.adapters.bucket.folder import FolderBucket
from prime_train.adapters.bucket.open import address, open_bucket, signed_upload

__all__ = ["FolderBucket", "address", "open_bucket", "signed_upload"]
