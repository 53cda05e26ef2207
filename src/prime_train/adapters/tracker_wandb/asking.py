"""What W&B is asked, in whichever way: by its own SDK (`sdk`), or in its GraphQL where the SDK is not installed (`plain`)."""

from base64 import b64encode
from typing import Protocol

from prime_train.core.text.redaction import HIDDEN, masked
from prime_train.core.tracker.seen_run import RunSeen

CALL_S = 10
"""For each of the few requests that one question takes."""
RUNS_MAX = 1000
SAID_CHARS_MAX = 300
REFUSED = ("permission", "api key", "could not find", "not logged in", "relogin")
"""What W&B says, in small letters, where asking again will not help."""


class Wandb(Protocol):
    """Without an `entity`, the one that was named for all questions, or else the account's own. TemporaryError and PermanentError as every
    adapter raises them."""

    def run(self, project: str, run_id: str, *, entity: str = "") -> RunSeen | None:
        """The run as it is now, with its step; None: there is none of that id."""

    def running(self, project: str, *, entity: str = "") -> list[RunSeen]:
        """What W&B calls running in the project, `RUNS_MAX` at most, without steps."""

    def mark_failed(self, project: str, run_id: str, *, entity: str = "", heard_by_s: int) -> bool:
        """Has W&B call a run failed that it still calls running, and of which it has heard nothing after that second. False: it is not so,
        or there is none of that id."""


def basic(key: str) -> str:
    """The key as it stands in the header of a request."""
    return b64encode(f"api:{key}".encode()).decode()


def shown(text: str, key: str) -> str:
    """What W&B, or its SDK, says: cut short and without the key."""
    for secret in (basic(key), key):
        text = text.replace(secret, HIDDEN)
    return masked(" ".join(text.split()))[:SAID_CHARS_MAX]
