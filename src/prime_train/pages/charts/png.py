"""Charts as PNG, for documents and mails that show no SVG. Needs the optional library resvg-py, and a font on
this machine.
"""

import re
from functools import cache

from prime_train.pages.charts.svg import svg_image, text

ZOOM = 2
"""Pixels for each unit of the SVG, so that the chart is sharp in print and on fine screens."""
BACKGROUND = "#ffffff"
FAMILIES = (
    "DejaVu Sans",
    "Liberation Sans",
    "Noto Sans",
    "Open Sans",
    "Roboto",
    "Arial",
    "Helvetica",
    "Helvetica Neue",
    "FreeSans",
    "Ubuntu",
)
"""Fonts of which one is usually there, in the order in which they are tried."""

_DARK = re.compile(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*\s*\}")
_VARIABLE = re.compile(r"(--[a-z]+): ([^;]+);")
_USE = re.compile(r"var\((--[a-z]+)\)")


class CannotDraw(Exception):
    """No PNG can be made on this machine; the message gives the reason and the remedy."""


def png(svg: str) -> bytes:
    """Return a chart of this package as PNG, in light colours. Raises CannotDraw."""
    return _drawn(_plain(svg), _family())


def _plain(svg: str) -> str:
    """Return the SVG without what only browsers know: variables and colours that depend on the screen."""
    light = _DARK.sub("", svg)
    values = dict(_VARIABLE.findall(light))
    return _USE.sub(lambda use: values.get(use[1], use[0]), light)


@cache
def _family() -> str:
    """Return a font that is there. Without one, a renderer leaves all text out silently, and a curve without
    numbers would mislead.
    """
    probe, empty = (_plain(svg_image(content, 40, 20, "")) for content in (text(2, 15, "0"), ""))
    nothing = _drawn(empty, FAMILIES[0])
    found = next((family for family in FAMILIES if _drawn(probe, family) != nothing), None)
    if found is None:
        raise CannotDraw(f"no font was found on this machine; install one of {', '.join(FAMILIES[:3])}")
    return found


def _drawn(svg: str, family: str) -> bytes:
    try:
        from resvg_py import svg_to_bytes
    except ImportError as error:
        raise CannotDraw("resvg-py is not installed: pip install 'prime-train[charts]'") from error
    return bytes(svg_to_bytes(svg_string=svg, zoom=ZOOM, background=BACKGROUND, sans_serif_family=family))
