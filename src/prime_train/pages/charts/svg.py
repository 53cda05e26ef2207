"""SVG elements, colours and number formats for the charts."""

from collections.abc import Sequence
from html import escape

from prime_train.text.formatting import span
from prime_train.text.safe import neutralized

ATTEMPT_COLOURS = ("#2f6fde", "#e07b1a", "#2a9d6f", "#9a5bd6", "#d1496b", "#1295a6")
PART_COLOURS = {
    "provision": "#8f9bb3",
    "restore": "#b583e0",
    "useful": "#2a9d6f",
    "recomputed": "#e0a21a",
    "after": "#1295a6",
    "detection": "#d9534f",
    "teardown": "#5f6b80",
}

STYLE = """
.pt-svg { --bg: #ffffff; --panel: #f6f7f9; --ink: #1b2230; --soft: #626d80; --line: #d9dee7; --idle: #d9534f; --again: #e0a21a; }
@media (prefers-color-scheme: dark) {
  .pt-svg { --bg: #12161e; --panel: #1a202b; --ink: #e8ecf3; --soft: #98a3b6; --line: #303949; --idle: #ef6b66; --again: #f0b93a; }
}
.pt-svg text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; fill: var(--ink); }
.pt-svg .soft { fill: var(--soft); }
.pt-svg .small { font-size: 12px; }
.pt-svg .title { font-size: 17px; font-weight: 600; }
.pt-svg .head { font-size: 14px; font-weight: 600; }
.pt-svg .bg { fill: var(--bg); }
.pt-svg .panel { fill: var(--panel); }
.pt-svg .grid { stroke: var(--line); stroke-width: 1; }
.pt-svg .axis { stroke: var(--soft); stroke-width: 1; }
.pt-svg .idle { fill: var(--idle); opacity: 0.16; }
.pt-svg .again { fill: var(--again); opacity: 0.17; }
.pt-svg .mark { stroke: var(--ink); stroke-width: 1.2; stroke-dasharray: 4 3; opacity: 0.75; }
.pt-svg .jump { stroke: var(--soft); stroke-width: 1.4; stroke-dasharray: 2 4; fill: none; }
.pt-svg .steps { fill: none; stroke-width: 2.6; stroke-linejoin: round; stroke-linecap: round; }
.pt-svg .dot { stroke: var(--bg); stroke-width: 1.6; }
.pt-svg .halo { paint-order: stroke; stroke: var(--bg); stroke-width: 5px; stroke-linejoin: round; }
.pt-svg .curve { fill: none; stroke: #2f6fde; stroke-width: 2; stroke-linejoin: round; }
.pt-svg .trend { fill: none; stroke: #2f6fde; stroke-width: 2.4; stroke-linejoin: round; }
.pt-svg .curve-end { fill: #2f6fde; stroke: var(--bg); stroke-width: 1.6; }
.pt-svg .inside { fill: #ffffff; font-weight: 600; }
"""


def tag(name: str, content: str = "", **attributes: str | float) -> str:
    """Return an element around `content`, which is already SVG. `_` in an attribute's name becomes a hyphen;
    `kind` becomes its class.
    """
    named = (
        (("class" if key == "kind" else key.replace("_", "-")), value) for key, value in attributes.items()
    )
    inner = "".join(
        f' {key}="{escape(neutralized(value) if isinstance(value, str) else number(value))}"'
        for key, value in named
    )
    return f"<{name}{inner}>{content}</{name}>" if content else f"<{name}{inner}/>"


def svg_image(content: str, width: float, height: float, label: str) -> str:
    """Return a complete SVG around `content`, with the style of all charts. `label`: a description of the
    chart for screen readers.
    """
    return tag(
        "svg",
        tag("style", STYLE) + content,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        kind="pt-svg",
        role="img",
        aria_label=label,
    )


def text(
    x: float, y: float, words: str, *, kind: str = "", anchor: str = "start", **attributes: str | float
) -> str:
    return tag("text", escape(neutralized(words)), x=x, y=y, kind=kind, text_anchor=anchor, **attributes)


def number(value: float) -> str:
    """Return a number with up to two decimals, without trailing zeros."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def colour_of(attempt: int) -> str:
    return ATTEMPT_COLOURS[(attempt - 1) % len(ATTEMPT_COLOURS)]


def width_of(words: str, *, size: float = 13) -> float:
    """Return the approximate width in pixels; text cannot be measured here."""
    return len(words) * size * 0.56


def seconds(value: float) -> str:
    """Return the seconds as formatted everywhere, but with tenths below a minute, such as 12.3 s."""
    return f"{number(round(value, 1))} s" if value < 60 else span(value)


def ticks(low: float, high: float, steps: Sequence[float], wanted: int) -> list[float]:
    """Return round values from `low` to `high`, about `wanted` of them."""
    span = max(high - low, 1e-9)
    size = next((step for step in steps if span / step <= wanted), steps[-1])
    count = min(int(span / size), 10 * wanted)
    return [low + size * index for index in range(count + 1)]
