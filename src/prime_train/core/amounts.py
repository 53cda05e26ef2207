"""Time and money as people read them."""


def span(seconds: float) -> str:
    """12 s, 4 min 5 s, 3 h 20 min, 2 d 4 h"""
    whole = max(0, int(seconds))
    for unit, size, lower, lower_size in (("d", 86_400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= size:
            rest = whole % size // lower_size
            return f"{whole // size} {unit} {rest} {lower}" if rest else f"{whole // size} {unit}"
    return f"{whole} s"


def usd(amount: float) -> str:
    """Cents; for less than ten cents more places, so that a demo's dollars are not all zero."""
    return f"${amount:,.2f}" if amount >= 0.1 or amount == 0 else f"${amount:.4f}"


def size(count: float) -> str:
    """Bytes with a unit."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
