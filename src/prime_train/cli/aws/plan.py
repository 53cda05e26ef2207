"""Print what a deployment would change, as a table."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prime_train.adapters.aws_deploy import Changed, Plan

COLOURS = {"Add": "green", "Modify": "yellow", "Remove": "red"}
HOLDS = frozenset({"Table", "Bucket", "Secret"})
"""Resources with contents, which a replacement would lack."""


def show(plan: "Plan | None") -> None:
    from rich.text import Text

    from prime_train.cli.columns import Column, Fitting
    from prime_train.output import console as open_console

    console = open_console()
    if plan is None:
        console.print("nothing changes")
        return
    rows = plan.changes
    columns = [
        Column("change", tuple(Text(row.action.lower(), style=COLOURS.get(row.action, "")) for row in rows)),
        Column("part", tuple(Text(row.name) for row in rows)),
        Column("kind", tuple(Text(row.kind.removeprefix("AWS::"), style="dim") for row in rows), 1),
    ]
    notes = tuple(Text(_note(row), style="red" if row.name in HOLDS else "") for row in rows)
    console.print(Fitting([*columns, Column("note", notes)] if any(note.plain for note in notes) else columns))
    lost = [row.name for row in rows if row.name in HOLDS and (row.replaces or row.action == "Remove")]
    if lost:
        console.print(f"what is in {', '.join(lost)} stays where it is, but is not used any more", style="red")


def _note(row: "Changed") -> str:
    if not row.replaces:
        return ""
    return "by a new, empty one" if row.name in HOLDS else "by a new one"
