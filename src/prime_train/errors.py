"""The errors that callers are expected to handle, all of them a `PrimeTrainError`.

External failures are a `TemporaryError` (retry later) or one of the other `ExternalError`s (a retry will not
help). A `UsageError` is a request of the user that cannot be carried out.
"""

from typing import TYPE_CHECKING

from prime_train.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.advice import Advice


class PrimeTrainError(Exception):
    """Every error that callers are expected to handle: an `ExternalError`, a `UsageError`, or a config that
    cannot be launched.
    """


class ExternalError(PrimeTrainError):
    """A call to an external service failed. `fix`: what to do about it."""

    def __init__(self, message: str = "", *, fix: "str | Advice" = "") -> None:
        super().__init__(message)
        self.fix = fix


class TemporaryError(ExternalError):
    """A retry may succeed; whether a modifying call took effect is unknown. `delay_s`: seconds to wait before
    a retry.
    """

    def __init__(self, message: str, *, delay_s: float = 0.0, fix: "str | Advice" = "") -> None:
        super().__init__(message, fix=fix)
        self.delay_s = delay_s


class NotHere(TemporaryError):
    """This process lacks a means that another process of the same control plane may have, such as a key: the
    work is left to it.
    """


class PermanentError(ExternalError):
    """The service refused the call, and a retry will not help."""


class ObjectTooLarge(PermanentError):
    """The object is too large to be read at once."""


class NoCapacity(ExternalError):
    """The provider confirmed that it has no such machine now: nothing was created."""


class LimitReached(NoCapacity):
    """The provider confirmed that the account may have no more machines now, of any kind: nothing was
    created, and no offer is at fault.
    """


class NoFunds(ExternalError):
    """The provider confirmed that the wallet does not cover the machine: nothing was created."""


class UsageError(PrimeTrainError):
    """A request of the user that cannot be carried out. `fix`: what to do about it; `code`: the exit code of
    a command.
    """

    def __init__(self, message: str, *, fix: "str | Advice" = "", code: Exit = Exit.USAGE) -> None:
        super().__init__(message)
        self.fix, self.code = fix, code
