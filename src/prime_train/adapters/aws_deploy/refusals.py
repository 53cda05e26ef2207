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

from prime_train.ports import PermanentError, TemporaryError

SAID_CHARS_MAX = 600
"""Length limit of AWS's message; the longest one names who was denied what, on what and by which policy."""
BUSY = frozenset(
    {"OperationInProgress", "RequestLimitExceeded", "SlowDown", "Throttling", "ThrottlingException", "TooManyRequestsException"}
)
NO_KEYS = "aws configure, aws sso login with AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY give some"
BOTH = "set both, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
WRONG = "AWS does not know these keys, or not in this region; aws sts get-caller-identity has to work first"
OLD = "these keys have run out; aws sso login, or whatever gave them, gives new ones"
DENIED = "docs/aws.md says what these keys must be allowed"
REMEDIES: Mapping[str, str] = {
    **dict.fromkeys(("ExpiredToken", "ExpiredTokenException", "RequestExpired"), OLD),
    **dict.fromkeys(("AuthFailure", "InvalidAccessKeyId", "InvalidClientTokenId", "SignatureDoesNotMatch"), WRONG),
    "UnrecognizedClientException": WRONG,
    **dict.fromkeys(("403", "AccessDenied", "AccessDeniedException", "UnauthorizedOperation"), DENIED),
}
"""Advice for the user, by AWS's error code."""


@contextmanager
def told(what: str) -> Iterator[None]:
    """Convert boto3's exceptions to TemporaryError and PermanentError. `what` describes the request in the message."""
    try:
        yield
    except ClientError as error:
        said = error.response.get("Error", {})
        code = str(said.get("Code", ""))
        kind = TemporaryError if code in BUSY else PermanentError
        raise kind(f"{what}: {code}: {str(said.get('Message', ''))[:SAID_CHARS_MAX]}{_remedy(code)}") from error
    except EndpointConnectionError as error:
        raise TemporaryError(f"{what}: {str(error)[:SAID_CHARS_MAX]} is that region one of AWS's?") from error
    except (ConnectionError, HTTPClientError) as error:
        raise TemporaryError(f"{what}: {str(error)[:SAID_CHARS_MAX]}") from error
    except PartialCredentialsError as error:
        raise PermanentError(f"{what}: {str(error)[:SAID_CHARS_MAX]}\n  fix: {BOTH}") from error
    except ProfileNotFound as error:
        raise PermanentError(f"{what}: {str(error)[:SAID_CHARS_MAX]}\n  fix: aws configure list-profiles names those there are") from error
    except NoCredentialsError as error:
        raise PermanentError(f"{what}: there are no keys of AWS here\n  fix: {NO_KEYS}") from error
    except BotoCoreError as error:
        raise PermanentError(f"{what}: {str(error)[:SAID_CHARS_MAX]}") from error


def _remedy(code: str) -> str:
    return f"\n  fix: {REMEDIES[code]}" if code in REMEDIES else ""
