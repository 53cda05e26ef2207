"""Options that select a stack."""

import os
from typing import Annotated

import typer

from prime_train.app.home import Home
from prime_train.aws.deployment import Deployment, deployment

StackName = Annotated[str, typer.Option("--stack", help="Name of the stack.")]
Region = Annotated[str, typer.Option("--region", help="AWS region; by default the one that AWS's own tools use.", show_default=False)]


def selected(name: str, region: str) -> Deployment:
    return deployment(Home.of(os.environ), name, region)
