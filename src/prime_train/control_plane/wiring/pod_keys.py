"""Which keys to the bucket this control plane gives to machines: its role's, which end, or some that do not."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.control_plane.webhook.context import Lend

ROLE = "PRIME_TRAIN_POD_ROLE"
PAIR = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
TRIED_RUN = "serve"
PLACE = ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
"""Where the bucket is, as AWS's tools read it."""


def keys_for_pods(url: str, environment: Mapping[str, str]) -> "tuple[dict[str, str], Lend | None]":
    """Their environment for the bucket at `url`, and who lends them keys, if somebody does. Keys that were given for pods alone win over
    the role, and the role wins over our own. PermanentError where there are none."""
    from prime_train.adapters.bucket.places import POD_PREFIX, pod_keys

    if not environment.get(ROLE):
        return pod_keys(url, environment), None
    from prime_train.adapters.bucket.temporary_credentials import Lender

    lacks = [POD_PREFIX + name for name in PAIR if not environment.get(POD_PREFIX + name)]
    if not lacks:
        return pod_keys(url, environment), Lender(url, environment)
    if len(lacks) < len(PAIR):
        _say("%s is not set, the other half of the pair is: machines get the role's keys; set both, or none", lacks[0])
    found = {name: environment.get(POD_PREFIX + name) or environment.get(name, "") for name in PLACE}
    return {name: value for name, value in found.items() if value}, Lender(url, environment)


def try_role(lend: "Lend") -> None:
    """Takes the role once, so that it is not a paid machine that finds out. UsageError where it cannot be taken."""
    from prime_train.ports import PermanentError, TemporaryError

    try:
        lend(TRIED_RUN, 1)
    except PermanentError as error:
        fix = f"let whoever serves take the role (its trust policy, and sts:AssumeRole), correct {ROLE}, or unset it"
        raise UsageError(f"the role that {ROLE} names cannot be taken: {error}", fix=fix, code=Exit.OUTSIDE_REFUSED) from error
    except TemporaryError as error:
        _say("whether the role that %s names can be taken is not known: %s", ROLE, error)


def _say(text: str, *given: object) -> None:
    import logging

    logging.getLogger("prime_train.serve").warning(text, *given)
