"""`prime-train deploy`: deploy the control plane to AWS, where it needs no permanently running machine."""

import os
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.advice import Call, Operation, Option, SettingAdvice
from prime_train.aws.commands.stack import Region, StackName, selected
from prime_train.aws.plan import STACK, Changed, StackChange
from prime_train.providers.kinds import PROVIDERS
from prime_train.terminal.confirm import Yes, confirm
from prime_train.text.formatting import alternatives
from prime_train.text.invocations import command, worded

if TYPE_CHECKING:
    from prime_train.aws.deploy import Deployed
    from prime_train.aws.deployment import Deployment
    from prime_train.aws.settings import Request

COLOURS = {"Add": "green", "Modify": "yellow", "Remove": "red"}


def deploy(
    name: StackName = STACK,
    region: Region = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, without changing anything.")
    ] = False,
    yes: Yes = False,
    secret: Annotated[
        list[str] | None,
        typer.Option("--secret", help="Environment variable whose value is stored in the secret."),
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option(
            help="Provider to rent machines from: "
            f"{alternatives(name for name, row in PROVIDERS.items() if row.is_rented)}.",
            show_default=False,
        ),
    ] = None,
    public_url: Annotated[
        str | None,
        typer.Option(
            "--public-url",
            help="Public URL that machines call, if not the function's own.",
            show_default=False,
        ),
    ] = None,
    alarm_email: Annotated[
        str | None,
        typer.Option("--alarm-email", help="E-mail address that receives alarms.", show_default=False),
    ] = None,
    other: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Another parameter of the stack, such as UsdPerHourMax=40.", show_default=False
        ),
    ] = None,
    machine: Annotated[
        str | None, typer.Option("--architecture", help="arm64 or x86_64.", show_default="arm64")
    ] = None,
    python: Annotated[
        str | None, typer.Option(help="Python version of the functions.", show_default="3.12")
    ] = None,
    code: Annotated[
        Path | None,
        typer.Option(
            "--code", help="Zip file with the functions' code, instead of building one.", show_default=False
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--save", help="Only write the template and the code into this folder.", show_default=False
        ),
    ] = None,
) -> None:
    """Deploy the control plane to AWS, or update it.

    Creates or changes one CloudFormation stack: a table, a bucket, a secret and two functions. Shows the
    changes and asks for confirmation first. Credentials are found as AWS's own tools find them. Settings that
    are not given keep their current values.
    """
    from prime_train.app.places import out_of_reach
    from prime_train.aws import settings
    from prime_train.aws.deploy import deploy as deploy_to
    from prime_train.aws.settings import Request
    from prime_train.environment import CREDENTIALS
    from prime_train.providers.in_one_value import taken_apart
    from prime_train.providers.portable import carried

    values = settings.secrets(secret or [], os.environ)
    if CREDENTIALS in values:
        values |= taken_apart(values.pop(CREDENTIALS), partial(typer.echo, err=True))
    given = carried(values, os.environ)
    settings.refuse_too_large(given.values)
    parameters = settings.others(other or []) | settings.parameters(
        Provider=provider, PublicUrl=public_url, AlarmEmail=alarm_email
    )
    request = Request(parameters, given.values, machine, python, code)
    for warning in out_of_reach(given.private):
        typer.echo(worded(warning), err=True)
    if folder is not None:
        _save(request, folder, name, region)
        return
    to = selected(name, region)
    typer.echo(f"account {to.account.number}, region {to.account.region}, stack {name}")

    def approve(plan: StackChange | None) -> bool:
        show_plan(plan)
        if plan is not None and not dry_run:
            confirm("Apply these changes?", yes=yes)
        return not dry_run

    done = deploy_to(
        to,
        request,
        approve=approve,
        progress=typer.echo,
        warn=lambda text: typer.echo(worded(text), err=True),
    )
    if done is None:
        typer.echo("nothing was changed: --dry-run")
    else:
        _print(done, to)


def show_plan(plan: StackChange | None) -> None:
    """Print what the deployment would change, as a table."""
    from rich.text import Text

    from prime_train.terminal.columns import Column, Fitting
    from prime_train.terminal.console import console as open_console

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
    console.print(
        Fitting([*columns, Column("note", notes)] if any(note.plain for note in notes) else columns)
    )
    lost = [row.name for row in rows if row.loses_content]
    if lost:
        console.print(f"the contents of {', '.join(lost)} are kept, but no longer used", style="red")


def _note(row: Changed) -> str:
    if not row.replaces:
        return ""
    return "by a new, empty one" if row.has_content else "by a new one"


def _save(request: "Request", folder: Path, name: str, region: str) -> None:
    """Write the template and the code for deployment with other tools, and print an example command of such a
    tool.
    """
    from prime_train.aws.deploy import save
    from prime_train.aws.deployment import selecting

    saved = save(request, folder, typer.echo)
    typer.echo(
        f"wrote {saved.template} and, in the same folder, {saved.code.name}; deploy them for example with "
        "sam:"
    )
    typer.echo(
        f"  sam deploy --template-file {saved.template} --stack-name {name} --resolve-s3 --capabilities "
        "CAPABILITY_IAM --parameter-overrides "
        f"{' '.join(f'{key}={shlex.quote(value)}' for key, value in saved.parameters.items())}"
    )
    if request.secrets:
        secrets = (Option(SettingAdvice.SECRET, key) for key in request.secrets)
        again = command(Call(Operation.DEPLOY, options=(*selecting(name, region), *secrets)))
        typer.echo(f"they contain no secret; afterwards run: {again}")


def _print(done: "Deployed", to: "Deployment") -> None:
    if done.changed:
        typer.echo(
            f"the secret has new values of {', '.join(done.changed)}; the functions use them within five "
            "minutes"
        )
    typer.echo(f"\nPRIME_TRAIN_STORE={done.url}")
    typer.echo(f"PRIME_TRAIN_MASTER_KEY=$({command(to.call(Operation.SHOW_DEPLOYED_KEY))})")
    typer.echo(f"bucket {done.bucket}, table {done.table}, secret {done.secret}")
    typer.echo(f"saved in {done.file}; check whether it works with {command(to.call(Operation.DOCTOR))}")
    if done.withheld:
        listed = Option(SettingAdvice.PARAMETER, f"RunSecrets={','.join(done.run_secrets)}")
        typer.echo(
            f"runs do not receive {', '.join(done.withheld)} until the stack's parameter RunSecrets lists "
            "it:  "
            f"{command(to.call(Operation.DEPLOY, listed))}"
        )
