"""The HTML elements of pages. Text written by machines or by other people enters a page only through
`shown`.
"""

from collections.abc import Sequence
from html import escape

from prime_train.runs.run import RunState
from prime_train.text.redaction import redacted
from prime_train.text.safe import lines_of_text

_STATES = {
    RunState.SUCCEEDED: "good",
    RunState.FAILED: "bad",
    RunState.STOPPED: "warn",
    RunState.CANCELLED: "warn",
}
_STATES |= {RunState.TRAINING: "live", RunState.UPLOADING: "live", RunState.FINISHING: "live"}


def shown(text: str) -> str:
    """Return the text as HTML: without what looks like a secret, with control characters as escapes, and with
    markup as plain text.
    """
    return escape(lines_of_text(redacted(text)))


def pill(state: RunState) -> str:
    """Return the state as a coloured label."""
    return f"<span class='pill {_STATES.get(state, '')}'>{state.value}</span>"


def table(head: Sequence[str], rows: Sequence[str], *, numbers: Sequence[int] = ()) -> str:
    """Return a table of `rows`, which are HTML. The columns in `numbers` are aligned right. A table wider
    than the page gets a scroll bar of its own.
    """
    cells = "".join(
        f"<th{' class=n' if place in numbers else ''}>{escape(title)}</th>"
        for place, title in enumerate(head)
    )
    return (
        "<div class=wide "
        f"tabindex=0><table><thead><tr>{cells}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def row(*cells: str, numbers: Sequence[int] = (), unbroken: Sequence[int] = ()) -> str:
    """Return a row of `cells`, which are HTML. Those in `numbers` are aligned right, and those in `unbroken`
    are not broken into lines.
    """
    classes = dict.fromkeys(numbers, " class=n") | dict.fromkeys(unbroken, " class=kind")
    return (
        "<tr>"
        + "".join(f"<td{classes.get(place, '')}>{cell}</td>" for place, cell in enumerate(cells))
        + "</tr>"
    )


def cards(values: Sequence[tuple[str, str]]) -> str:
    """Return a row of key figures, given as pairs of a value and its name."""
    each = "".join(
        f"<div class=card><b>{shown(value)}</b><span>{shown(name)}</span></div>" for value, name in values
    )
    return f"<div class=cards>{each}</div>"


def section_html(name: str, title: str, body: str) -> str:
    """Return a section; a served page replaces it when it has changed. `body` is HTML."""
    heading = f"<h2>{escape(title)}</h2>" if title else ""
    return f"<section id=part-{name} data-part>{heading}{body}</section>"


def none(why: str) -> str:
    """Return a sentence that is shown in place of missing content."""
    return f"<p class=soft>{shown(why)}</p>"
