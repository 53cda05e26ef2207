"""Parsing of a run's deadline."""

import re
from datetime import UTC, date, datetime, timedelta

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def parse_deadline(text: str) -> int:
    """Return the Unix time in seconds of an ISO 8601 date-time with its UTC offset, or of the end (in UTC) of a date. Raises ValueError."""
    try:
        if _DATE.fullmatch(text):
            day = date.fromisoformat(text) + timedelta(days=1)
            return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
        at = datetime.fromisoformat(text)
        if at.tzinfo is not None:
            return int(at.timestamp())
    except (ValueError, OverflowError) as error:
        said = "is no date such as 2026-12-01 (its end, in UTC), and no date-time such as 2026-12-01T18:00+01:00"
        raise ValueError(f"{text[:60]!r} {said}") from error
    raise ValueError(f"{text[:60]!r} does not say its offset from UTC: write Z or, say, +01:00 at its end")
