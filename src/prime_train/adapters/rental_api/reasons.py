"""Texts of errors: the reason that a rental API gave for a refusal, on one line and cut short, because nobody checks what it wrote."""

from prime_train.adapters.http import Answer

REASON_CHARS_MAX = 300


def short(text: str) -> str:
    """Return the text on one line, with only printable characters, at most `REASON_CHARS_MAX`."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))[:REASON_CHARS_MAX]


def answered(answer: Answer, reason: str = "") -> str:
    """Return which request was answered with which status, and the reason in brackets if there is one."""
    return f"{answer.what} was answered with {answer.status}{quoted(reason)}"


def quoted(reason: str) -> str:
    return f" ({reason})" if reason else ""
