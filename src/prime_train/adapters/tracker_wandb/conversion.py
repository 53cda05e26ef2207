"""Conversion of W&B's data to `TrackerRun`."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime

from prime_train.core.text.redaction import redacted
from prime_train.core.tracker.tracked_run import TrackerRun
from prime_train.core.tracker.urls import address
from prime_train.ports import TemporaryError

TEXT_CHARS_MAX = 500


def tracker_run(node: Mapping[str, object], entity: str, project: str, site: str) -> TrackerRun:
    """Convert a run of W&B's GraphQL, whose `name` is the run's id. Raises TemporaryError if it lacks an expected field."""
    try:
        keys, run_id = node.get("historyKeys"), str(node["name"])
        return TrackerRun(
            entity=entity,
            project=project,
            run_id=run_id,
            name=_shown(node["displayName"] or run_id),
            state=str(node["state"]),
            received_s=_second(node["heartbeatAt"]),
            step=max(0, int(keys.get("lastStep", -1))) if isinstance(keys, Mapping) else None,
            notes=_shown(node["notes"] or ""),
            url=address(entity, project, run_id, site=site),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TemporaryError(f"W&B's answer cannot be parsed: {type(error).__name__}") from None


def summary_of(node: Mapping[str, object]) -> dict[str, object]:
    """Return the summary of a run of W&B's GraphQL, a JSON text. Raises TemporaryError if it is no object, which must not be replaced."""
    try:
        summary = json.loads(str(node.get("summaryMetrics") or "{}"))
    except ValueError:
        summary = None
    if not isinstance(summary, dict):
        raise TemporaryError("W&B's answer cannot be parsed: the summary is not an object")
    return summary


def _shown(text: object) -> str:
    """Return user-written text without control characters and secrets, cut short, safe to print on a terminal."""
    return redacted("".join(char if char.isprintable() else " " for char in str(text)[:TEXT_CHARS_MAX]).strip())


def _second(text: object) -> int:
    """Return the second of an ISO time, or 0 for None. A time without a zone is UTC, as W&B's are."""
    if text is None:
        return 0
    at = datetime.fromisoformat(str(text))
    return int((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp())
