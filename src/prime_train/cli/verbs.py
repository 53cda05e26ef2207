"""The list of commands, and the Typer app made of them."""

from typing import Annotated

import typer

from prime_train import __version__
from prime_train.actions.app import app as gha
from prime_train.cli.aws.deploy import deploy
from prime_train.cli.aws.destroy import destroy
from prime_train.cli.aws.doctor import doctor
from prime_train.cli.checkpoints import checkpoints
from prime_train.cli.config import config
from prime_train.cli.cost import cost
from prime_train.cli.dashboard import dashboard
from prime_train.cli.demo import demo
from prime_train.cli.diagnose import diagnose
from prime_train.cli.find import find
from prime_train.cli.help.examples import epilog
from prime_train.cli.help.groups import GroupedHelp
from prime_train.cli.init import init
from prime_train.cli.key import key
from prime_train.cli.logs import logs
from prime_train.cli.memory import memory
from prime_train.cli.models import models
from prime_train.cli.page import page
from prime_train.cli.profile import profile
from prime_train.cli.resume import resume
from prime_train.cli.rm import rm
from prime_train.cli.run import WithCommand, run
from prime_train.cli.serve import serve
from prime_train.cli.ssh import ssh
from prime_train.cli.status import status
from prime_train.cli.stop import stop
from prime_train.cli.validation.lint import lint
from prime_train.cli.validation.rules import rules
from prime_train.cli.validation.schema import schema
from prime_train.cli.validation.validate import WithDeepTrust, validate
from prime_train.cli.verify_model import verify_model
from prime_train.cli.watch import watch
from prime_train.exits import guarded

VERBS = (
    init,
    validate,
    lint,
    rules,
    verify_model,
    memory,
    cost,
    find,
    run,
    status,
    logs,
    profile,
    diagnose,
    page,
    ssh,
    stop,
    resume,
    rm,
    serve,
    watch,
    deploy,
    doctor,
    destroy,
    key,
    dashboard,
    demo,
    schema,
)

# Help is plain text, because rendering it with rich would double the time that `--help` takes.
app = typer.Typer(
    name="prime-train",
    cls=GroupedHelp,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Training that can be left alone: runs on spot machines that survive losing them.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

_PARSED_BY = {validate: WithDeepTrust, run: WithCommand}
"""Verbs whose arguments are more than the library can describe."""

for _verb in VERBS:
    app.command(cls=_PARSED_BY.get(_verb), epilog=epilog(_verb.__name__.replace("_", "-")))(guarded(_verb))
app.add_typer(checkpoints)
app.add_typer(config)
app.add_typer(models)
app.add_typer(gha)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"prime-train {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")] = False,
) -> None:
    """Training that can be left alone: runs on spot machines that survive losing them."""
