"""The interface of a DynamoDB client (an operation with a request in wire format), and its errors."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

CONNECT_S_MAX = 1.0
ANSWER_S_MAX = 2.0
"""Read timeout in seconds: DynamoDB answers within some hundredths of a second, so a slower call is better
retried.
"""

MESSAGE_CHARS_MAX = 200
SERVER_FAILED_MIN = 500
BUSY = frozenset(
    {
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottlingError",
        "ThrottlingException",
    }
)
UNMET = "ConditionalCheckFailed"
UNDER_WAY = "TransactionInProgressException"
"""Error code for a transaction that has been requested before and is still in progress."""
WRITING = frozenset({"TransactionConflict", "TransactionConflictException", UNDER_WAY})


class Calls(Protocol):
    def ask(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Send one request of an operation such as `update_item`, without retries, and return the response.
        Its `ResponseMetadata` has the `HTTPHeaders`, including `date`. Raises `RequestRefused`, `Unreached`
        and `Unable`.
        """


class RequestRefused(Exception):
    """DynamoDB refused a request. `code`: its error code; `item`: the existing item if a condition was not
    met; `reasons`: the error codes of a refused transaction, one per action.
    """

    def __init__(
        self,
        code: str,
        message: str = "",
        *,
        status: int = 400,
        item: Mapping[str, Any] | None = None,
        reasons: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.message = shortened(message)
        super().__init__(f"{code}: {self.message}")
        self.code, self.status, self.item, self.reasons = code, status, item, reasons

    @property
    def is_passing(self) -> bool:
        """Whether the same request may be retried at once."""
        codes = {self.code, *(reason.get("Code") for reason in self.reasons)}
        return (
            bool(codes & BUSY and UNMET not in codes)
            or self.code == UNDER_WAY
            or self.status >= SERVER_FAILED_MIN
        )


class Unreached(Exception):
    """No response arrived; it is unknown whether the request took effect."""


class Unable(Exception):
    """The request cannot be sent at all, for example without keys."""


def shortened(text: str) -> str:
    """Return the message's first line, cut short: what follows may repeat the request with its session
    token.
    """
    return text.partition("\n")[0][:MESSAGE_CHARS_MAX]
