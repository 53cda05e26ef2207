"""`prime-train models list [SEARCH]`: list the models of the registry, and what is known of each."""

from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.errors import UsageError
from prime_train.estimate.ranges import large
from prime_train.exit_codes import Exit
from prime_train.terminal.arguments import print_json

if TYPE_CHECKING:
    from rich.console import RenderableType

    from prime_train.estimate.models.registry import ModelEntry


_KINDS = {"text": "text", "vision-language": "VL", "puzzle": "puzzle"}


def list_(
    search: Annotated[
        str, typer.Argument(help="Show only models whose id contains this.", show_default=False)
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> Exit:
    """List models and the trainers they are known to work with."""
    from prime_train.planning.models import models_with, similar_to
    from prime_train.terminal.console import console

    found = models_with(search)
    if as_json:
        print_json({"date": found.date, "models": [entry.model_dump(mode="json") for entry in found.models]})
        return Exit.OK
    if not found.models:
        similar = similar_to(search)
        fix = f"did you mean {', '.join(similar)}?" if similar else "prime-train models list shows them all"
        raise UsageError(
            f"no model's id contains {search}", fix=f"{fix} Any other: prime-train verify-model ID --hub"
        )

    console().print(_chart(found.models, found.date))
    return Exit.OK


def _chart(found: "tuple[ModelEntry, ...]", date: str) -> "RenderableType":
    from rich.console import Group, RenderableType
    from rich.table import Table
    from rich.text import Text

    from prime_train.planning.models import works
    from prime_train.terminal.columns import Column, Fitting
    from prime_train.terminal.tables import texts

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
            Column("known to work with", texts(works(entry) or "-" for entry in found), 4),
        )
    )
    issues = Table.grid(padding=(0, 2))
    for entry in found:
        for issue in entry.issues:
            issues.add_row(Text(entry.id, style="yellow"), Text(issue.date), Text(issue.text))
    last = Text(f"{len(found)} models, as of {date}. Others: prime-train verify-model ID --hub", style="dim")
    parts: list[RenderableType] = [table, Text()]
    return (
        Group(*parts, Text("known issues", style="bold"), issues, Text(), last)
        if issues.row_count
        else Group(*parts, last)
    )
