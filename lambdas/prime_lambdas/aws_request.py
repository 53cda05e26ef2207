"""Single requests from a Lambda to AWS services other than its DynamoDB table. They are rare, and one is sent at a time."""

from collections.abc import Mapping
from typing import NamedTuple

from prime_train.adapters.aws_http.service import Service, Unanswered
from prime_train.core.errors import PermanentError, TemporaryError

ANSWER_S_MAX = 3.0
OK_BELOW = 300
SERVER_FAILED_MIN = 500
BUSY = 429


class AwsRequest(NamedTuple):
    """A signed request to an AWS service. `path` must contain nothing that needs URL escaping."""

    service: str
    path: str
    headers: Mapping[str, str]
    body: bytes


def ask(question: AwsRequest, environment: Mapping[str, str], region: str, endpoint: str | None = None) -> bytes:
    """Send the request once and return the body of the response.

    Raises TemporaryError if there is no response, or its status is 5xx or 429, and PermanentError for any other error status. The service's
    own message is left out of both, because it may repeat the request.
    """
    service = Service(question.service, environment, region, endpoint, connect_s=ANSWER_S_MAX, answer_s=ANSWER_S_MAX)
    try:
        answer = service.ask(question.path, question.headers, question.body)
    except Unanswered as error:
        raise TemporaryError(f"{question.service} did not answer: {type(error.__cause__).__name__}") from error
    finally:
        service.close()
    status = answer.status
    if status < OK_BELOW:
        return answer.body
    passes = status >= SERVER_FAILED_MIN or status == BUSY
    raise (TemporaryError if passes else PermanentError)(f"{question.service} answered with {status}")
