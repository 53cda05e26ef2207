"""Parsing of a run's deadline."""

import re
from datetime import UTC, date, datetime, timedelta

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def parse_deadline(text: str) -> int:
    """Return the Unix time in seconds of an ISO 8601 date-time with its UTC offset, or of the end (in UTC) of
    a date. Raises ValueError.
    """
    try:
        if _DATE.fullmatch(text):
            day = date.fromisoformat(text) + timedelta(days=1)
            return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
        at = datetime.fromisoformat(text)
        if at.tzinfo is not None:
            return int(at.timestamp())
    except (ValueError, OverflowError) as error:
        reason = (
            "is neither a date such as 2026-12-01 (meaning its end, in UTC) nor a date-time such as "
            "2026-12-01T18:00+01:00"
        )
        raise ValueError(f"{text[:60]!r} {reason}") from error
    raise ValueError(f"{text[:60]!r} has no UTC offset: write Z or for example +01:00 at its end")
