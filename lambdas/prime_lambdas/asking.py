"""What a Lambda asks of AWS's services beside its table: seldom, one question at a time."""

from collections.abc import Mapping
from typing import NamedTuple

from prime_train.adapters.aws_http.service import Service, Unanswered
from prime_train.core.errors import PermanentError, TemporaryError

ANSWER_S_MAX = 3.0
OK_BELOW = 300
SERVER_FAILED_MIN = 500
BUSY = 429


class Question(NamedTuple):
    """One request to a service. `path` holds nothing that would have to be escaped."""

    service: str
    path: str
    headers: Mapping[str, str]
    body: bytes


def ask(question: Question, environment: Mapping[str, str], region: str, endpoint: str | None = None) -> bytes:
    """The answer's body, asked once. TemporaryError: no answer, or not now. PermanentError: refused; the words of the service are left out,
    for they may repeat the request."""
    service = Service(question.service, environment, region, endpoint, connect_s=ANSWER_S_MAX, answer_s=ANSWER_S_MAX)
    try:
        said = service.ask(question.path, question.headers, question.body)
    except Unanswered as error:
        raise TemporaryError(f"{question.service} did not answer: {type(error.__cause__).__name__}") from error
    finally:
        service.close()
    status = said.status
    if status < OK_BELOW:
        return said.body
    passes = status >= SERVER_FAILED_MIN or status == BUSY
    raise (TemporaryError if passes else PermanentError)(f"{question.service} answered with {status}")
