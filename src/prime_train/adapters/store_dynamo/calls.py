"""How DynamoDB is asked, whoever carries it: an operation with a request, as its wire has them; and how it says no."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

CONNECT_S_MAX = 1.0
ANSWER_S_MAX = 2.0
"""DynamoDB answers within some hundredths of a second, or it is better asked again."""

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
"""The same transaction, asked before."""
WRITING = frozenset({"TransactionConflict", "TransactionConflictException", UNDER_WAY})


class Calls(Protocol):
    def ask(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to, for one, `update_item`; asked once. Its `ResponseMetadata` has the `HTTPHeaders`, `date` among them. Raises
        `RequestRefused`, `Unreached` and `Unable`."""


class RequestRefused(Exception):
    """DynamoDB said no: `code` is its word for why, `item` what was there where a condition was not met, `reasons` those of a transaction,
    an entry an action."""

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
        """Whether the very same may be asked again at once."""
        codes = {self.code, *(reason.get("Code") for reason in self.reasons)}
        return bool(codes & BUSY and UNMET not in codes) or self.code == UNDER_WAY or self.status >= SERVER_FAILED_MIN


class Unreached(Exception):
    """There was no answer: it is not known whether it was heard."""


class Unable(Exception):
    """It cannot be asked at all, such as without keys."""


def shortened(text: str) -> str:
    """Its first line: what follows may repeat the request, with its session's token."""
    return text.partition("\n")[0][:MESSAGE_CHARS_MAX]
