"""Requests about comments, reactions and labels."""

from tests.fakes.github import events, views
from tests.fakes.github.messages import Call, Page, Reply, Result
from tests.fakes.github.refusals import Refused, invalid, not_found
from tests.fakes.github.repos import WRITERS, Comment, Pull
from tests.fakes.github.tokens import Kind
from tests.fakes.github.world import World
from tests.fakes.http import Json

BODY_CHARS_MAX = 65_536
LABEL_CHARS_MAX = 50


def get_issue(world: World, call: Call) -> Result:
    return views.issue(world, call.repo, call.pull("issue_number"))


def list_comments(world: World, call: Call) -> Result:
    number = call.pull("issue_number").number
    since = call.query.get("since", "")
    rows = [
        views.comment(world, call.repo, message)
        for message in call.repo.comments.values()
        if message.number == number
    ]
    return Page([message for message in rows if message["updated_at"] >= since])


def create_comment(world: World, call: Call) -> Result:
    pull, now_s = call.pull("issue_number"), world.now_s()
    _open_to(pull, call)
    message = Comment(world.new_id(), pull.number, call.by.login, _body(call), now_s, now_s)
    call.repo.comments[message.comment_id] = message
    world.happen("issue_comment", call.repo, events.issue_comment(world, call.repo, message), call.by)
    return Reply(201, views.comment(world, call.repo, message))


def get_comment(world: World, call: Call) -> Result:
    return views.comment(world, call.repo, _comment(call))


def update_comment(world: World, call: Call) -> Result:
    message = _own(call)
    message.body, message.changed_s = _body(call), world.now_s()
    return views.comment(world, call.repo, message)


def delete_comment(world: World, call: Call) -> Result:
    del call.repo.comments[_own(call).comment_id]
    return Reply(204)


def list_reactions(world: World, call: Call) -> Result:
    return Page([_reaction(world, *each) for each in _comment(call).reactions])


def create_reaction(world: World, call: Call) -> Result:
    """Create a reaction. The same reaction of the same person is returned again instead of created twice."""
    message, content = _comment(call), call.body["content"]
    for each in message.reactions:
        if each[1:] == (call.by.login, content):
            return _reaction(world, *each)
    message.reactions.append((world.new_id(), call.by.login, content))
    return Reply(201, _reaction(world, *message.reactions[-1]))


def list_labels(world: World, call: Call) -> Result:
    return Page(_labels(world, call))


def add_labels(world: World, call: Call) -> Result:
    pull = call.pull("issue_number")
    for each in call.body.get("labels", ()):
        name = each if isinstance(each, str) else each["name"]
        if not name or len(name) > LABEL_CHARS_MAX:
            raise invalid("Label", "name", f"name is too long (maximum is {LABEL_CHARS_MAX} characters)")
        if name not in pull.labels:
            pull.labels.append(name)
            payload = events.pull_request(world, call.repo, pull, "labeled", call.by.login, label=name)
            world.happen("pull_request", call.repo, payload, call.by)
    return Page(_labels(world, call))


def remove_label(world: World, call: Call) -> Result:
    pull, name = call.pull("issue_number"), call.params["name"]
    if name not in pull.labels:
        raise Refused(404, "Label does not exist")
    pull.labels.remove(name)
    return Page(_labels(world, call))


def _labels(world: World, call: Call) -> list[Json]:
    return [views.label(world, call.repo, name) for name in call.pull("issue_number").labels]


def _reaction(world: World, reaction_id: int, login: str, content: str) -> Json:
    return {"id": reaction_id, "user": views.user(world, login), "content": content}


def _body(call: Call) -> str:
    body = str(call.body["body"])
    if not body.strip():
        raise invalid("IssueComment", "data", "Body cannot be blank", "unprocessable")
    if len(body) > BODY_CHARS_MAX:
        raise invalid(
            "IssueComment",
            "data",
            f"Body is too long (maximum is {BODY_CHARS_MAX} characters)",
            "unprocessable",
        )
    return body


def _comment(call: Call) -> Comment:
    if call.number("comment_id") not in call.repo.comments:
        raise not_found()
    return call.repo.comments[call.number("comment_id")]


def _own(call: Call) -> Comment:
    """Return a comment that may be changed: people without write permission change only their own."""
    message, by = _comment(call), call.by
    if by.kind is Kind.PERSON and message.author != by.login and call.repo.role(by.login) not in WRITERS:
        raise Refused(403, "Must have admin rights to Repository.")
    return message


def _open_to(pull: Pull, call: Call) -> None:
    if pull.is_locked and call.repo.role(call.by.login) not in WRITERS:
        raise Refused(403, "Unable to create comment because issue is locked.")
