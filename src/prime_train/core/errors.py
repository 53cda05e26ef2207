"""The errors that callers are expected to handle.

External failures are a `TemporaryError` (retry later) or one of the other `OutsideError`s (a retry will not help). A `UsageError` is a
request of the user that cannot be carried out.
"""

from prime_train.core.exit_codes import Exit


class OutsideError(Exception):
    """A call to an external service failed."""


class TemporaryError(OutsideError):
    """A retry may succeed; whether a modifying call took effect is unknown. `delay_s`: seconds to wait before a retry."""

    def __init__(self, message: str, *, delay_s: float = 0.0) -> None:
        super().__init__(message)
        self.delay_s = delay_s


class PermanentError(OutsideError):
    """The service refused the call, and a retry will not help."""


class NoCapacity(OutsideError):
    """The provider confirmed that it has no such machine now: nothing was created."""


class LimitReached(NoCapacity):
    """The provider confirmed that the account may have no more machines now, of any kind: nothing was created, and no offer is at fault."""


class NoFunds(OutsideError):
    """The provider confirmed that the wallet does not cover the machine: nothing was created."""


class UsageError(Exception):
    """A request of the user that cannot be carried out. `fix`: what to do about it; `code`: the exit code of a command."""

    def __init__(self, message: str, *, fix: str = "", code: Exit = Exit.USAGE) -> None:
        super().__init__(message)
        self.fix, self.code = fix, code
