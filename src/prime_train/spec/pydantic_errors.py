"""Validation of a spec with pydantic, with its errors as drafts of findings."""

import json
from collections import Counter
from collections.abc import Sequence

from pydantic import ValidationError

from prime_train.spec import error_messages
from prime_train.spec.finding_drafts import DRAFTS_MAX, FindingDraft, Mapping, plain
from prime_train.spec.spec import RunSpec


def checked(root: Mapping) -> tuple[RunSpec | None, list[FindingDraft]]:
    """Return the spec, or None and its mistakes. An invalid spec is validated a second time without its
    unknown keys, which may hide errors of an entire section.
    """
    spec, errors = _attempt(root)
    if spec is not None:
        return spec, []
    return None, error_messages.drafts(_few([*errors, *_hidden(root, errors)]), root)


def _hidden(root: Mapping, errors: Sequence[error_messages.SpecError]) -> list[error_messages.SpecError]:
    unknown = [error for error in errors if error.kind == "extra_forbidden"]
    if not 0 < len(unknown) <= DRAFTS_MAX:
        return []
    known = set(errors)
    return [
        error for error in _attempt(error_messages.without_unknown(root, unknown))[1] if error not in known
    ]


def _few(errors: Sequence[error_messages.SpecError]) -> list[error_messages.SpecError]:
    """Return at most `DRAFTS_MAX` errors of each kind."""
    seen: Counter[str] = Counter()
    kept = []
    for error in errors:
        seen[error.kind] += 1
        if seen[error.kind] <= DRAFTS_MAX:
            kept.append(error)
    return kept


def _attempt(root: Mapping) -> tuple[RunSpec | None, list[error_messages.SpecError]]:
    # Strict JSON mode: a list counts as a tuple, but text is not a number and `yes` is not 1.
    try:
        return RunSpec.model_validate_json(json.dumps(plain(root)), strict=True), []
    except ValidationError as error:
        return None, [
            error_messages.SpecError.of(row) for row in error.errors(include_url=False, include_input=False)
        ]
