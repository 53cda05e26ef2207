"""The tree of a YAML text, and what is wrong with the text: troubles, which become findings."""

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
"""Of one kind in one file: whoever mends so many may ask again."""


@dataclass(frozen=True)
class Draft:
    """A finding in the making: it lacks only the file."""

    code: str
    place: Place
    message: str
    fix: str = ""
    value: str = ""


class ParseAborted(Exception):
    """Reading cannot go on after this trouble."""

    def __init__(self, trouble: Draft) -> None:
        super().__init__(trouble.message)
        self.trouble = trouble


def finding(file: str, trouble: Draft) -> Finding:
    """As it is told; what looks like a secret is left out of it."""
    message, fix, value = (masked(text) for text in (trouble.message, trouble.fix, trouble.value))
    return Finding(trouble.code, message, trouble.place.file or file, trouble.place.line, trouble.place.column, fix=fix, value=value)
