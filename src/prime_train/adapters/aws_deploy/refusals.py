"""What boto3 raises, as errors of the ports."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError

from prime_train.ports import PermanentError, TemporaryError

SAID_CHARS_MAX = 300
BUSY = frozenset({"Throttling", "ThrottlingException", "TooManyRequestsException", "RequestLimitExceeded", "SlowDown"})


@contextmanager
def told(what: str) -> Iterator[None]:
    """`what`: in words, what is being asked of AWS."""
    try:
        yield
    except ClientError as error:
        said = error.response.get("Error", {})
        kind = TemporaryError if said.get("Code") in BUSY else PermanentError
        raise kind(f"{what}: {said.get('Code', '')}: {str(said.get('Message', ''))[:SAID_CHARS_MAX]}") from error
    except (ConnectionError, HTTPClientError) as error:
        raise TemporaryError(f"{what}: {str(error)[:SAID_CHARS_MAX]}") from error
    except BotoCoreError as error:
        raise PermanentError(f"{what}: {str(error)[:SAID_CHARS_MAX]}") from error
