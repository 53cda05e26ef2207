"""Parse the event file of a GitHub job. What is in an event may come from any GitHub user, so nothing in it
is executed, and permissions are checked with GitHub's API instead.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from prime_train.errors import UsageError

EVENT_BYTES_MAX = 32 * 2**20
HEADS = "refs/heads/"
"""Start of the full name of a branch."""
_QUEUED = re.compile(r"/pr-([1-9][0-9]{0,9})-[0-9a-f]{40,64}$")
"""End of the name of a merge queue's branch: refs/heads/gh-readonly-queue/main/pr-7-SHA."""


@dataclass(frozen=True)
class PullRequest:
    """A pull request event. `head`: the commit it proposes, which a job does not check out by default.
    `label`: the label that was just added. `branch`: the branch that has the proposed commits, in its own
    repository; `base_branch`: the one that they are proposed for.
    """

    action: str
    number: int
    head: str
    head_repository: str
    base: str
    sender: str
    sender_is_person: bool
    label: str = ""
    merged: bool = False
    merge_commit: str = ""
    branch: str = ""
    base_branch: str = ""


@dataclass(frozen=True)
class MergeGroup:
    """A merge queue asks for the checks of a commit before it becomes the newest one of its branch. `head`:
    that commit; `base`: the one that it comes after; `pull`: the number of the pull request that was added
    last, or None if the name of the queue's branch has none.
    """

    head: str
    base: str
    pull: int | None = None


@dataclass(frozen=True)
class Comment:
    issue: int
    is_pull: bool
    comment_id: int
    body: str
    author: str
    author_is_person: bool


@dataclass(frozen=True)
class Dispatch:
    """A workflow_dispatch event (`action` is empty; `payload` holds the inputs), or a repository_dispatch
    event named `action` with its payload. `branch`: the branch on which the workflow runs, empty if it is a
    tag.
    """

    action: str = ""
    payload: dict[str, object] = field(default_factory=dict)
    branch: str = ""

    def text(self, name: str) -> str:
        value = self.payload.get(name, "")
        if isinstance(value, bool):
            return "true" if value else "false"
        return value if isinstance(value, str) else ""


@dataclass(frozen=True)
class Other:
    name: str


Event = PullRequest | MergeGroup | Comment | Dispatch | Other


@dataclass(frozen=True)
class Trigger:
    """The event that started a job. `commit`: the commit that the event is about; `job_id`: stays the same
    when the job is rerun.
    """

    repository: str
    commit: str
    job_id: str
    event: Event


def read_event(name: str, file: Path | None) -> Event:
    """Read and parse the event of that name. Raises UsageError if its file is missing, is not valid JSON or
    lacks a required field.
    """
    if name in ("pull_request", "pull_request_target"):
        return _pull_request(Fields(_content(file)))
    if name == "merge_group":
        return _merge_group(Fields(_content(file)))
    if name == "issue_comment":
        return _comment(Fields(_content(file)))
    if name == "repository_dispatch":
        fields = Fields(_content(file))
        return Dispatch(fields.text("action"), fields.mapping("client_payload"), fields.optional("branch"))
    if name == "workflow_dispatch":
        fields = Fields(_content(file))
        ref = fields.optional("ref")
        return Dispatch(
            payload=fields.mapping("inputs"), branch=ref.removeprefix(HEADS) if ref.startswith(HEADS) else ""
        )
    return Other(name)


class Fields:
    """Typed access to the values of a JSON object by dotted path. Methods raise UsageError naming the path if
    a value is missing or has the wrong type.
    """

    def __init__(self, content: object) -> None:
        self._content = content

    def find(self, path: str) -> object:
        found = self._content
        for step in path.split("."):
            found = found.get(step) if isinstance(found, dict) else None
        return found

    def text(self, path: str) -> str:
        return str(self._of(path, str))

    def optional(self, path: str) -> str:
        """Return the text at the path, or "" if there is none."""
        found = self.find(path)
        return found if isinstance(found, str) else ""

    def number(self, path: str) -> int:
        found = self._of(path, int)
        assert isinstance(found, int)
        return found

    def mapping(self, path: str) -> dict[str, object]:
        found = self.find(path)
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise UsageError(f"the event's {path} is not an object")
        return {str(name): value for name, value in found.items()}

    def _of(self, path: str, kind: type) -> object:
        found = self.find(path)
        if not isinstance(found, kind) or isinstance(found, bool):
            what = "is missing" if found is None else f"is {type(found).__name__}, not {kind.__name__}"
            raise UsageError(
                f"the event's {path} {what}",
                fix="check that the workflow runs this step for the event that the action supports",
            )
        return found


def _pull_request(fields: Fields) -> PullRequest:
    repository = fields.find("pull_request.head.repo.full_name")
    label, merge = fields.find("label.name"), fields.find("pull_request.merge_commit_sha")
    return PullRequest(
        fields.text("action"),
        fields.number("pull_request.number"),
        fields.text("pull_request.head.sha"),
        repository if isinstance(repository, str) else "",
        fields.text("pull_request.base.sha"),
        fields.text("sender.login"),
        fields.find("sender.type") == "User",
        label if isinstance(label, str) else "",
        fields.find("pull_request.merged") is True,
        merge if isinstance(merge, str) else "",
        fields.optional("pull_request.head.ref"),
        fields.optional("pull_request.base.ref"),
    )


def _merge_group(fields: Fields) -> MergeGroup:
    found = _QUEUED.search(fields.optional("merge_group.head_ref"))
    return MergeGroup(
        fields.text("merge_group.head_sha"),
        fields.text("merge_group.base_sha"),
        int(found[1]) if found else None,
    )


def _comment(fields: Fields) -> Comment:
    return Comment(
        fields.number("issue.number"),
        isinstance(fields.find("issue.pull_request"), dict),
        fields.number("comment.id"),
        fields.text("comment.body"),
        fields.text("comment.user.login"),
        fields.find("comment.user.type") == "User",
    )


def _content(file: Path | None) -> object:
    if file is None:
        raise UsageError(
            "GITHUB_EVENT_PATH is not set",
            fix="this command reads the event that started the job, so run it in a job of GitHub Actions",
        )
    return _json(file)


def _json(file: Path) -> object:
    try:
        if file.stat().st_size > EVENT_BYTES_MAX:
            raise UsageError(f"{file}: the event has more than {EVENT_BYTES_MAX} bytes")
        return json.loads(file.read_bytes())
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error
    except (ValueError, RecursionError):
        raise UsageError(f"{file}: the event is not JSON") from None
