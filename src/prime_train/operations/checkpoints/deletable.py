"""Check whether what machines delete from the bucket can be brought back."""

from prime_train.adapters.bucket.location import PLACES, place_of, split
from prime_train.adapters.bucket.versioning import Versions, versions_of
from prime_train.control_plane.wiring.home import BUCKET, Home

PAGE = "docs/runbook.md"


def what_machines_may_destroy(home: Home) -> str | None:
    """Return what is missing in the bucket of this home; empty: nothing, None: there is nothing to check here, because the bucket is a
    folder or belongs to another control plane. Raises ExternalError if the bucket cannot be asked."""
    if home.elsewhere or not home.environment.get(BUCKET) or split(home.bucket_url).scheme not in PLACES:
        return None
    name = place_of(home.bucket_url, home.environment).bucket
    for_good = "a machine can delete the checkpoints of its own run for good"
    match versions_of(home.bucket_url, home.environment):
        case Versions.KEPT:
            return ""
        case Versions.UNSUPPORTED:
            return f"the server of {name} keeps no versions, so {for_good}; {PAGE} says what limits that"
        case Versions.NOT_TOLD:
            return f"the keys may not ask whether {name} keeps versions (s3:GetBucketVersioning); if it keeps none, {for_good}"
        case Versions.NOT_KEPT:
            turn_on = f"aws s3api put-bucket-versioning --bucket {name} --versioning-configuration Status=Enabled"
            return f"{name} keeps no versions, so {for_good}; {turn_on} changes that, and {PAGE} has the rule by which versions expire"
