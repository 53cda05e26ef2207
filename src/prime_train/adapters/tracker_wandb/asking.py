"""The queries to W&B, made by its SDK (`sdk`), or in GraphQL if the SDK is not installed (`plain`)."""

from base64 import b64encode
from typing import Protocol

from prime_train.core.text.redaction import HIDDEN, masked
from prime_train.core.tracker.seen_run import RunSeen

CALL_S = 10
"""Timeout in seconds of each of the few requests that one query takes."""
RUNS_MAX = 1000
SAID_CHARS_MAX = 300
REFUSED = ("permission", "api key", "could not find", "not logged in", "relogin")
"""Phrases, in lower case, in W&B's errors for which a retry does not help."""


class Wandb(Protocol):
    """A client of W&B. If `entity` is empty, the client's default entity is used, or else the account's own. Raises TemporaryError and
    PermanentError as every adapter does."""

    def run(self, project: str, run_id: str, *, entity: str = "") -> RunSeen | None:
        """Return the run as it is now, with its step, or None if there is no run with that id."""

    def running(self, project: str, *, entity: str = "") -> list[RunSeen]:
        """Return the runs of the project that W&B calls running, at most `RUNS_MAX`, without steps."""

    def mark_failed(self, project: str, run_id: str, *, entity: str = "", heard_by_s: int) -> bool:
        """Mark the run as failed if W&B still calls it running and received nothing from it after the second `heard_by_s`. Return False if
        that does not hold or there is no run with that id."""


def basic(key: str) -> str:
    """Return the key as encoded in a Basic authorization header."""
    return b64encode(f"api:{key}".encode()).decode()


def shown(text: str, key: str) -> str:
    """Return a message of W&B or its SDK on one line, cut short and without the key."""
    for secret in (basic(key), key):
        text = text.replace(secret, HIDDEN)
    return masked(" ".join(text.split()))[:SAID_CHARS_MAX]
