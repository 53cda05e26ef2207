"""Converts DynamoDB's errors to errors of `ports`, with advice for the user."""

from prime_train.errors import PermanentError, TemporaryError
from prime_train.stores.dynamo.calls import BUSY, WRITING, RequestRefused, Unable, Unreached, shortened

_KEYS = "the keys are not accepted; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
_UNEXPECTED = "this is an unexpected error; please report it (an item may have at most 400 KB)"

_TEMPORARY = dict.fromkeys(BUSY, "too many requests at once; try again") | dict.fromkeys(
    WRITING, "other processes are writing the same items; try again"
)
_PERMANENT = {
    "ResourceNotFoundException": "the table does not exist; check its name, the region and the account, or "
    "create it",
    "AccessDeniedException": "these credentials lack permission; they need to read and write this table's "
    "items",
    "UnrecognizedClientException": _KEYS,
    "IncompleteSignatureException": _KEYS,
    "MissingAuthenticationTokenException": _KEYS,
    "InvalidSignatureException": f"{_KEYS}; also check this machine's clock",
    "ExpiredTokenException": "the session's credentials have expired; sign in again",
    "ValidationException": _UNEXPECTED,
    "ValidationError": _UNEXPECTED,
}


def external_error(where: str, error: RequestRefused | Unreached | Unable) -> TemporaryError | PermanentError:
    """Return the error to raise; `where` names the table and the operation. An unknown refusal is permanent
    unless the server failed.
    """
    if isinstance(error, RequestRefused):
        return _refusal(where, error)
    reason = shortened(str(error))
    if isinstance(error, Unreached):
        return TemporaryError(
            f"{where}: DynamoDB cannot be reached ({reason}); check the network, the region and the endpoint"
        )
    return PermanentError(
        f"{where}: {reason.rstrip('.')}; check that AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
        "AWS_PROFILE, are set"
    )


def _refusal(where: str, refused: RequestRefused) -> TemporaryError | PermanentError:
    reason = f"{refused.code or 'no code'}, {refused.message or refused.status}"
    if refused.code in _PERMANENT:
        return PermanentError(f"{where}: {_PERMANENT[refused.code]} ({reason})")
    if refused.code in _TEMPORARY or refused.is_passing:
        return TemporaryError(
            f"{where}: {_TEMPORARY.get(refused.code, 'DynamoDB failed; try again')} ({reason})"
        )
    return PermanentError(f"{where}: DynamoDB refused the request ({reason})")
