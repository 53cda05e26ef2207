"""A CloudFormation stack, changed only by change sets: a plan first, then its execution."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from botocore.exceptions import ClientError

from prime_train.advice import Advice, Call, Operation, Option, SettingAdvice
from prime_train.aws.error_conversion import translated_errors
from prime_train.aws.events import Events
from prime_train.aws.plan import CHANGEABLE, NEW, REMEDIES, StackChange, changed
from prime_train.errors import ExternalError, PermanentError, TemporaryError
from prime_train.text.invocations import worded

CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
LOOK_S = 1.0
LOOKS_MAX = 1800
BEGINS_LOOKS_MAX = 10
"""Maximum number of polls for a sign that a change has begun. The first poll may not show it yet, and a short
change may leave no event at all.
"""
WHY_CHARS_MAX = 600
DONE = Advice(Call(Operation.DOCTOR), " shows when the change is complete")
BEGUN = "EXECUTE_"
"""Prefix of CloudFormation's execution status for a change set that is being or was executed."""
NOTHING = ("didn't contain changes", "No updates are to be performed", "no changes")
TAG, DESCRIPTION, OUTPUTS = (
    "prime-train",
    "prime-train:",
    frozenset({"Secret", "Table", "Watcher", "Webhook"}),
)
"""A stack with this tag, with a description that begins like this, or with all of these outputs is one of
prime-train's; other stacks are never changed.
"""


