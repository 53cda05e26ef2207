"""The errors that callers are meant to handle.

The outside fails in the two ways that matter: `TemporaryError`, try again later, and the rest. What a user asked for and cannot have is a
`UsageError`.
"""

from prime_train.core.exit_codes import Exit


class OutsideError(Exception):
    """Something outside failed."""


class TemporaryError(OutsideError):
    """It may work later; of a call that changes something it is not known whether it did. `delay_s`: not before."""

    def __init__(self, message: str, *, delay_s: float = 0.0) -> None:
        super().__init__(message)
        self.delay_s = delay_s


class PermanentError(OutsideError):
    """It was refused, and asking again will not help."""


class NoCapacity(OutsideError):
    """The provider said for certain that it has no such machine now: nothing was created."""


class LimitReached(NoCapacity):
    """The provider said for certain that the account may have no more machines now, whichever they are: nothing was created, and no offer
    is at fault."""


class NoFunds(OutsideError):
    """The provider said for certain that nobody pays for the machine: nothing was created."""


class UsageError(Exception):
    """What the user asked for cannot be done. The message says what is wrong, `fix` what to do about it, `code` how a command ends."""

    def __init__(self, message: str, *, fix: str = "", code: Exit = Exit.USAGE) -> None:
        super().__init__(message)
        self.fix, self.code = fix, code
