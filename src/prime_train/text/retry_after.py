"""The header Retry-After: how long a server wants to be left alone."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

DELAY_S_MAX = 3600.0
DIGITS_MAX = 9


def retry_after_s(headers: Mapping[str, str]) -> float:
    """Return the seconds that the response asks to wait, at most `DELAY_S_MAX`; 0 if it does not, or not in a
    form that is understood. `headers`: by name in lower case, or in any. A date counts from the response's
    own date, so that no clock of this machine is needed.
    """
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX:
        return min(DELAY_S_MAX, float(text))
    until, sent = _date(text), _date(headers.get("date", ""))
    return (
        0.0 if until is None or sent is None else min(DELAY_S_MAX, max(0.0, (until - sent).total_seconds()))
    )


def _date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
