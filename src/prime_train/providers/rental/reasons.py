"""What the refusals of a rental API mean: tables of statuses and of the provider's own words.

A reason that a provider gives is put on one line and cut short, because nobody checks what it wrote.
"""

import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass

from prime_train.errors import ExternalError, PermanentError, TemporaryError
from prime_train.http import HttpResponse, failure

REASON_CHARS_MAX = 300


@dataclass(frozen=True)
class CreateRefusal:
    """What it means if a create call is refused with one of these statuses and, with `words`, for a reason in
    such words. `advice`: for the user. `is_own`: only if the provider itself wrote the response."""

    error: type[ExternalError]
    statuses: Container[int]
    words: re.Pattern[str] | None = None
    advice: str = ""
    is_own: bool = False


@dataclass(frozen=True)
class Refusals:
    """What refused requests mean. `title`: the provider; `address`: the environment variable with the API's
    address; `advice`: for the user, by HTTP status. `reason_in` returns the provider's reason, empty for
    anything that it did not write; `is_own` whether the provider itself wrote a response, rather than a
    proxy, if not each with a reason is; `says_unknown` whether that is about an object that does not exist,
    if not each 404 of its own is. `creation`: what refused create calls mean, of which the first row that
    applies counts."""

    title: str
    address: str
    advice: Mapping[int, str]
    reason_in: Callable[[HttpResponse], str]
    is_own: Callable[[HttpResponse], bool] | None = None
    says_unknown: Callable[[HttpResponse], bool] | None = None
    creation: tuple[CreateRefusal, ...] = ()

    def error(self, answer: HttpResponse) -> TemporaryError | PermanentError:
        """Return the error for a response that is not a success. A redirect or a proxy's error page proves
        nothing about pods."""
        reason = self.reason_in(answer)
        if answer.status in self.advice:
            return PermanentError(f"{answered(answer)}: {self.advice[answer.status]}{quoted(reason)}")
        if 300 <= answer.status < 400:
            return PermanentError(
                f"{answer.what} was answered with a redirect ({answer.status}); check {self.address}"
            )
        if answer.status == 404 and not self._wrote(answer):
            return TemporaryError(
                f"{answer.what} was answered with 404, but not by {self.title}; check {self.address}"
            )
        return failure(answer, reason)

    def create_error(self, answer: HttpResponse) -> ExternalError | None:
        """Return the error for a create call that was refused, if a row of `creation` applies: nothing was
        rented then.
        """
        reason, is_own = self.reason_in(answer), self._wrote(answer)
        for row in self.creation:
            if (
                answer.status in row.statuses
                and (is_own or not row.is_own)
                and (row.words is None or row.words.search(reason))
            ):
                return row.error(answered(answer, reason) + (f"; {row.advice}" if row.advice else ""))
        return None

    def is_unknown(self, answer: HttpResponse) -> bool:
        """Return whether the provider itself reports that the object does not exist. A proxy's 404 page does
        not count: if it were taken as proof that a pod has ended, one wrong address would launch every run a
        second time.
        """
        return answer.status == 404 and (self.says_unknown or self._wrote)(answer)

    def _wrote(self, answer: HttpResponse) -> bool:
        return bool(self.reason_in(answer)) if self.is_own is None else self.is_own(answer)


def short(text: str) -> str:
    """Return the text on one line, with only printable characters, at most `REASON_CHARS_MAX`."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))[:REASON_CHARS_MAX]


def answered(answer: HttpResponse, reason: str = "") -> str:
    """Return which request was answered with which status, and the reason in brackets if there is one."""
    return f"{answer.what} was answered with {answer.status}{quoted(reason)}"


def quoted(reason: str) -> str:
    return f" ({reason})" if reason else ""
