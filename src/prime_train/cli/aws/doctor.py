"""`prime-train doctor`: check whether the control plane on AWS works."""

from typing import Annotated

import typer

from prime_train.cli.arguments import AsJson, print_json
from prime_train.cli.aws.stack import Region, StackName, selected
from prime_train.core.exit_codes import Exit
from prime_train.core.text.commands import worded
from prime_train.operations.aws.deployment import STACK, Deployment
from prime_train.operations.aws.doctor import examine, exit_for, master_key


def doctor(
    name: StackName = STACK,
    region: Region = "",
    show_key: Annotated[bool, typer.Option("--show-key", help="Print only the master key.")] = False,
    as_json: AsJson = False,
) -> Exit:
    """Check whether the control plane on AWS works.

    Checks the stack, the secret, the webhook, the table, the watcher, W&B and the alarms. Changes nothing.
    """
    deployed = selected(name, region)
    if show_key:
        typer.echo(master_key(deployed))
        return Exit.OK
    return _as_json(deployed) if as_json else _as_text(deployed)


def _as_text(deployed: Deployment) -> Exit:
    typer.echo(f"account {deployed.account.number}, region {deployed.account.region}, stack {deployed.stack.name}")
    statuses = set()
    for check in examine(deployed):
        statuses.add(check.status)
        typer.echo(f"{check.status.value:<5}  {check.name}{f': {worded(check.text)}' if check.text else ''}")
    return exit_for(statuses)


def _as_json(deployed: Deployment) -> Exit:
    checks = list(examine(deployed))
    rows = [{"name": check.name, "status": check.status.value, "text": worded(check.text)} for check in checks]
    print_json({"account": deployed.account.number, "region": deployed.account.region, "stack": deployed.stack.name, "checks": rows})
    return exit_for({check.status for check in checks})
