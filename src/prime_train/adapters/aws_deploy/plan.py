"""The planned changes of a stack."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NEW = "REVIEW_IN_PROGRESS"
"""The state of a stack that was planned and never created."""
NEVER_WAS = "it never came to be; prime-train destroy takes it away, then deploy again"
REMEDIES: Mapping[str, str] = {
    **dict.fromkeys(("ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED"), NEVER_WAS),
    "DELETE_FAILED": "it could not be taken away; prime-train destroy tries again",
    "UPDATE_FAILED": "a change was cut short; aws cloudformation rollback-stack puts it back, then deploy again",
    "UPDATE_ROLLBACK_FAILED": "a change could not be put back; aws cloudformation continue-update-rollback does, then deploy again",
    "UPDATE_ROLLBACK_COMPLETE": "the last change failed and was put back; it works as before, and prime-train deploy tries again",
}
"""Advice for the user, by the state of a stack."""
CHANGEABLE = frozenset({"", NEW, "CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE"})


@dataclass(frozen=True)
class Changed:
    """One planned change of a resource. `replaces`: the resource may be replaced by a new one, so that its content would be lost to the
    stack."""

    action: str
    name: str
    kind: str
    replaces: bool


@dataclass(frozen=True)
class Plan:
    """A change set that has not been executed yet."""

    name: str
    is_first: bool
    changes: tuple[Changed, ...] = ()


def changed(said: Mapping[str, Any]) -> Changed:
    """Convert CloudFormation's description of one change."""
    return Changed(said["Action"], said["LogicalResourceId"], said["ResourceType"], said.get("Replacement") in ("True", "Conditional"))
