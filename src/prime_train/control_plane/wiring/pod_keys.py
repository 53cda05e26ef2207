"""Chooses the keys to the bucket that machines get: temporary ones of a role, or permanent ones."""

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
"""Variables that name the bucket's region and endpoint, as AWS's tools read them."""


def keys_for_pods(url: str, environment: Mapping[str, str]) -> "tuple[dict[str, str], Lend | None]":
    """Return the machines' environment for the bucket at `url`, and the function that issues temporary keys, if any. Keys set for pods
    alone take precedence over the role, and the role over the control plane's own keys. Raises PermanentError if there are none."""
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
    """Assume the role once, so that a mistake does not show up only on a paid machine. Raises UsageError if it cannot be assumed."""
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
