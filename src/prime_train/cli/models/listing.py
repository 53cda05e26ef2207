"""`prime-train models list [SEARCH]`: list the models of the registry, and what is known of each."""

from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from rich.console import RenderableType

    from prime_train.estimate.models.registry import Entry

_KINDS = {"text": "text", "vision-language": "VL"}


def list_(
    search: Annotated[str, typer.Argument(help="Only models whose id has this in it.", show_default=False)] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> Exit:
    """List models, and what is known to work with them."""
    from prime_train.operations.models import registry

    known = registry()
    found = tuple(entry for entry in known.models if search.lower() in entry.id.lower())
    if as_json:
        import json

        print(json.dumps({"date": known.date, "models": [entry.model_dump(mode="json") for entry in found]}, indent=2))
        return Exit.OK
    if not found:
        near = known.near(search)
        fix = f"did you mean {', '.join(near)}?" if near else "prime-train models list shows them all"
        raise UsageError(f"no model has {search} in its id", fix=f"{fix} Any other: prime-train verify-model ID --hub")
    from prime_train.output import console

    console().print(_picture(found, known.date))
    return Exit.OK


def _picture(found: "tuple[Entry, ...]", date: str) -> "RenderableType":
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from prime_train.cli.columns import Column, Fitting
    from prime_train.cli.tables import texts
    from prime_train.operations.models import works
    from prime_train.reports.find.words import large

    table = Fitting(
        (
            Column("model", texts(entry.id for entry in found)),
            Column("size", texts(large(entry.params) for entry in found)),
            Column("kind", texts(_KINDS[entry.kind] for entry in found)),
            Column("context", texts(f"{entry.context:,}" for entry in found)),
            Column("tools", texts("yes" if entry.tools else "no" for entry in found), 1),
            Column("gated", texts(entry.gated for entry in found), 2),
            Column("vLLM from", texts(entry.vllm or "-" for entry in found), 3),
            Column("architecture", texts(entry.architecture for entry in found), 5),
            Column("seen to work with", texts(works(entry) or "-" for entry in found), 4),
        )
    )
    issues = Table.grid(padding=(0, 2))
    for entry in found:
        for issue in entry.issues:
            issues.add_row(Text(entry.id, style="yellow"), Text(issue.date), Text(issue.text))
    last = Text(f"{len(found)} models, as of {date}. Others: prime-train verify-model ID --hub", style="dim")
    parts: list[RenderableType] = [table, Text()]
    return Group(*parts, Text("known issues", style="bold"), issues, Text(), last) if issues.row_count else Group(*parts, last)
