"""The ledger as one stacked bar with a legend of seconds and dollars."""

from prime_train.pages.charts.svg import PART_COLOURS, tag, text, width_of
from prime_train.runs.figures import LedgerPart, RunFigures
from prime_train.text.formatting import usd

BAR_HEIGHT = 132
_BAR = 30


def ledger_bar(now: RunFigures, *, left: float, top: float, width: float) -> str:
    """Return the bar as SVG; it is `BAR_HEIGHT` high."""
    paid_s = now.totals.paid_s
    summary = f"{now.paid} paid, {usd(now.totals.usd)}, {now.useful_share} of it useful" if paid_s else "nothing was paid yet"
    parts = [text(left, top, "Where the paid time went", kind="head"), text(left + width, top, summary, kind="soft", anchor="end")]
    x = left
    for part in now.parts:
        wide = width * part.seconds / paid_s if paid_s else 0.0
        parts.append(_piece(part, x, top + 14, wide))
        x += wide
    column = width / len(now.parts)
    parts += [_entry(part, left + column * place, top + 14 + _BAR + 24) for place, part in enumerate(now.parts)]
    return "".join(parts)


def _piece(part: LedgerPart, x: float, y: float, wide: float) -> str:
    if wide <= 0:
        return ""
    hint = tag("title", f"{part.name}: {part.time}, {part.money}")
    piece = tag("rect", hint, x=x, y=y, width=wide, height=_BAR, fill=PART_COLOURS[part.name], data_part=part.name)
    if wide < width_of(part.time, size=12) + 8:
        return piece
    return piece + text(x + wide / 2, y + _BAR / 2 + 4, part.time, kind="inside small", anchor="middle")


def _entry(part: LedgerPart, x: float, y: float) -> str:
    swatch = tag("rect", x=x, y=y - 10, width=12, height=12, rx=2, fill=PART_COLOURS[part.name])
    cost = f"{part.time} · {part.money}"
    return swatch + text(x + 18, y, part.name, kind="small") + text(x + 18, y + 17, cost, kind="soft small")
