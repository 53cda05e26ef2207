"""W&B's own SDK; its exceptions and its output do not leave this module.

The SDK makes its requests in a process of its own, whose retries last longer than a caller can wait, so each call has a timeout. Its errors
may hold whole requests, so they are not chained, and the key is removed from their messages.
"""

import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from prime_train.adapters.tracker_wandb.asking import CALL_S, REFUSED, RUNS_MAX, shown
from prime_train.adapters.tracker_wandb.seen import seen
from prime_train.core.tracker.seen_run import FAILED, RUNNING, RunSeen
from prime_train.ports import OutsideError, PermanentError, TemporaryError

REFUSED_STATUS = frozenset({400, 401, 403, 404})
BUSY = "did not respond in time"

T = TypeVar("T")
Api = Any
"""The SDK's `Api`, which is not fully typed."""


class SdkWandb:
    """A `Wandb` authenticated with `key`. `url` and `entity` replace the SDK's own defaults. Queries run one at a time."""

    def __init__(self, key: str, *, url: str = "", entity: str = "", call_s: int = CALL_S) -> None:
        self._key, self._url, self._entity, self._call_s = key, url, entity, call_s
        self._api: Api = None
        self._turn = threading.Lock()

    def run(self, project: str, run_id: str, *, entity: str = "") -> RunSeen | None:
        return self._asked(lambda api: _found(api, _path(entity or self._entity, project, run_id)))

    def running(self, project: str, *, entity: str = "") -> list[RunSeen]:
        return self._asked(lambda api: list(_running(api, _path(entity or self._entity, project))))

    def mark_failed(self, project: str, run_id: str, *, entity: str = "", heard_by_s: int) -> bool:
        return self._asked(lambda api: _mark_failed(api, _path(entity or self._entity, project, run_id), heard_by_s))

    def _asked(self, question: Callable[[Api], T]) -> T:
        with self._turn:
            try:
                return question(self._opened())
            except OutsideError:
                raise
            except Exception as error:  # the SDK does not document what it raises
                raise self._failure(error) from None

    def _opened(self) -> Api:
        if self._api is None:
            import wandb

            wandb.setup(wandb.Settings(silent=True, quiet=True))
            overrides = {"base_url": self._url} if self._url else {}
            overrides |= {"entity": self._entity} if self._entity else {}
            self._api = wandb.Api(overrides=overrides, api_key=self._key, timeout=self._call_s)
        self._api.flush()  # drop the SDK's cache, which would return the same answer for ever
        return self._api

    def _failure(self, error: Exception) -> OutsideError:
        said = shown(str(error), self._key) or type(error).__name__
        if BUSY in said:
            return TemporaryError(f"W&B did not answer within {self._call_s} s")
        if _status(error) in REFUSED_STATUS or any(word in said.lower() for word in REFUSED):
            return PermanentError(f"W&B refused: {said}")
        return TemporaryError(f"W&B could not be asked: {said}")


def _path(*parts: str) -> str:
    """Return the SDK's path of a run or project. Without an entity, the SDK uses the account's own."""
    return "/".join(part for part in parts if part)


def _one(api: Api, path: str) -> Any:
    """Return the SDK's run, or None if it does not exist."""
    try:
        return api.run(path)
    except Exception as error:
        if _is_absent(error):
            return None
        raise


def _is_absent(error: Exception) -> bool:
    return "could not find run" in str(error).lower()


def _status(error: Exception) -> int:
    """Return W&B's HTTP status from the SDK's error, or 0 if it has none."""
    response = getattr(getattr(error, "exc", None) or error, "response", None)
    return int(getattr(response, "http_status", 0) or 0)


def _found(api: Api, path: str) -> RunSeen | None:
    run = _one(api, path)
    return seen(run) if run is not None else None


def _running(api: Api, path: str) -> Iterator[RunSeen]:
    for count, run in enumerate(api.runs(path, filters={"state": RUNNING})):
        if count >= RUNS_MAX:
            return
        yield seen(run)


def _mark_failed(api: Api, path: str, heard_by_s: int) -> bool:
    run = _one(api, path)
    return run is not None and seen(run).is_silent_since(heard_by_s) and bool(run.update_state(FAILED))
