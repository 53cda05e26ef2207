"""The words that pages are made of. What a machine or a stranger wrote becomes part of a page by `shown`, and by nothing else."""

from collections.abc import Sequence
from html import escape

from prime_train.core.run import RunState
from prime_train.core.text.redaction import masked
from prime_train.core.text.safe import lines_of_text

_STATES = {RunState.SUCCEEDED: "good", RunState.FAILED: "bad", RunState.STOPPED: "warn", RunState.CANCELLED: "warn"}
_STATES |= {RunState.TRAINING: "live", RunState.UPLOADING: "live"}


def shown(text: str) -> str:
    """The text as HTML: what looks like a secret is left out, control characters show as their escapes, and markup is only text."""
    return escape(lines_of_text(masked(text)))


def pill(state: RunState) -> str:
    return f"<span class='pill {_STATES.get(state, '')}'>{state.value}</span>"


def table(head: Sequence[str], rows: Sequence[str], *, numbers: Sequence[int] = ()) -> str:
    """`rows` are HTML; the columns in `numbers` are set flush right. A table that is wider than the page scrolls by itself."""
    cells = "".join(f"<th{' class=n' if place in numbers else ''}>{escape(title)}</th>" for place, title in enumerate(head))
    return f"<div class=wide tabindex=0><table><thead><tr>{cells}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"


def row(*cells: str, numbers: Sequence[int] = (), whole: Sequence[int] = ()) -> str:
    """A row of cells that are HTML. Those in `whole` are not broken into lines."""
    classes = dict.fromkeys(numbers, " class=n") | dict.fromkeys(whole, " class=kind")
    return "<tr>" + "".join(f"<td{classes.get(place, '')}>{cell}</td>" for place, cell in enumerate(cells)) + "</tr>"


def cards(values: Sequence[tuple[str, str]]) -> str:
    """Figures at a glance: each with what it is."""
    each = "".join(f"<div class=card><b>{shown(value)}</b><span>{shown(name)}</span></div>" for value, name in values)
    return f"<div class=cards>{each}</div>"


def part(name: str, title: str, body: str) -> str:
    """A section that is replaced by itself when it has changed."""
    heading = f"<h2>{escape(title)}</h2>" if title else ""
    return f"<section id=part-{name} data-part>{heading}{body}</section>"


def none(why: str) -> str:
    """Says plainly that there is nothing to show."""
    return f"<p class=soft>{shown(why)}</p>"