class Stack:
    """A CloudFormation stack, found by its name. `client` is boto3's CloudFormation client. `look_s`: seconds
    between two polls.
    """

    def __init__(self, client: Any, name: str, look_s: float = LOOK_S) -> None:
        self._client, self.name, self._look_s = client, name, look_s

    def state(self) -> str:
        """Return CloudFormation's status of the stack, or an empty string if it does not exist. Raises
        PermanentError if a stack of that name exists that is not prime-train's.
        """
        found = self._describe()
        return str(found["StackStatus"]) if found else ""

    def changeable(self) -> str:
        """Return the stack's state if it can be changed. Raises TemporaryError if a change is in progress,
        PermanentError with advice for any other state.
        """
        state = self.state()
        if state in CHANGEABLE:
            return state
        if state.endswith("_IN_PROGRESS"):
            raise TemporaryError(
                f"stack {self.name} is {state}: a change is in progress; wait until it is complete"
            )
        raise PermanentError(
            f"stack {self.name} is {state}",
            fix=REMEDIES.get(state, "look at the events of the stack in the AWS console"),
        )

    def outputs(self) -> dict[str, str]:
        """Return the stack's outputs. Raises PermanentError if it does not exist."""
        found = self._describe()
        if not found or found["StackStatus"] == NEW:
            fix = Advice("create it with ", Call(Operation.DEPLOY))
            raise PermanentError(f"there is no stack {self.name} in this account and region", fix=fix)
        return {one["OutputKey"]: one["OutputValue"] for one in found.get("Outputs", [])}

    def parameters(self) -> dict[str, str]:
        """Return the stack's current parameters; empty if it does not exist."""
        found = self._describe()
        is_there = found and found["StackStatus"] != NEW
        return (
            {one["ParameterKey"]: one.get("ParameterValue", "") for one in found.get("Parameters", [])}
            if found and is_there
            else {}
        )

    def parts(self, kind: str) -> list[str]:
        """Return the physical ids of the stack's resources of that type, such as AWS::CloudWatch::Alarm."""
        with translated_errors(f"the resources of stack {self.name}"):
            pages = self._client.get_paginator("list_stack_resources").paginate(StackName=self.name)
            rows = [row for page in pages for row in page["StackResourceSummaries"]]
        return [
            row["PhysicalResourceId"]
            for row in rows
            if row["ResourceType"] == kind and row.get("PhysicalResourceId")
        ]

    def plan(self, template: str, parameters: Mapping[str, str | None]) -> StackChange | None:
        """Create a change set, and return it, or None if nothing would change. A parameter that is None keeps
        its value, or gets the template's default.
        """
        state, known = self.changeable(), self.parameters()
        given = [
            {"ParameterKey": name, "ParameterValue": value}
            for name, value in parameters.items()
            if value is not None
        ]
        kept = [
            {"ParameterKey": name, "UsePreviousValue": True}
            for name, value in parameters.items()
            if value is None and name in known
        ]
        plan = StackChange(f"prime-train-{time.time_ns()}", is_first=state in ("", NEW))
        try:
            with translated_errors(f"the changes to stack {self.name}"):
                self._client.create_change_set(
                    StackName=self.name,
                    ChangeSetName=plan.name,
                    ChangeSetType="CREATE" if plan.is_first else "UPDATE",
                    TemplateBody=template,
                    Parameters=given + kept,
                    Capabilities=CAPABILITIES,
                    Tags=[{"Key": TAG, "Value": self.name}],
                )
            return self._planned(plan)
        except BaseException:
            self._give_up(plan)
            raise

    def drop(self, plan: StackChange) -> None:
        """Delete the plan, and also the stack if it exists only because of this plan. Raises PermanentError,
        and deletes nothing, if the plan is being executed.
        """
        try:
            # The stack second: a plan that can be deleted is not being executed, and never will be.
            with translated_errors(f"stack {self.name}"):
                self._client.delete_change_set(ChangeSetName=plan.name, StackName=self.name)
        except PermanentError:
            # A plan that is still being created cannot be deleted, but is deleted with its stack.
            if not plan.is_first or self._has_begun(plan):
                raise
        with translated_errors(f"stack {self.name}"):
            if plan.is_first and self._is_planned_by(plan):
                self._client.delete_stack(StackName=self.name)

    def carry_out(self, plan: StackChange, progress: Callable[[str], object]) -> None:
        """Execute the plan, and return when it is done; `progress` is called with a line about each finished
        resource. Raises PermanentError with the reasons if it failed, after AWS has rolled it back.
        """
        events = Events(self._client, self.name, progress)
        try:
            with translated_errors(f"stack {self.name}"):
                self._client.execute_change_set(
                    ChangeSetName=plan.name, StackName=self.name, ClientRequestToken=plan.name
                )
        except ExternalError:
            # A lost response is no failure, and neither is the refusal of a second start if boto3 has
            # retried.
            if not self._has_begun(plan):
                self._give_up(plan)
                raise
        state = self._settled(events, progress)
        if state not in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
            raise PermanentError(
                f"stack {self.name} is {state}: {events.reasons()}", fix=REMEDIES.get(state, "")
            )

    def delete(self, progress: Callable[[str], object]) -> None:
        """Delete the stack, and return when it no longer exists."""
        found = self._describe()
        if not found:
            return
        events = Events(self._client, found["StackId"], progress)
        with translated_errors(f"stack {self.name}"):
            self._client.delete_stack(StackName=self.name)
        state = self._settled(events, progress, name=found["StackId"])
        if state not in ("", "DELETE_COMPLETE"):
            fix = Advice("retry with ", Call(Operation.DESTROY))
            raise PermanentError(f"stack {self.name} is {state}: {events.reasons()}", fix=fix)

    def _give_up(self, plan: StackChange) -> None:
        """Drop the plan after a failure. An error of this clean-up is suppressed, so that the failure itself
        is raised.
        """
        with suppress(ExternalError):
            self.drop(plan)

    def _has_begun(self, plan: StackChange) -> bool:
        """Return whether AWS executes the plan or has executed it, with whatever result."""
        with translated_errors(f"the changes to stack {self.name}"):
            found = self._client.describe_change_set(ChangeSetName=plan.name, StackName=self.name)
        return str(found.get("ExecutionStatus", "")).startswith(BEGUN)

    def _is_planned_by(self, plan: StackChange) -> bool:
        """Return whether the stack consists of this plan only."""
        if self.state() != NEW:
            return False
        return all(
            one["ChangeSetName"] == plan.name
            for one in self._client.list_change_sets(StackName=self.name)["Summaries"]
        )

    def _planned(self, plan: StackChange) -> StackChange | None:
        for _ in range(LOOKS_MAX):
            with translated_errors(f"the changes to stack {self.name}"):
                found = self._client.describe_change_set(ChangeSetName=plan.name, StackName=self.name)
            if found["Status"] == "CREATE_COMPLETE":
                return StackChange(
                    plan.name,
                    plan.is_first,
                    tuple(changed(one["ResourceChange"]) for one in found.get("Changes", [])),
                )
            if found["Status"] == "FAILED":
                why = str(found.get("StatusReason", ""))
                if any(words in why for words in NOTHING):
                    self.drop(plan)
                    return None
                raise PermanentError(f"stack {self.name} cannot be planned: {why[:WHY_CHARS_MAX]}")
            time.sleep(self._look_s)
        raise TemporaryError(f"the changes to stack {self.name} are not computed yet")

    def _settled(self, events: Events, progress: Callable[[str], object], *, name: str = "") -> str:
        """Return the stack's state once no change is in progress. `name`: the stack's id if it may have been
        deleted, because a deleted stack is not found by its name.
        """
        state = ""
        try:
            for look in range(LOOKS_MAX):
                found = self._describe(name)
                state = str(found["StackStatus"]) if found else ""
                events.report()
                has_begun = bool(name) or events.came or look >= BEGINS_LOOKS_MAX
                if has_begun and not state.endswith("_IN_PROGRESS"):
                    return state
                time.sleep(self._look_s)
        except KeyboardInterrupt:
            progress(f"AWS is still working on stack {self.name}, which is {state} now; {worded(DONE)}")
            raise
        raise TemporaryError(f"stack {self.name} is still {state}", fix=DONE)

    def _describe(self, name: str = "") -> dict[str, Any] | None:
        try:
            with translated_errors(f"stack {self.name}"):
                found: dict[str, Any] = self._client.describe_stacks(StackName=name or self.name)["Stacks"][0]
        except PermanentError as error:
            if isinstance(error.__cause__, ClientError) and "does not exist" in str(error.__cause__):
                return None
            raise
        if not name and found["StackStatus"] not in (NEW, "DELETE_COMPLETE") and not _is_ours(found):
            fix = Advice("choose another stack name with ", Option(SettingAdvice.STACK, "NAME"))
            raise PermanentError(
                f"stack {self.name} was not created by prime-train, so it is not changed", fix=fix
            )
        return None if found["StackStatus"] == "DELETE_COMPLETE" and not name else found


def _is_ours(found: Mapping[str, Any]) -> bool:
    tags, outputs = (
        {one[key] for one in found.get(part, [])} for part, key in (("Tags", "Key"), ("Outputs", "OutputKey"))
    )
    return TAG in tags or found.get("Description", "").startswith(DESCRIPTION) or outputs >= OUTPUTS
