"""A fake of CloudFormation with one stack, which may be in any state, refuse, fail, or take for ever; and of what `deploy` asks beside it.

Measured against AWS's own description by boto3, which reads the answers. ministack plays the rest of AWS: nothing is ever stuck there.
"""

import json
import threading
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, field, fields
from urllib.parse import parse_qsl, urlsplit
from xml.sax.saxutils import escape

from tests.fakes.prime.answering import Target
from tests.fakes.prime.faults import Answer
from tests.fakes.prime.http_front import HttpFront
from tests.fakes.served import Served

NAME = "training"
STACK_ID = f"arn:aws:cloudformation:eu-central-1:123456789012:stack/{NAME}/1"
NEW = "REVIEW_IN_PROGRESS"
OURS = {"prime-train": NAME}
BUCKET = '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{found}</ListBucketResult>'
FOUND = "<Contents><Key>k</Key></Contents>"


@dataclass
class FakeCloudFormation(Served):
    """`state`: "" is no stack. `plans`: its change sets, by name. `planning`: what is said of a change set, look after look, and then again
    and again. `course`: the states that a change goes through, each with the events (part, status, reason) that come with it."""

    state: str = ""
    tags: dict[str, str] = field(default_factory=lambda: dict(OURS))
    parameters: dict[str, str] = field(default_factory=dict)
    plans: list[str] = field(default_factory=list)
    planning: list[tuple[str, str]] = field(default_factory=lambda: [("CREATE_COMPLETE", "")])
    course: list[tuple[str, list[tuple[str, str, str]]]] = field(default_factory=list)
    refusals: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Code and message, by action."""
    lost: dict[str, int] = field(default_factory=dict)
    """How many answers get lost yet, by action: what was asked is done."""
    brought: list[str] | None = None
    """What is in every bucket; None: whatever is looked for."""
    asked: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._forget()
        self._heard = threading.Condition()
        self._front = HttpFront(self._reply)
        self.serve_by(self._front)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        assert not self._front.broken, f"the fake itself failed: {self._front.broken}"

    def _forget(self) -> None:
        self._events: list[tuple[str, str, str]] = []
        self._under_way = False

    def renew(self) -> None:
        """As it was made first. A client of it can be kept, which takes longer to make than most tests."""
        for each in fields(self):
            setattr(self, each.name, each.default if each.default_factory is MISSING else each.default_factory())
        self._forget()

    @property
    def actions(self) -> list[str]:
        return [asked["Action"] for asked in self.asked]

    def await_asked(self, action: str, times: int = 1, limit_s: float = 60.0) -> None:
        with self._heard:
            assert self._heard.wait_for(lambda: self.actions.count(action) >= times, limit_s), self.actions

    def _reply(self, target: Target, _: str) -> Answer | None:
        with self._heard:
            if "/account-settings" in target.target:
                return Answer(200, json.dumps({"AccountLimit": {"UnreservedConcurrentExecutions": 1000}}).encode())
            if "list-type=2" in target.target:
                looked_for = dict(parse_qsl(urlsplit(target.target).query))["prefix"]
                is_there = self.brought is None or looked_for in self.brought
                return Answer(200, BUCKET.format(found=FOUND if is_there else "").encode(), "application/xml")
            asked = dict(parse_qsl(target.body.decode(), keep_blank_values=True))
            self.asked.append(asked)
            self._heard.notify_all()
            answer = self._answer(asked)
            if self.lost.get(asked["Action"], 0) > 0:
                self.lost[asked["Action"]] -= 1
                return None
            return answer

    def _answer(self, asked: dict[str, str]) -> Answer:
        action = asked["Action"]
        if action in self.refusals:
            return _refusal(*self.refusals[action])
        match action:
            case "GetCallerIdentity":
                return _said(action, "<Account>123456789012</Account>")
            case "DescribeStacks":
                return self._described()
            case "DescribeStackEvents":
                return _said(action, f"<StackEvents>{''.join(self._told())}</StackEvents>")
            case "CreateChangeSet":
                self.state = self.state or NEW
                self.plans.append(asked["ChangeSetName"])
                return _said(action, "<Id>1</Id>")
            case "DescribeChangeSet":
                status, why = self.planning.pop(0) if len(self.planning) > 1 else self.planning[0]
                execution = "EXECUTE_IN_PROGRESS" if self._under_way else "AVAILABLE"
                told = f"<Status>{status}</Status><ExecutionStatus>{execution}</ExecutionStatus>"
                return _said(action, f"{told}<StatusReason>{escape(why)}</StatusReason>")
            case "ListChangeSets":
                plans = "".join(f"<member><ChangeSetName>{name}</ChangeSetName></member>" for name in self.plans)
                return _said(action, f"<Summaries>{plans}</Summaries>")
            case "ExecuteChangeSet" | "DeleteChangeSet" if self._under_way:
                return _refusal("InvalidChangeSetStatus", "ChangeSet cannot be used in its current status of [EXECUTE_IN_PROGRESS]")
            case "DeleteChangeSet":
                self.plans = [name for name in self.plans if name != asked["ChangeSetName"]]
            case "DeleteStack" if not self.course:
                self.state, self.plans = "", []
            case _:
                self._under_way = True
        return _said(action, "")

    def _described(self) -> Answer:
        if self._under_way and self.course:
            self.state, events = self.course.pop(0)
            self._events += events
            self.course = self.course or [(self.state, [])]
        if not self.state:
            return _refusal("ValidationError", f"Stack with id {NAME} does not exist")
        tags = _members(f"<Key>{name}</Key><Value>{value}</Value>" for name, value in self.tags.items() if self.state != NEW)
        given = self.parameters.items()
        parameters = _members(f"<ParameterKey>{name}</ParameterKey><ParameterValue>{value}</ParameterValue>" for name, value in given)
        stack = f"<StackName>{NAME}</StackName><StackId>{STACK_ID}</StackId><StackStatus>{self.state}</StackStatus>"
        stack += f"<CreationTime>2026-11-21T00:00:00Z</CreationTime><Tags>{tags}</Tags><Parameters>{parameters}</Parameters>"
        return _said("DescribeStacks", f"<Stacks><member>{stack}</member></Stacks>")

    def _told(self) -> Iterable[str]:
        """The newest first."""
        for number, (name, status, why) in reversed(list(enumerate(self._events))):
            about = f"<EventId>{number}</EventId><StackId>{STACK_ID}</StackId><StackName>{NAME}</StackName>"
            about += f"<LogicalResourceId>{name}</LogicalResourceId><ResourceStatus>{status}</ResourceStatus>"
            about += f"<ResourceStatusReason>{escape(why)}</ResourceStatusReason><Timestamp>2026-11-21T00:00:00Z</Timestamp>"
            yield f"<member>{about}</member>"


def _members(rows: Iterable[str]) -> str:
    return "".join(f"<member>{row}</member>" for row in rows)


def _said(action: str, text: str) -> Answer:
    body = f"<{action}Response><{action}Result>{text}</{action}Result></{action}Response>"
    return Answer(200, body.encode(), "text/xml")


def _refusal(code: str, message: str) -> Answer:
    body = f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{escape(message)}</Message></Error></ErrorResponse>"
    return Answer(403 if "Denied" in code or "Token" in code else 400, body.encode(), "text/xml")
