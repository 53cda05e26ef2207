"""Answers to what is asked about comments, reactions and labels."""

from tests.fakes.github import events, shown
from tests.fakes.github.asked import Answered, Asked, Page, Told
from tests.fakes.github.refusals import Refused, invalid, not_found
from tests.fakes.github.repos import WRITERS, Comment, Pull
from tests.fakes.github.tokens import Kind
from tests.fakes.github.world import World

BODY_CHARS_MAX = 65_536
LABEL_CHARS_MAX = 50


def get_issue(world: World, asked: Asked) -> Answered:
    return shown.issue(world, asked.repo, asked.pull("issue_number"))


def list_comments(world: World, asked: Asked) -> Answered:
    number = asked.pull("issue_number").number
    since = asked.query.get("since", "")
    told = [shown.comment(world, asked.repo, said) for said in asked.repo.comments.values() if said.number == number]
    return Page([said for said in told if said["updated_at"] >= since])


def create_comment(world: World, asked: Asked) -> Answered:
    pull, now_s = asked.pull("issue_number"), world.now_s()
    _open_to(pull, asked)
    said = Comment(world.new_id(), pull.number, asked.by.login, _body(asked), now_s, now_s)
    asked.repo.comments[said.comment_id] = said
    world.happen("issue_comment", asked.repo, events.issue_comment(world, asked.repo, said), asked.by)
    return Told(201, shown.comment(world, asked.repo, said))


def get_comment(world: World, asked: Asked) -> Answered:
    return shown.comment(world, asked.repo, _comment(asked))


def update_comment(world: World, asked: Asked) -> Answered:
    said = _own(asked)
    said.body, said.changed_s = _body(asked), world.now_s()
    return shown.comment(world, asked.repo, said)


def delete_comment(world: World, asked: Asked) -> Answered:
    del asked.repo.comments[_own(asked).comment_id]
    return Told(204)


def list_reactions(world: World, asked: Asked) -> Answered:
    return Page([_reaction(world, *each) for each in _comment(asked).reactions])


def create_reaction(world: World, asked: Asked) -> Answered:
    """The same reaction of the same person is told again, and there is no second."""
    said, content = _comment(asked), asked.json["content"]
    for each in said.reactions:
        if each[1:] == (asked.by.login, content):
            return _reaction(world, *each)
    said.reactions.append((world.new_id(), asked.by.login, content))
    return Told(201, _reaction(world, *said.reactions[-1]))


def list_labels(world: World, asked: Asked) -> Answered:
    return Page(_labels(world, asked))


def add_labels(world: World, asked: Asked) -> Answered:
    pull = asked.pull("issue_number")
    for each in asked.json.get("labels", ()):
        name = each if isinstance(each, str) else each["name"]
        if not name or len(name) > LABEL_CHARS_MAX:
            raise invalid("Label", "name", f"name is too long (maximum is {LABEL_CHARS_MAX} characters)")
        if name not in pull.labels:
            pull.labels.append(name)
            payload = events.pull_request(world, asked.repo, pull, "labeled", asked.by.login, label=name)
            world.happen("pull_request", asked.repo, payload, asked.by)
    return Page(_labels(world, asked))


def remove_label(world: World, asked: Asked) -> Answered:
    pull, name = asked.pull("issue_number"), asked.found["name"]
    if name not in pull.labels:
        raise Refused(404, "Label does not exist")
    pull.labels.remove(name)
    return Page(_labels(world, asked))


def _labels(world: World, asked: Asked) -> list[shown.Json]:
    return [shown.label(world, asked.repo, name) for name in asked.pull("issue_number").labels]


def _reaction(world: World, reaction_id: int, login: str, content: str) -> shown.Json:
    return {"id": reaction_id, "user": shown.user(world, login), "content": content}


def _body(asked: Asked) -> str:
    body = str(asked.json["body"])
    if not body.strip():
        raise invalid("IssueComment", "data", "Body cannot be blank", "unprocessable")
    if len(body) > BODY_CHARS_MAX:
        raise invalid("IssueComment", "data", f"Body is too long (maximum is {BODY_CHARS_MAX} characters)", "unprocessable")
    return body


def _comment(asked: Asked) -> Comment:
    if asked.number("comment_id") not in asked.repo.comments:
        raise not_found()
    return asked.repo.comments[asked.number("comment_id")]


def _own(asked: Asked) -> Comment:
    """One that may be changed: people without the right to write change only what they wrote themselves."""
    said, by = _comment(asked), asked.by
    if by.kind is Kind.PERSON and said.author != by.login and asked.repo.role(by.login) not in WRITERS:
        raise Refused(403, "Must have admin rights to Repository.")
    return said


def _open_to(pull: Pull, asked: Asked) -> None:
    if pull.is_locked and asked.repo.role(asked.by.login) not in WRITERS:
        raise Refused(403, "Unable to create comment because issue is locked.")
