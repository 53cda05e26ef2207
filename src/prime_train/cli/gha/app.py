"""`prime-train gha`: the verbs of the actions."""

import typer

from prime_train.cli.exits import guarded
from prime_train.cli.gha.launch import launch
from prime_train.cli.gha.status import status
from prime_train.cli.gha.stop import stop
from prime_train.cli.gha.validate import validate
from prime_train.cli.gha.watch import watch

VERBS = (validate, launch, watch, stop, status)

app = typer.Typer(name="gha", help="What the actions call; inputs come from the environment.", no_args_is_help=True, rich_markup_mode=None)
for verb in VERBS:
    app.command()(guarded(verb))
