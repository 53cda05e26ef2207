"""A stack of CloudFormation, changed only by change sets: first what would happen, then that it does."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from prime_train.adapters.aws_deploy.refusals import told
from prime_train.ports import PermanentError, TemporaryError

CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
LOOK_S = 1.0
LOOKS_MAX = 1800
REASONS_MAX = 5
DEAD = frozenset({"ROLLBACK_COMPLETE", "CREATE_FAILED", "ROLLBACK_FAILED", "DELETE_FAILED"})
"""States of a stack that never came to be: it can only be deleted."""
NEW = "REVIEW_IN_PROGRESS"
NOTHING = ("didn't contain changes", "No updates are to be performed", "no changes")


@dataclass(frozen=True)
class Changed:
    """One thing that a plan would change. `replaces`: by a new one, so that what is in it would be lost to the stack."""

    action: str
    name: str
    kind: str
    replaces: bool


@dataclass(frozen=True)
class Plan:
    """A change set that waits."""

    id: str
    is_first: bool
    changes: tuple[Changed, ...]


class Stack:
    """One stack by its name. `client` is boto3's for CloudFormation."""

    def __init__(self, client: Any, name: str) -> None:
        self._client, self.name = client, name

    def state(self) -> str:
        """CloudFormation's word for it; empty where there is none."""
        found = self._describe()
        return str(found["StackStatus"]) if found else ""

    def outputs(self) -> dict[str, str]:
        """PermanentError where there is no such stack."""
        found = self._describe()
        if not found or found["StackStatus"] == NEW:
            raise PermanentError(f"there is no stack {self.name} in this account and region; prime-train deploy makes one")
        return {one["OutputKey"]: one["OutputValue"] for one in found.get("Outputs", [])}

    def plan(self, template: str, parameters: Mapping[str, str | None]) -> Plan | None:
        """What would change; None: nothing. A parameter that is None stays as it is, or as the template has it."""
        state = self.state()
        if state in DEAD:
            raise PermanentError(f"stack {self.name} is {state}: it never came to be; prime-train destroy takes it away, then deploy again")
        is_first = state in ("", NEW)
        known = {} if is_first else {one["ParameterKey"] for one in (self._describe() or {}).get("Parameters", [])}
        given = [{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items() if value is not None]
        kept = [{"ParameterKey": name, "UsePreviousValue": True} for name, value in parameters.items() if value is None and name in known]
        with told(f"the changes to stack {self.name}"):
            made = self._client.create_change_set(
                StackName=self.name,
                ChangeSetName=f"prime-train-{time.time_ns()}",
                ChangeSetType="CREATE" if is_first else "UPDATE",
                TemplateBody=template,
                Parameters=given + kept,
                Capabilities=CAPABILITIES,
                Tags=[{"Key": "prime-train", "Value": self.name}],
            )
        return self._planned(made["Id"], is_first)

    def drop(self, plan: Plan) -> None:
        """Nothing comes of the plan; a stack that was only planned goes with it."""
        with told(f"stack {self.name}"):
            if plan.is_first:
                self._client.delete_stack(StackName=self.name)
            else:
                self._client.delete_change_set(ChangeSetName=plan.id, StackName=self.name)

    def carry_out(self, plan: Plan, said: Callable[[str], object]) -> None:
        """Returns when it is done; `said` is told each new state. PermanentError says why it was not, after all was put back."""
        begun_s = time.time()
        with told(f"stack {self.name}"):
            self._client.execute_change_set(ChangeSetName=plan.id, StackName=self.name)
        state = self._settled(said)
        if state not in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
            raise PermanentError(f"stack {self.name} is {state}: {self._reasons(begun_s)}")

    def delete(self, said: Callable[[str], object]) -> None:
        """Returns when it has gone."""
        found = self._describe()
        if not found:
            return
        with told(f"stack {self.name}"):
            self._client.delete_stack(StackName=self.name)
        state = self._settled(said, name=found["StackId"])
        if state not in ("", "DELETE_COMPLETE"):
            raise PermanentError(f"stack {self.name} is {state}: {self._reasons(0.0)}")

    def _planned(self, plan_id: str, is_first: bool) -> Plan | None:
        for _ in range(LOOKS_MAX):
            with told(f"the changes to stack {self.name}"):
                found = self._client.describe_change_set(ChangeSetName=plan_id, StackName=self.name)
            if found["Status"] == "CREATE_COMPLETE":
                return Plan(plan_id, is_first, tuple(_changed(one["ResourceChange"]) for one in found.get("Changes", [])))
            if found["Status"] == "FAILED":
                if is_first:
                    self.drop(Plan(plan_id, is_first, ()))  # of a stack that is there it goes with the next plan that is carried out
                why = str(found.get("StatusReason", ""))
                if any(words in why for words in NOTHING):
                    return None
                raise PermanentError(f"stack {self.name} can not be planned: {why[:500]}")
            time.sleep(LOOK_S)
        raise TemporaryError(f"the changes to stack {self.name} are not worked out yet")

    def _settled(self, said: Callable[[str], object], *, name: str = "") -> str:
        """The state it came to rest in; a stack that is deleted is still found by its id, given as `name`."""
        last = ""
        for _ in range(LOOKS_MAX):
            found = self._describe(name)
            state = str(found["StackStatus"]) if found else ""
            if state != last:
                said(state)
            if not state.endswith("_IN_PROGRESS"):
                return state
            last = state
            time.sleep(LOOK_S)
        raise TemporaryError(f"stack {self.name} is {last} still; prime-train doctor says when it is done")

    def _describe(self, name: str = "") -> dict[str, Any] | None:
        try:
            with told(f"stack {self.name}"):
                found: dict[str, Any] = self._client.describe_stacks(StackName=name or self.name)["Stacks"][0]
        except PermanentError as error:
            if isinstance(error.__cause__, ClientError) and "does not exist" in str(error.__cause__):
                return None
            raise
        return None if found["StackStatus"] == "DELETE_COMPLETE" and not name else found

    def _reasons(self, since_s: float) -> str:
        with told(f"stack {self.name}"):
            events = self._client.describe_stack_events(StackName=self.name)["StackEvents"]
        failed = [one for one in events if "FAILED" in one["ResourceStatus"] and one["Timestamp"].timestamp() >= since_s - 1]
        reasons = [f"{one['LogicalResourceId']}: {one.get('ResourceStatusReason', '')[:200]}" for one in failed[:REASONS_MAX]]
        return "; ".join(reasons) or "AWS does not say why"


def _changed(change: Mapping[str, Any]) -> Changed:
    replaces = change.get("Replacement") in ("True", "Conditional")
    return Changed(change["Action"], change["LogicalResourceId"], change["ResourceType"], replaces)
