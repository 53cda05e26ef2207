"""`prime-train destroy`: delete the control plane from AWS, but keep what was trained."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.cli.aws.stack import STACK, Region, StackName
from prime_train.cli.confirm import confirm
from prime_train.core.errors import UsageError

if TYPE_CHECKING:
    from prime_train.adapters.aws_deploy import Account, Stack

NAMED_MAX = 5


def destroy(
    name: StackName = STACK,
    region: Region = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")] = False,
) -> None:
    """Take the control plane off AWS.

    UsageError while a run is not done: nobody would give its machine back. The table and the bucket stay, with all that was trained.
    """
    from prime_train.cli.aws import stack as aws_place

    account = aws_place.account(region)
    stack = aws_place.stack(account, name)
    if not stack.state():
        raise UsageError(f"there is no stack {name} in account {account.number}, region {account.region}")
    kept = _kept(account, stack)
    confirm(f"Delete stack {name} in account {account.number}, region {account.region}?", yes=yes)
    stack.delete(typer.echo)
    aws_place.forget(name)
    typer.echo(f"stack {name} is gone")
    for line in kept:
        typer.echo(line)


def _kept(account: "Account", stack: "Stack") -> list[str]:
    """Return lines that describe what stays, and how to delete or restore it. Raises UsageError if a run is still active or its machines
    are not gone yet, because nobody would look after it."""
    from prime_train.adapters.store_dynamo.opening import open_dynamo
    from prime_train.ports import PermanentError

    try:
        outputs = stack.outputs()
    except PermanentError:
        outputs = {}
    if "Table" not in outputs:
        return []
    store = open_dynamo(f"dynamodb://{outputs['Table']}?region={account.region}", os.environ)
    # A pending clean-up of the bucket does not count, because the bucket stays.
    awake = [run.run_id for run in store.list_runs() if not run.is_at_rest]
    if awake:
        shown = ", ".join(awake[:NAMED_MAX])
        raise UsageError(
            f"{len(awake)} runs are not done: {shown}", fix="prime-train stop RUN for each, and wait until its machine has gone"
        )
    where = f"--region {account.region}"
    return [
        f"kept: bucket {outputs['Bucket']}, with what was trained; this deletes it for good:",
        f"  aws s3 rb --force s3://{outputs['Bucket']} {where}",
        f"kept: table {outputs['Table']}, with the runs; this deletes it for good:",
        f"  aws dynamodb delete-table --table-name {outputs['Table']} {where}",
        f"kept: bucket {account.code_bucket}, with code, of other stacks too; this deletes it:",
        f"  aws s3 rb --force s3://{account.code_bucket} {where}",
        f"kept for 30 days: secret {outputs['Secret']}; this brings it back:",
        f"  aws secretsmanager restore-secret --secret-id {outputs['Secret']} {where}",
    ]
