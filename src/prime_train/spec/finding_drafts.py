"""The tree of a YAML text, and drafts of findings about the text."""

from dataclasses import dataclass

from prime_train.spec.finding import Finding
from prime_train.spec.tree import (
    Listing,
    Mapping,
    Node,
    Plain,
    Scalar,
    SourcePosition,
    TreeEntry,
    Value,
    plain,
    scalars,
)
from prime_train.text.redaction import redacted

__all__ = [
    "FindingDraft",
    "Listing",
    "Mapping",
    "Node",
    "ParseAborted",
    "Plain",
    "Scalar",
    "SourcePosition",
    "TreeEntry",
    "Value",
    "finding",
    "plain",
    "scalars",
]

DRAFTS_MAX = 50
"""Limit of findings of one kind per file; the rest appears once these are corrected."""


@dataclass(frozen=True)
class FindingDraft:
    """A finding without its file name."""

    code: str
    place: SourcePosition
    message: str
    fix: str = ""
    value: str = ""


class ParseAborted(Exception):
    """Parsing cannot continue after this mistake."""

    def __init__(self, draft: FindingDraft) -> None:
        super().__init__(draft.message)
        self.draft = draft


def finding(file: str, draft: FindingDraft) -> Finding:
    """Return the draft as a finding of `file`, with anything that looks like a secret redacted."""
    message, fix, value = (redacted(text) for text in (draft.message, draft.fix, draft.value))
    return Finding(
        draft.code,
        message,
        draft.place.file or file,
        draft.place.line,
        draft.place.column,
        fix=fix,
        value=value,
    )
