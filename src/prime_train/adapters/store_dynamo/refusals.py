"""Converts DynamoDB's errors to errors of `ports`, with advice for the user."""

from prime_train.adapters.store_dynamo.calls import BUSY, WRITING, RequestRefused, Unable, Unreached, shortened
from prime_train.core.errors import PermanentError, TemporaryError

_KEYS = "the keys are not accepted; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
_ODD = "this is not expected; please report it (an item may have 400 KB)"

_TEMPORARY = dict.fromkeys(BUSY, "too many requests at once; try again") | dict.fromkeys(
    WRITING, "others are writing the same items; try again"
)
_PERMANENT = {
    "ResourceNotFoundException": "there is no such table there; check its name, the region and the account, or make it",
    "AccessDeniedException": "these keys may not do that; they need to read and write this table's items",
    "UnrecognizedClientException": _KEYS,
    "IncompleteSignatureException": _KEYS,
    "MissingAuthenticationTokenException": _KEYS,
    "InvalidSignatureException": f"{_KEYS}; and is this machine's clock right?",
    "ExpiredTokenException": "the session's keys have run out; sign in again",
    "ValidationException": _ODD,
    "ValidationError": _ODD,
}


def outside_error(where: str, error: RequestRefused | Unreached | Unable) -> TemporaryError | PermanentError:
    """Return the error to raise; `where` names the table and the operation. An unknown refusal is permanent unless the server failed."""
    if isinstance(error, RequestRefused):
        return _refusal(where, error)
    said = shortened(str(error))
    if isinstance(error, Unreached):
        return TemporaryError(f"{where}: DynamoDB cannot be reached ({said}); is there a network, and is region or endpoint right?")
    return PermanentError(f"{where}: {said.rstrip('.')}; are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY set, or AWS_PROFILE?")


def _refusal(where: str, refused: RequestRefused) -> TemporaryError | PermanentError:
    said = f"{refused.code or 'no code'}, {refused.message or refused.status}"
    if refused.code in _PERMANENT:
        return PermanentError(f"{where}: {_PERMANENT[refused.code]} ({said})")
    if refused.code in _TEMPORARY or refused.is_passing:
        return TemporaryError(f"{where}: {_TEMPORARY.get(refused.code, 'DynamoDB failed; try again')} ({said})")
    return PermanentError(f"{where}: DynamoDB refused it ({said})")
