"""Delete the control plane from AWS, but keep what was trained."""

from collections.abc import Callable
from dataclasses import dataclass

from prime_train.advice import Advice, Call, Operation
from prime_train.aws.deployment import Deployment
from prime_train.errors import PermanentError, UsageError
from prime_train.runs.unreadable import may_have_machine
from prime_train.stores.dynamo.opening import open_dynamo

NAMED_MAX = 5


@dataclass(frozen=True)
class Retained:
    """What stays in the account after the deletion: the bucket with the results of training, the table with
    the runs, the bucket with code, which other stacks use too, and for 30 days the secret.
    """

    bucket: str
    table: str
    code_bucket: str
    secret: str


def destroy(
    of: Deployment, *, approve: Callable[[], object], progress: Callable[[str], object]
) -> Retained | None:
    """Delete the stack, unless `approve` raises. Return what stays in the account; None if the stack was
    never completely created.

    Raises UsageError if there is no such stack, or if a run is still active or its machine still exists,
    because nothing would watch it.
    """
    if not of.stack.state():
        raise UsageError(
            f"there is no stack {of.stack.name} in account {of.account.number}, region {of.account.region}"
        )
    retained = _retained(of)
    approve()
    of.stack.delete(progress)
    of.record_file.unlink(missing_ok=True)
    return retained


def _retained(of: Deployment) -> Retained | None:
    try:
        outputs = of.stack.outputs()
    except PermanentError:
        outputs = {}
    if "Table" not in outputs:
        return None
    store = open_dynamo(f"dynamodb://{outputs['Table']}?region={of.account.region}", of.home.environment)
    # A pending clean-up of the bucket does not count, because the bucket stays.
    active = [run.run_id for run in store.list_runs() if not run.is_at_rest]
    active += may_have_machine(store.unreadable(), {lease.run_id for lease in store.lease_statuses()})
    if active:
        fix = Advice(Call(Operation.STOP, "RUN"), " for each, and wait until its machine is gone")
        raise UsageError(f"{len(active)} runs have not ended: {', '.join(active[:NAMED_MAX])}", fix=fix)
    return Retained(outputs["Bucket"], outputs["Table"], of.account.code_bucket, outputs["Secret"])
