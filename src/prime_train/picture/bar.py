"""The ledger as one stacked bar with its legend: seconds and dollars."""

from collections.abc import Sequence

from prime_train.picture.facts import Share
from prime_train.picture.svg import PART_COLOURS, dollars, number, seconds, tag, text, width_of

BAR_HEIGHT = 132
_BAR = 30


def ledger_bar(shares: Sequence[Share], *, left: float, top: float, width: float) -> str:
    """`BAR_HEIGHT` high."""
    paid_s = sum(share.seconds for share in shares)
    usd = sum(share.usd for share in shares)
    useful = next((share.seconds for share in shares if share.name == "useful"), 0.0)
    said = f"{seconds(paid_s)} paid, {dollars(usd)}, {useful / paid_s:.0%} of it useful" if paid_s else "nothing was paid"
    parts = [text(left, top, "Where the paid time went", kind="head"), text(left + width, top, said, kind="soft", anchor="end")]
    x = left
    for share in shares:
        wide = width * share.seconds / paid_s if paid_s else 0.0
        parts.append(_piece(share, x, top + 14, wide))
        x += wide
    column = width / len(shares)
    parts += [_entry(share, left + column * place, top + 14 + _BAR + 24) for place, share in enumerate(shares)]
    return "".join(parts)


def _piece(share: Share, x: float, y: float, wide: float) -> str:
    if wide <= 0:
        return ""
    hint = tag("title", f"{share.name}: {seconds(share.seconds)}, {dollars(share.usd)}")
    piece = tag("rect", hint, x=x, y=y, width=wide, height=_BAR, fill=PART_COLOURS[share.name], data_part=share.name)
    words = f"{number(share.seconds)} s" if share.seconds < 60 else seconds(share.seconds)
    if wide < width_of(words, size=12) + 8:
        return piece
    return piece + text(x + wide / 2, y + _BAR / 2 + 4, words, kind="inside small", anchor="middle")


def _entry(share: Share, x: float, y: float) -> str:
    swatch = tag("rect", x=x, y=y - 10, width=12, height=12, rx=2, fill=PART_COLOURS[share.name])
    cost = f"{seconds(share.seconds)} · {dollars(share.usd)}"
    return swatch + text(x + 18, y, share.name, kind="small") + text(x + 18, y + 17, cost, kind="soft small")
