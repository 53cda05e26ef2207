"""DynamoDB without boto3, for a webhook that receives heartbeats: loading boto3 would take most of the time of its first response."""

import json
from collections.abc import Mapping
from typing import Any

from prime_train.adapters.aws_http.connection import HttpResponse
from prime_train.adapters.aws_http.service import Service, Unanswered
from prime_train.adapters.store_dynamo.calls import ANSWER_S_MAX, CONNECT_S_MAX, SERVER_FAILED_MIN, RequestRefused, Unreached

OK = 200
CONTENT_TYPE = "application/x-amz-json-1.0"
VERSION = "DynamoDB_20120810"


class SignedCalls:
    """A `Calls` of signed requests. If `endpoint` is None, Amazon's endpoint in that region is used. Raises KeyError if the environment has
    no keys. Thread-safe."""

    def __init__(self, environment: Mapping[str, str], region: str, endpoint: str | None = None) -> None:
        self._service = Service("dynamodb", environment, region, endpoint, connect_s=CONNECT_S_MAX, answer_s=ANSWER_S_MAX)

    def close(self) -> None:
        """Close the idle connections. Later calls open new ones."""
        self._service.close()

    def ask(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        body = json.dumps(request, separators=(",", ":")).encode()
        target = f"{VERSION}.{operation.title().replace('_', '')}"
        try:
            response = self._service.ask("/", {"content-type": CONTENT_TYPE, "x-amz-target": target}, body)
        except Unanswered as error:
            raise Unreached(str(error)) from error
        return _answer(response)


def _answer(response: HttpResponse) -> dict[str, Any]:
    status = response.status
    try:
        answer = json.loads(response.body)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise RequestRefused("", "the answer is not JSON", status=max(status, SERVER_FAILED_MIN))
    if status == OK:
        return answer | {"ResponseMetadata": {"HTTPHeaders": {"date": response.date}}}
    message = str(answer.get("message") or answer.get("Message") or "")
    code = str(answer.get("__type", "")).rpartition("#")[2]
    raise RequestRefused(code, message, status=status, item=answer.get("Item"), reasons=answer.get("CancellationReasons", ()))
