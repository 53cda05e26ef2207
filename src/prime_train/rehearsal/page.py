"""A rehearsal as one page: the picture of all starts, what was concluded with its evidence, and the config."""

from collections.abc import Callable, Sequence

from prime_train.pages.charts.svg import colour_of, number, svg_image, tag, text, ticks
from prime_train.pages.document import document
from prime_train.pages.markup import cards, row, section_html, shown, table
from prime_train.rehearsal.conclusions import Conclusion
from prime_train.rehearsal.rehearsal import Rehearsal, Started
from prime_train.text.formatting import span

WIDTH, WIDTH_NARROW, HEIGHT = 1000, 400, 330
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 20, 46, 40
_SECONDS = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_STEPS = tuple(digit * 10.0**power for power in range(8) for digit in (1, 2, 5))
LABEL_CHARS_MAX = 34

Axis = Callable[[float], float]


def page_html(found: Rehearsal, said: Sequence[Conclusion], config: str) -> str:
    """Return the page."""
    title = f"rehearsal: {found.request.command}"
    verdict = "proven: it resumes, also after a kill" if found.is_proven else "not proven"
    figures = [(verdict, f"in {span(found.took_s)}")]
    figures += [(str(len(found.saves.saves)), "saves in the first run")] if found.saves.saves else []
    rows = [
        row(
            shown(one.topic),
            shown(one.certainty.value),
            shown(one.text) + (f"<br><span class=soft>{shown(one.evidence)}</span>" if one.evidence else ""),
            unbroken=(0, 1),
        )
        for one in said
    ]
    body = [
        f"<h1>rehearsal</h1><p><code>{shown(found.request.command)}</code></p>",
        cards(figures),
        section_html("picture", "All starts", _pictures(found)),
        section_html("conclusions", "What was seen", table(("topic", "certainty", "what, and why"), rows)),
    ]
    if found.saves.saves:
        body.append(
            section_html("config", "Config", f"<div class='log whole'><pre>{shown(config)}</pre></div>")
        )
    return document(title, "".join(body))


def _pictures(found: Rehearsal) -> str:
    """Return the picture for a wide page, and one for a narrow page, on which the starts are numbered."""
    names = "".join(f"<li>{shown(one.label)}</li>" for one in found.starts)
    narrow = picture(found, width_px=WIDTH_NARROW)
    return f"<div class=broad>{picture(found)}</div><div class=narrow>{narrow}<ol class=steps-of>{names}</ol></div>"


def picture(found: Rehearsal, *, width_px: int = WIDTH) -> str:
    """Return the steps of each start over time, with its saves, and how it ended, as SVG. A picture narrower
    than `WIDTH` names the starts by their numbers.
    """
    starts = [one for one in found.starts if one.reports]
    end_s = max((one.began_s + one.seen_s for one in found.starts), default=1.0)
    top = max((step for one in starts for _, step in one.reports), default=1)
    width, height = width_px - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM

    def x(at_s: float) -> float:
        return _LEFT + at_s / max(end_s, 0.1) * width

    def y(step: float) -> float:
        return _TOP + height - step / max(top, 1) * height

    drawn = [tag("rect", kind="panel", x=_LEFT, y=_TOP, width=width, height=height)]
    for step in ticks(0, top, _STEPS, 6):
        drawn.append(tag("line", kind="grid", x1=_LEFT, y1=y(step), x2=width_px - _RIGHT, y2=y(step)))
        drawn.append(text(_LEFT - 8, y(step) + 4, f"{int(step):,}", kind="soft small", anchor="end"))
    for at_s in ticks(0, end_s, _SECONDS, 10 if width_px == WIDTH else 5):
        drawn.append(text(x(at_s), HEIGHT - 16, f"{at_s:g} s", kind="soft small", anchor="middle"))
    for place, one in enumerate(found.starts, 1):
        drawn += _start(one, place, x, y, is_numbered=width_px < WIDTH)
    drawn.append(text(_LEFT, 18, "step", kind="soft small"))
    return svg_image("".join(drawn), width_px, HEIGHT, "steps of each start over time, with its saves")


def _start(one: Started, place: int, x: Axis, y: Axis, *, is_numbered: bool) -> list[str]:
    colour = colour_of(place)
    label = (
        str(place)
        if is_numbered
        else one.label
        if len(one.label) <= LABEL_CHARS_MAX
        else one.label[: LABEL_CHARS_MAX - 1] + "…"
    )
    left = x(one.began_s)
    drawn = [
        tag("line", kind="mark", x1=left, y1=_TOP, x2=left, y2=HEIGHT - _BOTTOM),
        text(left + 4, _TOP - 8 - 14 * ((place - 1) % 2), label, kind="small", style=f"fill: {colour}"),
    ]
    points = " ".join(f"{number(x(one.began_s + at_s))},{number(y(step))}" for at_s, step in one.reports)
    if points:
        drawn.append(tag("polyline", kind="steps", points=points, stroke=colour))
    for at_s, step in one.saves:
        title = tag("title", f"saved step {step:,}")
        drawn.append(tag("circle", title, kind="dot", cx=x(one.began_s + at_s), cy=y(step), r=5, fill=colour))
    if one.ended and not is_numbered:
        at = x(one.began_s + one.seen_s)
        drawn.append(text(at, HEIGHT - _BOTTOM - 6, one.ended, kind="small soft", anchor="end"))
    return drawn
