"""Looks for what must not be seen, in whatever form it may have got out."""

import base64
from collections.abc import Iterable, Mapping
from urllib.parse import quote, quote_plus

from prime_train.core.wire import attempt_key, operator_key
from tests import builders as b
from tests.webhook.asking import ATTEMPT
from tests.webhook.attacks import OTHER

SHOWN_CHARS = 200


def keys_of(master: bytes) -> dict[str, str]:
    """The master key, and all that is made of it for the runs of the attacks."""
    made = {
        f"attempt {attempt} of {run}": attempt_key(master, run, attempt) for run in (b.RUN_ID, OTHER) for attempt in range(1, ATTEMPT + 2)
    }
    return made | {"master key": master.hex(), "operator's key": operator_key(master), "watcher's key": attempt_key(master, "canary", 1)}


def forms(value: str) -> set[str]:
    """The value as it is, in base64 at each of the three places where it may begin, and as a part of an address."""
    raw = value.encode()
    shifted = (base64.b64encode(b"\0" * lead + raw).decode() for lead in range(3))
    # What stands beside it changes the letters at both ends.
    inner = {text[4:-4] for text in shifted if len(text) > 24}
    return {value, quote(value, safe=""), quote_plus(value)} | inner | {text.translate(str.maketrans("+/", "-_")) for text in inner}


def leaks(text: str, secrets: Mapping[str, str]) -> list[str]:
    """Which secrets are in the text, each with what stands before it."""
    return [f"{name}: ...{text[max(0, text.find(form) - SHOWN_CHARS) : text.find(form)]}" for name, form in _all(secrets) if form in text]


def _all(secrets: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    return ((name, form) for name, value in secrets.items() for form in forms(value))
