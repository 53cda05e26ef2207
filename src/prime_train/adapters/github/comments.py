"""Comments that are kept, not repeated: one for each thing that is told, found again by its author and a hidden marker.

The marker alone proves nothing, as anybody may write it; so a comment is ours only if one of `authors` wrote it.
"""

from collections.abc import Collection

from prime_train.adapters.github.api import GitHub, Part, parsed
from prime_train.ports import PermanentError

BODY_CHARS_MAX = 65_536
ACTIONS = "github-actions[bot]"
"""Who writes what a workflow of the repository writes with its own token."""
_CUT = "\n\n… cut: a comment holds no more."


class _User(Part):
    login: str


class Comment(Part):
    """`user` is None where the account is gone."""

    id: int
    html_url: str
    body: str | None = None
    user: _User | None = None


def marker(name: str) -> str:
    """Hidden where the comment is shown."""
    return f"<!-- prime-train:{name} -->"


def upsert_sticky(github: GitHub, issue: int, name: str, text: str, *, authors: Collection[str] = (ACTIONS,)) -> Comment:
    """The comment `name` on this issue or pull request says `text` from now on."""
    body = _cut(f"{marker(name)}\n{text}")
    found = find_sticky(github, issue, name, authors=authors)
    if found is None:
        return github.send(Comment, "POST", f"issues/{issue}/comments", {"body": body})
    if found.body == body:
        return found
    return github.send(Comment, "PATCH", f"issues/comments/{found.id}", {"body": body})


def find_sticky(github: GitHub, issue: int, name: str, *, authors: Collection[str] = (ACTIONS,)) -> Comment | None:
    """The oldest one, where two jobs wrote at once."""
    mark = marker(name)
    for comment in github.listed(Comment, f"issues/{issue}/comments"):
        if (comment.body or "").startswith(mark) and comment.user is not None and comment.user.login in authors:
            return comment
    return None


def delete_sticky(github: GitHub, issue: int, name: str, *, authors: Collection[str] = (ACTIONS,)) -> bool:
    """Whether there was one."""
    found = find_sticky(github, issue, name, authors=authors)
    if found is not None:
        github.ask("DELETE", f"issues/comments/{found.id}")
    return found is not None


def react(github: GitHub, comment_id: int, content: str) -> None:
    """`content`: +1, -1, eyes, rocket, confused ..."""
    github.ask("POST", f"issues/comments/{comment_id}/reactions", body={"content": content})


def login_of(github: GitHub) -> str:
    """Who writes with this token: whom it names, a person, or, where the token is a workflow's own, its bot."""
    if github.login:
        return github.login
    try:
        return parsed(_User, github.ask("GET", "/user")).login
    except PermanentError:
        return ACTIONS


def _cut(body: str) -> str:
    """GitHub counts characters as they are sent, in UTF-16 at worst."""
    if len(body.encode("utf-16-le")) // 2 <= BODY_CHARS_MAX:
        return body
    kept = body.encode("utf-16-le")[: 2 * (BODY_CHARS_MAX - len(_CUT))].decode("utf-16-le", "ignore")
    return kept[: kept.rfind("\n") + 1 or len(kept)].rstrip() + _CUT
