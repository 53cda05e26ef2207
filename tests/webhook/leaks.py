"""Searches for secrets in every form in which they may have been revealed."""

import base64
from collections.abc import Iterable, Mapping
from urllib.parse import quote, quote_plus

from prime_train.runs.signing import market_key
from prime_train.runs.wire import attempt_key, operator_key
from tests import builders as b
from tests.webhook.attacks import OTHER
from tests.webhook.calls import ATTEMPT

SHOWN_CHARS = 200


def keys_of(master: bytes) -> dict[str, str]:
    """Return the master key, and all keys derived from it for the runs of the attacks."""
    made = {
        f"attempt {attempt} of {run}": attempt_key(master, run, attempt)
        for run in (b.RUN_ID, OTHER)
        for attempt in range(1, ATTEMPT + 2)
    }
    return made | {
        "master key": master.hex(),
        "operator's key": operator_key(master),
        "market's key": market_key(master),
        "watcher's key": attempt_key(master, "canary", 1),
    }


def forms(value: str) -> set[str]:
    """Yield the value itself, in base64 at each of the three offsets, and as a part of a URL."""
    raw = value.encode()
    shifted = (base64.b64encode(b"\0" * lead + raw).decode() for lead in range(3))
    # What stands beside it changes the letters at both ends.
    inner = {text[4:-4] for text in shifted if len(text) > 24}
    return (
        {value, quote(value, safe=""), quote_plus(value)}
        | inner
        | {text.translate(str.maketrans("+/", "-_")) for text in inner}
    )


def leaks(text: str, secrets: Mapping[str, str]) -> list[str]:
    """Return the secrets in the text, each with the text before it."""
    return [
        f"{name}: ...{text[max(0, text.find(form) - SHOWN_CHARS) : text.find(form)]}"
        for name, form in _all(secrets)
        if form in text
    ]


def _all(secrets: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    return ((name, form) for name, value in secrets.items() for form in forms(value))
