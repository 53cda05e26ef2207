"""Texts of errors: the reason that a rental API gave for a refusal, on one line and cut short, because nobody checks what it wrote."""

from collections.abc import Mapping
from dataclasses import dataclass

from prime_train.adapters.http import Answer, failure
from prime_train.ports import PermanentError, TemporaryError

REASON_CHARS_MAX = 300


@dataclass(frozen=True)
class Refusals:
    """What messages say about refused requests. `title`: the provider; `address`: the environment variable with the API's address;
    `advice`: for the user, by HTTP status."""

    title: str
    address: str
    advice: Mapping[int, str]

    def error(self, answer: Answer, reason: str, *, is_own: bool) -> TemporaryError | PermanentError:
        """Return the error for a response that is not a success. A redirect or a proxy's error page proves nothing about pods. `is_own`:
        whether the provider itself wrote the response, rather than a proxy."""
        if answer.status in self.advice:
            return PermanentError(f"{answered(answer)}: {self.advice[answer.status]}{quoted(reason)}")
        if 300 <= answer.status < 400:
            return PermanentError(f"{answer.what} was answered with a redirect ({answer.status}); check {self.address}")
        if answer.status == 404 and not is_own:
            return TemporaryError(f"{answer.what} was answered with 404, but not by {self.title}; check {self.address}")
        return failure(answer, reason)


def short(text: str) -> str:
    """Return the text on one line, with only printable characters, at most `REASON_CHARS_MAX`."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))[:REASON_CHARS_MAX]


def answered(answer: Answer, reason: str = "") -> str:
    """Return which request was answered with which status, and the reason in brackets if there is one."""
    return f"{answer.what} was answered with {answer.status}{quoted(reason)}"


def quoted(reason: str) -> str:
    return f" ({reason})" if reason else ""
