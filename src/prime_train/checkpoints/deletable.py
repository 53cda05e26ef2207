"""Check whether what machines delete from the bucket can be brought back."""

from collections.abc import Mapping

from prime_train.buckets.location import PLACES, place_of, split
from prime_train.buckets.versioning import VersionsKept, versions_of
from prime_train.environment import BUCKET

PAGE = "docs/runbook.md"


def what_machines_may_destroy(environment: Mapping[str, str], *, elsewhere: str) -> str | None:
    """Return what is missing in the bucket that the environment names; empty: nothing, None: there is nothing
    to check here, because the bucket is a folder or belongs to another control plane, the one at `elsewhere`.
    Raises ExternalError if the bucket cannot be asked.
    """
    url = environment.get(BUCKET, "")
    if elsewhere or not url or split(url).scheme not in PLACES:
        return None
    name = place_of(url, environment).bucket
    for_good = "a machine can delete the checkpoints of its own run for good"
    match versions_of(url, environment):
        case VersionsKept.KEPT:
            return ""
        case VersionsKept.UNSUPPORTED:
            return f"the server of {name} keeps no versions, so {for_good}; {PAGE} says what limits that"
        case VersionsKept.NOT_TOLD:
            return (
                f"the keys may not ask whether {name} keeps versions (s3:GetBucketVersioning); if "
                "it "
                f"keeps none, {for_good}"
            )
        case VersionsKept.NOT_KEPT:
            turn_on = (
                f"aws s3api put-bucket-versioning --bucket {name} --versioning-configuration Status=Enabled"
            )
            return (
                f"{name} keeps no versions, so {for_good}; {turn_on} changes that, and {PAGE} has "
                "the rule by which versions expire"
            )
