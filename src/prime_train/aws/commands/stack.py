"""Options that select a stack."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from prime_train.aws.deployment import Deployment


StackName = Annotated[str, typer.Option("--stack", help="Name of the stack.")]
Region = Annotated[
    str,
    typer.Option(
        "--region", help="AWS region; by default the one that AWS's own tools use.", show_default=False
    ),
]


def selected(name: str, region: str) -> "Deployment":
    from prime_train.app.home import Home
    from prime_train.aws.deployment import deployment

    return deployment(Home.of(os.environ), name, region)
