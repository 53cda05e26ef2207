"""The tree of a YAML text, and drafts of findings about the text."""

from dataclasses import dataclass

from prime_train.core.config_tree import Entry, Listing, Mapping, Node, Place, Plain, Scalar, Value, plain, scalars
from prime_train.core.finding import Finding
from prime_train.core.text.redaction import masked

__all__ = [
    "Draft",
    "Entry",
    "Listing",
    "Mapping",
    "Node",
    "ParseAborted",
    "Place",
    "Plain",
    "Scalar",
    "Value",
    "finding",
    "plain",
    "scalars",
]

TROUBLES_MAX = 50
"""Limit of findings of one kind per file; the rest appears once these are corrected."""


@dataclass(frozen=True)
class Draft:
    """A finding without its file name."""

    code: str
    place: Place
    message: str
    fix: str = ""
    value: str = ""


class ParseAborted(Exception):
    """Parsing cannot continue after this mistake."""

    def __init__(self, trouble: Draft) -> None:
        super().__init__(trouble.message)
        self.trouble = trouble


def finding(file: str, trouble: Draft) -> Finding:
    """Return the draft as a finding of `file`, with anything that looks like a secret masked."""
    message, fix, value = (masked(text) for text in (trouble.message, trouble.fix, trouble.value))
    return Finding(trouble.code, message, trouble.place.file or file, trouble.place.line, trouble.place.column, fix=fix, value=value)
