"""Arguments that several commands of `prime-train outputs` share, and the run that they name."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from prime_train.outputs.lookup import RunOutputs


Attempt = Annotated[
    int | None,
    typer.Option("--attempt", min=1, metavar="N", help="Only what this attempt left.", show_default=False),
]
Step = Annotated[
    int | None,
    typer.Option("--step", min=0, metavar="N", help="Outputs as they were at this step.", show_default=False),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="PATTERN",
        help="Only files that this pattern matches, such as 'results/**'.",
        show_default=False,
    ),
]


def found_outputs(run: str, bucket: str | None) -> "RunOutputs":
    from prime_train.app.home import Home
    from prime_train.outputs.lookup import outputs_of

    found = outputs_of(Home.of(os.environ).stored_runs(bucket), run)
    for key in found.unread:
        typer.echo(f"warning: {key} cannot be read", err=True)
    return found
