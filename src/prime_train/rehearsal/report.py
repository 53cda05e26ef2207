"""A rehearsal in the terminal: what was seen, with its evidence, and the config."""

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from prime_train.rehearsal.conclusions import Certainty, conclusions
from prime_train.rehearsal.rehearse import Rehearsal
from prime_train.rehearsal.script_lines import atomic_patch
from prime_train.text.formatting import span

_STYLES = {Certainty.SEEN: "green", Certainty.LIKELY: "yellow", Certainty.UNKNOWN: "red"}


def patch_of(found: Rehearsal) -> str:
    """Return a patch that makes the saves safer; empty if none is plain, or needed."""
    if not found.saves.is_in_place or found.saves.is_renamed:
        return ""
    return next((patch for path, text in found.scripts if (patch := atomic_patch(path, text))), "")


def printed(console: Console, found: Rehearsal, text: str, saved: Path | None) -> None:
    """Print the rehearsal."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    before = ""
    for one in conclusions(found):
        words = Text(one.text)
        if one.evidence:
            words.append(f"\n{one.evidence}", style="dim")
        table.add_row(
            one.topic if one.topic != before else "",
            Text(one.certainty.value, style=_STYLES[one.certainty]),
            words,
        )
        before = one.topic
    console.print()
    console.print(table)
    console.print()
    verdict = (
        Text.assemble(("proven", "bold green"), f" in {span(found.seconds)}: it resumes, also after a kill")
        if found.is_proven
        else Text.assemble(("not proven", "bold red"), f" after {span(found.seconds)}")
    )
    console.print(verdict)
    patch = patch_of(found)
    if patch:
        console.print(Text("\nworth changing in the script (it is whole at every moment then):\n", style="bold"))
        console.print(patch, markup=False, highlight=False, soft_wrap=True)
    if found.saves.saves:
        console.print(Text(f"\nconfig{f', written to {saved}' if saved else ''}:\n", style="bold"))
        console.print(text, markup=False, highlight=False, soft_wrap=True)
