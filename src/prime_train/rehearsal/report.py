"""A rehearsal in the terminal: what was seen, with its evidence, and the config."""

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from prime_train.rehearsal.conclusions import Certainty, conclusions
from prime_train.rehearsal.outcome import Outcome
from prime_train.rehearsal.rehearsal import Rehearsal
from prime_train.rehearsal.script_lines import atomic_patch
from prime_train.text.formatting import span

_STYLES = {Certainty.SEEN: "green", Certainty.LIKELY: "yellow", Certainty.UNKNOWN: "red"}


def patch_of(found: Rehearsal) -> str:
    """Return a patch that makes the saves safer; empty if none is plain, or needed."""
    if not found.saves.is_in_place or found.saves.is_renamed:
        return ""
    return next((patch for path, text in found.scripts if (patch := atomic_patch(path, text))), "")


def printed(console: Console, outcome: Outcome, written: Path | None, page: Path | None) -> None:
    """Print the rehearsal. `written`: the file that the config was written to; `page`: that of the page; None
    if there is none.
    """
    found = outcome.found
    console.print()
    console.print(_table(found))
    console.print()
    console.print(
        Text.assemble(("proven", "bold green"), f" in {span(found.took_s)}: it resumes, also after a kill")
        if found.is_proven
        else Text.assemble(("not proven", "bold red"), f" after {span(found.took_s)}")
    )
    patch = patch_of(found)
    if patch:
        _titled(console, "worth changing in the script, so that it is whole at every moment", patch)
    for difference in outcome.differences:
        console.print(difference, markup=False, highlight=False, soft_wrap=True)
    if written is not None:
        console.print(f"wrote {written}", markup=False, highlight=False, soft_wrap=True)
    if found.saves.saves and not outcome.is_as_given:
        _titled(console, "config", outcome.text)
    if page is not None:
        console.print(f"page: {page.absolute()}", markup=False, highlight=False, soft_wrap=True)


def _titled(console: Console, title: str, text: str) -> None:
    console.print(Text(f"\n{title}:\n", style="bold"))
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _table(found: Rehearsal) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    before = ""
    for one in conclusions(found):
        words = Text(one.text)
        if one.evidence:
            words.append(f"\n{one.evidence}", style="dim")
        topic = one.topic if one.topic != before else ""
        table.add_row(topic, Text(one.certainty.value, style=_STYLES[one.certainty]), words)
        before = one.topic
    return table
