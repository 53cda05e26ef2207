"""Formatting of time, money and lists for people."""

from collections.abc import Iterable, Sequence

_UNITS = (("d", 86_400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1))
_PLACES = 2
_PLACES_MAX = 9


def span(seconds: float) -> str:
    """Return the duration with its two largest units: 12 s, 4 min 5 s, 3 h 20 min, 2 d 4 h"""
    total_s = max(0, int(seconds))
    for unit, size, lower, lower_size in _UNITS:
        if total_s >= size:
            rest = total_s % size // lower_size
            return f"{total_s // size} {unit} {rest} {lower}" if rest else f"{total_s // size} {unit}"
    return f"{total_s} s"


def usd(amount: float) -> str:
    """Return the amount in dollars and cents. Amounts below ten cents have four decimals; still smaller ones
    have more, up to the second digit that is not zero, so that only 0 is shown as $0.00.
    """
    return _dollars(_cents(amount, places := _places(amount)), places)


def size(count: float) -> str:
    """Return the number of bytes with a unit."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def alternatives(names: Iterable[str]) -> str:
    """Return the names as a list in a sentence, the last one after "or"."""
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


# -------------------------------------------------------------------------------------------- parts that
# stand beside their sum


def spans(parts: Sequence[float], total: float) -> list[str]:
    """Return each part as text in the format of `span`, rounded so that the parts add up to `span(total)`."""
    unit, unit_s = next(
        ((lower, lower_size) for _, size, lower, lower_size in _UNITS if total >= size), ("s", 1)
    )
    units = apportioned([max(0.0, part) / unit_s for part in parts], max(0, int(total)) // unit_s)
    return [
        span(count * unit_s) if count or part < 1 else f"under 1 {unit}"
        for count, part in zip(units, parts, strict=True)
    ]


def usds(parts: Sequence[float], total: float) -> list[str]:
    """Return each part in dollars with as many places as `usd(total)`, rounded so that the parts add up to
    it.
    """
    places = _places(total)
    return [
        _dollars(count, places)
        for count in apportioned([part * 10**places for part in parts], _cents(total, places))
    ]


def percents(parts: Sequence[float]) -> list[str]:
    """Return each part's share of their sum as text, rounded so that the shares add up to 100 %; "-" if the
    sum is 0.
    """
    total = sum(parts)
    if not total:
        return ["-"] * len(parts)
    return [f"{count}%" for count in apportioned([part / total * 100 for part in parts], 100)]


def apportioned(values: Sequence[float], total: int) -> list[int]:
    """Return `values` rounded to whole numbers that add up to `total`, in order (method of largest
    remainders).
    """
    floors = [int(value // 1) for value in values]
    left = total - sum(floors)
    by_remainder = sorted(
        range(len(values)), key=lambda place: values[place] - floors[place], reverse=left > 0
    )
    for turn in range(abs(left) if values else 0):
        floors[by_remainder[turn % len(values)]] += 1 if left > 0 else -1
    return floors


def _places(amount: float) -> int:
    if amount >= 0.1 or amount <= 0:
        return _PLACES
    return next(
        (places for places in range(2 * _PLACES, _PLACES_MAX) if amount * 10**places >= 10), _PLACES_MAX
    )


def _cents(amount: float, places: int) -> int:
    """Return the amount in units of its last place."""
    return round(amount * float(10**places))


def _dollars(count: int, places: int) -> str:
    dollars, rest = divmod(abs(count), 10**places)
    return f"{'-' if count < 0 else ''}${dollars:,}.{rest:0{places}d}"
