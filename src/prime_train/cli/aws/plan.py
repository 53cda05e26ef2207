"""Print what a deployment would change, as a table."""

from rich.text import Text

from prime_train.adapters.aws_deploy import Changed, Plan
from prime_train.cli.columns import Column, Fitting
from prime_train.console import console as open_console

COLOURS = {"Add": "green", "Modify": "yellow", "Remove": "red"}


def show(plan: Plan | None) -> None:
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
    notes = tuple(Text(_note(row), style="red" if row.has_content else "") for row in rows)
    console.print(Fitting([*columns, Column("note", notes)] if any(note.plain for note in notes) else columns))
    lost = [row.name for row in rows if row.loses_content]
    if lost:
        console.print(f"the contents of {', '.join(lost)} are kept, but no longer used", style="red")


def _note(row: Changed) -> str:
    if not row.replaces:
        return ""
    return "by a new, empty one" if row.has_content else "by a new one"
