"""`prime-train destroy`: delete the control plane from AWS, but keep what was trained."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from prime_train.aws.commands.stack import Region, StackName, selected
from prime_train.aws.plan import STACK
from prime_train.terminal.confirm import Yes, confirm

if TYPE_CHECKING:
    from prime_train.aws.destroy import Retained


def destroy(
    name: StackName = STACK,
    region: Region = "",
    yes: Yes = False,
) -> None:
    """Remove the control plane from AWS.

    Refused while a run has not ended, because nothing would terminate its machine. The table and the bucket
    are kept, with everything that was trained.
    """
    from prime_train.aws.destroy import destroy as destroy_deployment

    deployed = selected(name, region)
    place = f"account {deployed.account.number}, region {deployed.account.region}"
    retained = destroy_deployment(
        deployed, approve=lambda: confirm(f"Delete stack {name} in {place}?", yes=yes), progress=typer.echo
    )
    typer.echo(f"stack {name} was deleted")
    for line in _lines(retained, deployed.account.region) if retained is not None else ():
        typer.echo(line)


def _lines(retained: "Retained", region: str) -> Iterator[str]:
    """Yield what is kept, each with AWS's own command that deletes or restores it."""
    where = f"--region {region}"
    yield f"kept: bucket {retained.bucket}, which holds the checkpoints; to delete it permanently:"
    yield f"  aws s3 rb --force s3://{retained.bucket} {where}"
    yield f"kept: table {retained.table}, which holds the runs; to delete it permanently:"
    yield f"  aws dynamodb delete-table --table-name {retained.table} {where}"
    yield f"kept: bucket {retained.code_bucket}, which holds code, also of other stacks; to delete it:"
    yield f"  aws s3 rb --force s3://{retained.code_bucket} {where}"
    yield f"kept for 30 days: secret {retained.secret}; to restore it:"
    yield f"  aws secretsmanager restore-secret --secret-id {retained.secret} {where}"
