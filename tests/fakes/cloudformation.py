"""A fake of CloudFormation with one stack, which may be in any state, refuse, fail, or take for ever; and of
the other services that `deploy` queries.

Checked against AWS's own description by boto3, which parses the responses. ministack stands for the rest of
AWS, where nothing ever hangs.
"""

from collections.abc import Iterable
from dataclasses import MISSING, dataclass, field, fields
from xml.sax.saxutils import escape

from tests.fakes.http import Fault, HttpFake, Json, LoseResponse, Request, Response, Route

NAME = "training"
STACK_ID = f"arn:aws:cloudformation:eu-central-1:123456789012:stack/{NAME}/1"
NEW = "REVIEW_IN_PROGRESS"
OURS = {"prime-train": NAME}
BUCKET = '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{found}</ListBucketResult>'
FOUND = "<Contents><Key>k</Key></Contents>"


@dataclass
class FakeCloudFormation(HttpFake):
    """The fake. `state`: "" means no stack. `change_sets`: by name. `change_set_statuses`: status and reason
    of a change set, one for each query; the last one repeats. `course`: the states that a change goes
    through, each with its events (resource, status, reason).
    """

    state: str = ""
    tags: dict[str, str] = field(default_factory=lambda: dict(OURS))
    parameters: dict[str, str] = field(default_factory=dict)
    change_sets: list[str] = field(default_factory=list)
    change_set_statuses: list[tuple[str, str]] = field(default_factory=lambda: [("CREATE_COMPLETE", "")])
    course: list[tuple[str, list[tuple[str, str, str]]]] = field(default_factory=list)
    refusals: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Refusals by action: code and message."""
    lost_responses: dict[str, int] = field(default_factory=dict)
    """Number of further responses that get lost, by action; the request takes effect."""
    bucket_keys: list[str] | None = None
    """The content of every bucket; None: every requested key exists."""
    requested: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._forget()

    def _forget(self) -> None:
        self._events: list[tuple[str, str, str]] = []
        self._under_way = False

    def renew(self) -> None:
        """Reset the fake to its first state, so that a client of it, which takes longer to make than most
        tests, can be reused.
        """
        for each in fields(self):
            setattr(
                self, each.name, each.default if each.default_factory is MISSING else each.default_factory()
            )
        self._forget()

    @property
    def actions(self) -> list[str]:
        return [requested["Action"] for requested in self.requested]

    def await_asked(self, action: str, times: int = 1) -> None:
        self.await_state(lambda: self.actions.count(action) >= times, f"{times} of {action}")

    def fault_for(self, request: Request) -> Fault | None:
        action = request.form.get("Action", "")
        if self.lost_responses.get(action, 0) == 0:
            return None
        self.lost_responses[action] -= 1
        return LoseResponse()

    def _account_settings(self, _: Request) -> Json:
        return {"AccountLimit": {"UnreservedConcurrentExecutions": 1000}}

    def _list_bucket(self, request: Request) -> Response:
        is_there = self.bucket_keys is None or request.query["prefix"] in self.bucket_keys
        return Response(200, BUCKET.format(found=FOUND if is_there else "").encode(), "application/xml")

    def _act(self, request: Request) -> Response:
        self.requested.append(request.form)
        return self._answer(request.form)

    routes = (
        Route("POST", "/", _act),
        Route("GET", "/{path:path}/account-settings", _account_settings),
        Route("GET", "/{bucket}", _list_bucket),
    )

    def _answer(self, requested: dict[str, str]) -> Response:
        action = requested["Action"]
        if action in self.refusals:
            return _refusal(*self.refusals[action])
        match action:
            case "GetCallerIdentity":
                return _result(action, "<Account>123456789012</Account>")
            case "DescribeStacks":
                return self._described()
            case "DescribeStackEvents":
                return _result(action, f"<StackEvents>{''.join(self._event_rows())}</StackEvents>")
            case "CreateChangeSet":
                self.state = self.state or NEW
                self.change_sets.append(requested["ChangeSetName"])
                return _result(action, "<Id>1</Id>")
            case "DescribeChangeSet":
                status, why = (
                    self.change_set_statuses.pop(0)
                    if len(self.change_set_statuses) > 1
                    else self.change_set_statuses[0]
                )
                execution = "EXECUTE_IN_PROGRESS" if self._under_way else "AVAILABLE"
                state = f"<Status>{status}</Status><ExecutionStatus>{execution}</ExecutionStatus>"
                return _result(action, f"{state}<StatusReason>{escape(why)}</StatusReason>")
            case "ListChangeSets":
                names = "".join(
                    f"<member><ChangeSetName>{name}</ChangeSetName></member>" for name in self.change_sets
                )
                return _result(action, f"<Summaries>{names}</Summaries>")
            case "ExecuteChangeSet" | "DeleteChangeSet" if self._under_way:
                return _refusal(
                    "InvalidChangeSetStatus",
                    "ChangeSet cannot be used in its current status of [EXECUTE_IN_PROGRESS]",
                )
            case "DeleteChangeSet":
                self.change_sets = [name for name in self.change_sets if name != requested["ChangeSetName"]]
            case "DeleteStack" if not self.course:
                self.state, self.change_sets = "", []
            case _:
                self._under_way = True
        return _result(action, "")

    def _described(self) -> Response:
        if self._under_way and self.course:
            self.state, events = self.course.pop(0)
            self._events += events
            self.course = self.course or [(self.state, [])]
        if not self.state:
            return _refusal("ValidationError", f"Stack with id {NAME} does not exist")
        tags = _members(
            f"<Key>{name}</Key><Value>{value}</Value>"
            for name, value in self.tags.items()
            if self.state != NEW
        )
        given = self.parameters.items()
        parameters = _members(
            f"<ParameterKey>{name}</ParameterKey><ParameterValue>{value}</ParameterValue>"
            for name, value in given
        )
        stack = f"<StackName>{NAME}</StackName><StackId>{STACK_ID}</StackId><StackStatus>{self.state}</StackStatus>"
        stack += f"<CreationTime>2026-11-21T00:00:00Z</CreationTime><Tags>{tags}</Tags><Parameters>{parameters}</Parameters>"
        return _result("DescribeStacks", f"<Stacks><member>{stack}</member></Stacks>")

    def _event_rows(self) -> Iterable[str]:
        """Return the events, the newest first."""
        for number, (name, status, why) in reversed(list(enumerate(self._events))):
            about = f"<EventId>{number}</EventId><StackId>{STACK_ID}</StackId><StackName>{NAME}</StackName>"
            about += f"<LogicalResourceId>{name}</LogicalResourceId><ResourceStatus>{status}</ResourceStatus>"
            about += f"<ResourceStatusReason>{escape(why)}</ResourceStatusReason><Timestamp>2026-11-21T00:00:00Z</Timestamp>"
            yield f"<member>{about}</member>"


def _members(rows: Iterable[str]) -> str:
    return "".join(f"<member>{row}</member>" for row in rows)


def _result(action: str, text: str) -> Response:
    body = f"<{action}Response><{action}Result>{text}</{action}Result></{action}Response>"
    return Response(200, body.encode(), "text/xml")


def _refusal(code: str, message: str) -> Response:
    body = f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{escape(message)}</Message></Error></ErrorResponse>"
    return Response(403 if "Denied" in code or "Token" in code else 400, body.encode(), "text/xml")
