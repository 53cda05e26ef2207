"""Conversion of W&B's data to `RunSeen`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from prime_train.core.text.redaction import masked
from prime_train.core.tracker.pages import address
from prime_train.core.tracker.seen_run import RunSeen
from prime_train.ports import TemporaryError

TEXT_CHARS_MAX = 500


def seen(run: Any) -> RunSeen:
    """Convert the SDK's run. Raises TemporaryError if it lacks an expected field."""
    with _understood():
        names = ("id", "name", "state", "heartbeatAt", "notes")
        told = {name: getattr(run, name) for name in names} | {"historyKeys": getattr(run, "historyKeys", None)}
        return _seen(told, str(run.entity), str(run.project), str(run.id), str(run.url))


def seen_in(node: Mapping[str, object], entity: str, project: str, site: str) -> RunSeen:
    """Convert a run of W&B's GraphQL, whose `name` is the run's id. Raises TemporaryError as `seen` does."""
    with _understood():
        run_id = str(node["name"])
        return _seen({**node, "name": node["displayName"]}, entity, project, run_id, address(entity, project, run_id, site=site))


def _seen(told: Mapping[str, object], entity: str, project: str, run_id: str, url: str) -> RunSeen:
    keys = told.get("historyKeys")
    return RunSeen(
        entity=entity,
        project=project,
        run_id=run_id,
        name=_shown(told["name"] or run_id),
        state=str(told["state"]),
        heard_s=_second(told["heartbeatAt"]),
        step=max(0, int(keys.get("lastStep", -1))) if isinstance(keys, Mapping) else None,
        notes=_shown(told["notes"] or ""),
        url=url,
    )


@contextmanager
def _understood() -> Iterator[None]:
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TemporaryError(f"W&B's answer is not understood: {type(error).__name__}") from None


def _shown(text: object) -> str:
    """Return user-written text without control characters and secrets, cut short, safe to print on a terminal."""
    return masked("".join(char if char.isprintable() else " " for char in str(text)[:TEXT_CHARS_MAX]).strip())


def _second(text: object) -> int:
    """Return the second of an ISO time, or 0 for None. A time without a zone is UTC, as W&B's are."""
    if text is None:
        return 0
    at = datetime.fromisoformat(str(text))
    return int((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp())
