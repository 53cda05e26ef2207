"""Refusals in the form of each service."""

import json
from xml.sax.saxutils import escape

from tests.fakes.iam.policies import Wanted

JSON_ERRORS = {
    "dynamodb": (400, "application/x-amz-json-1.0", "com.amazon.coral.service#AccessDeniedException"),
    "secretsmanager": (400, "application/x-amz-json-1.1", "AccessDeniedException"),
    "lambda": (403, "application/json", "AccessDeniedException"),
}


def refusal(service: str, who: str, refused: Wanted) -> tuple[int, str, bytes]:
    """Return status, content type and body."""
    message = f"User: {who} is not authorized to perform: {refused.action} on resource: {refused.resource}"
    if service in JSON_ERRORS:
        status, kind, code = JSON_ERRORS[service]
        return status, kind, json.dumps({"__type": code, "message": message, "Message": message}).encode()
    about = f"<Code>AccessDenied</Code><Message>{escape(message)}</Message>"
    if service == "s3":
        return 403, "application/xml", f"<Error>{about}</Error>".encode()
    namespace = "https://sts.amazonaws.com/doc/2011-06-15/"
    body = f'<ErrorResponse xmlns="{namespace}"><Error><Type>Sender</Type>{about}</Error></ErrorResponse>'
    return 403, "text/xml", body.encode()
