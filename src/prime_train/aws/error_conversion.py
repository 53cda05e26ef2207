"""Converts boto3's exceptions to errors of `ports`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
)

from prime_train.errors import PermanentError, TemporaryError

MESSAGE_CHARS_MAX = 600
"""Length limit of AWS's message. The longest known messages name the caller, the denied action, its resource
and the policy that denies it.
"""
BUSY = frozenset(
    {
        "OperationInProgress",
        "RequestLimitExceeded",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
NO_KEYS = (
    "run aws configure, or aws sso login with AWS_PROFILE, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
)
BOTH = "set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
WRONG = (
    "AWS does not know these credentials, or not in this region; make sure that aws sts get-caller-identity "
    "works first"
)
OLD = "these credentials have expired; get new ones with aws sso login or the tool that issued them"
DENIED = "docs/aws.md lists the permissions that these credentials need"
REMEDIES: Mapping[str, str] = {
    **dict.fromkeys(("ExpiredToken", "ExpiredTokenException", "RequestExpired"), OLD),
    **dict.fromkeys(
        ("AuthFailure", "InvalidAccessKeyId", "InvalidClientTokenId", "SignatureDoesNotMatch"), WRONG
    ),
    "UnrecognizedClientException": WRONG,
    **dict.fromkeys(("403", "AccessDenied", "AccessDeniedException", "UnauthorizedOperation"), DENIED),
}
"""Advice for the user, by AWS's error code."""


@contextmanager
def translated_errors(what: str) -> Iterator[None]:
    """Convert boto3's exceptions to TemporaryError and PermanentError. `what` describes the request in the
    message.
    """
    try:
        yield
    except ClientError as error:
        details = error.response.get("Error", {})
        code = str(details.get("Code", ""))
        kind = TemporaryError if code in BUSY else PermanentError
        raise kind(
            f"{what}: {code}: {str(details.get('Message', ''))[:MESSAGE_CHARS_MAX]}{_remedy(code)}"
        ) from error
    except EndpointConnectionError as error:
        raise TemporaryError(
            f"{what}: {str(error)[:MESSAGE_CHARS_MAX]} Check that the region exists in AWS."
        ) from error
    except (ConnectionError, HTTPClientError) as error:
        raise TemporaryError(f"{what}: {str(error)[:MESSAGE_CHARS_MAX]}") from error
    except PartialCredentialsError as error:
        raise PermanentError(f"{what}: {str(error)[:MESSAGE_CHARS_MAX]}\n  fix: {BOTH}") from error
    except ProfileNotFound as error:
        raise PermanentError(
            f"{what}: {str(error)[:MESSAGE_CHARS_MAX]}\n  fix: aws configure list-profiles lists the "
            "existing profiles"
        ) from error
    except NoCredentialsError as error:
        raise PermanentError(f"{what}: no AWS credentials were found\n  fix: {NO_KEYS}") from error
    except BotoCoreError as error:
        raise PermanentError(f"{what}: {str(error)[:MESSAGE_CHARS_MAX]}") from error


def _remedy(code: str) -> str:
    return f"\n  fix: {REMEDIES[code]}" if code in REMEDIES else ""
