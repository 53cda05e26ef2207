"""The planned changes of a stack."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prime_train.advice import Advice, Call, Operation

STACK = "prime-train"
"""The name of the stack unless another is given."""
NEW = "REVIEW_IN_PROGRESS"
"""The state of a stack that was planned and never created."""
NEVER_WAS = Advice(
    "it was never created completely; remove it with ", Call(Operation.DESTROY), ", then deploy again"
)
REMEDIES: Mapping[str, Advice] = {
    **dict.fromkeys(("ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED"), NEVER_WAS),
    "DELETE_FAILED": Advice("it could not be removed; retry with ", Call(Operation.DESTROY)),
    "UPDATE_FAILED": Advice(
        "a change was interrupted; roll back with aws cloudformation rollback-stack, then deploy again"
    ),
    "UPDATE_ROLLBACK_FAILED": Advice(
        "a change could not be rolled back; use aws cloudformation continue-update-rollback, then deploy "
        "again"
    ),
    "UPDATE_ROLLBACK_COMPLETE": Advice(
        "the last change failed and was rolled back, so the stack works as before; retry with ",
        Call(Operation.DEPLOY),
    ),
}
"""Advice for the user, by the state of a stack."""
CHANGEABLE = frozenset(
    {"", NEW, "CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE"}
)
HAVE_CONTENT = frozenset({"Table", "Bucket", "Secret"})
"""Types of resources that hold data; a replacement of such a resource starts without that data."""


@dataclass(frozen=True)
class Changed:
    """A planned change of a resource. `replaces`: the resource may be replaced by a new one, so that its
    content would be lost to the stack.
    """

    action: str
    name: str
    kind: str
    replaces: bool

    @property
    def has_content(self) -> bool:
        return self.name in HAVE_CONTENT

    @property
    def loses_content(self) -> bool:
        """Return whether the stack would stop using the content of this resource. The resource itself is
        kept.
        """
        return self.has_content and (self.replaces or self.action == "Remove")


@dataclass(frozen=True)
class StackChange:
    """A change set that has not been executed yet."""

    name: str
    is_first: bool
    changes: tuple[Changed, ...] = ()


def changed(description: Mapping[str, Any]) -> Changed:
    """Convert CloudFormation's description of one change."""
    return Changed(
        description["Action"],
        description["LogicalResourceId"],
        description["ResourceType"],
        description.get("Replacement") in ("True", "Conditional"),
    )
