"""Chooses the keys to the bucket that machines get: temporary ones of a role, or permanent ones."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from prime_train.buckets.location import POD_PREFIX, pod_keys
from prime_train.environment import ROLE
from prime_train.errors import PermanentError, TemporaryError, UsageError
from prime_train.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.webhook.state import IssueCredentials

PAIR = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
TRIED_RUN = "serve"
PLACE = ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
"""Variables that name the bucket's region and endpoint, as AWS's tools read them."""


def keys_for_pods(
    url: str, environment: Mapping[str, str]
) -> "tuple[dict[str, str], IssueCredentials | None]":
    """Return the machines' environment for the bucket at `url`, and the function that issues temporary keys,
    if any. Keys set for pods alone take precedence over the role, and the role over the control plane's own
    keys. Raises PermanentError if there are none.
    """
    if not environment.get(ROLE):
        return pod_keys(url, environment), None
    from prime_train.buckets.temporary_credentials import CredentialIssuer

    lacks = [POD_PREFIX + name for name in PAIR if not environment.get(POD_PREFIX + name)]
    if not lacks:
        return pod_keys(url, environment), CredentialIssuer(url, environment)
    if len(lacks) < len(PAIR):
        _say(
            "%s is not set, but the other half of the pair is: machines get the role's keys; set both or "
            "neither",
            lacks[0],
        )
    found = {name: environment.get(POD_PREFIX + name) or environment.get(name, "") for name in PLACE}
    return {name: value for name, value in found.items() if value}, CredentialIssuer(url, environment)


def try_role(issue_credentials: "IssueCredentials") -> None:
    """Assume the role once, so that a mistake does not show up only on a paid machine. Raises UsageError if
    it cannot be assumed.
    """
    try:
        issue_credentials(TRIED_RUN, 1)
    except PermanentError as error:
        fix = (
            f"let the control plane assume the role (trust policy and sts:AssumeRole), correct {ROLE}, "
            "or unset it"
        )
        raise UsageError(
            f"the role in {ROLE} cannot be assumed: {error}", fix=fix, code=Exit.EXTERNAL_REFUSED
        ) from error
    except TemporaryError as error:
        _say("it is not known whether the role in %s can be assumed: %s", ROLE, error)


def _say(text: str, *given: object) -> None:
    logging.getLogger("prime_train.serve").warning(text, *given)
