"""Comments that are kept, not repeated: one for each thing that is told, found again by its author and a hidden marker.

The marker alone proves nothing, as anybody may write it; so a comment is ours only if whoever speaks here wrote it, or a workflow of the
repository did.
"""

from prime_train.adapters.github.api import LISTED_MAX, GitHub, Part, parsed
from prime_train.ports import PermanentError

BODY_CHARS_MAX = 65_536
LINE_CHARS_MAX = 8_192
"""A longer line than this is cut within, where it is the last one."""
ACTIONS = "github-actions[bot]"
"""Who writes what a workflow of the repository writes with its own token."""
_CUT = "\n\n… cut: a comment holds no more."
_FENCE, _FOLD, _FOLD_END = "```", "<details>", "</details>"
_ENDS_CHARS_MAX = 200
"""For what is left open where the text is cut."""


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


def upsert_sticky(github: GitHub, issue: int, name: str, text: str) -> Comment:
    """The comment `name` on this issue or pull request says `text` from now on."""
    body = _cut(f"{marker(name)}\n{text}")
    found = find_sticky(github, issue, name)
    if found is None:
        return github.send(Comment, "POST", f"issues/{issue}/comments", {"body": body})
    if found.body == body:
        return found
    return github.send(Comment, "PATCH", f"issues/comments/{found.id}", {"body": body})


def find_sticky(github: GitHub, issue: int, name: str) -> Comment | None:
    """The oldest one, where two jobs wrote at once. PermanentError: it is not found among so many, and nobody shall write one each time."""
    mark, count = marker(name), 0
    for comment in github.listed(Comment, f"issues/{issue}/comments"):
        if (comment.body or "").startswith(mark) and comment.user is not None and _is_ours(github, comment.user.login):
            return comment
        count += 1
    if count >= LISTED_MAX:
        raise PermanentError(f"#{issue} of {github.repository} has {count} comments or more: too many to find ours among them")
    return None


def delete_sticky(github: GitHub, issue: int, name: str) -> bool:
    """Whether there was one."""
    found = find_sticky(github, issue, name)
    if found is not None:
        github.ask("DELETE", f"issues/comments/{found.id}")
    return found is not None


def react(github: GitHub, comment_id: int, content: str) -> None:
    """`content`: +1, -1, eyes, rocket, confused ..."""
    github.ask("POST", f"issues/comments/{comment_id}/reactions", body={"content": content})


def login_of(github: GitHub) -> str:
    """Who writes with this token: whom it names, a person, or, where the token is a workflow's own, its bot. Asked once."""
    if not github.login:
        try:
            github.login = parsed(_User, github.ask("GET", "/user")).login
        except PermanentError:
            github.login = ACTIONS
    return github.login


def _is_ours(github: GitHub, login: str) -> bool:
    return login == ACTIONS or login == login_of(github)


def _cut(body: str) -> str:
    """GitHub counts characters as they are sent, in UTF-16 at worst."""
    if _units(body) <= BODY_CHARS_MAX:
        return body
    kept = body.encode("utf-16-le")[: 2 * (BODY_CHARS_MAX - len(_CUT) - _ENDS_CHARS_MAX)].decode("utf-16-le", "ignore")
    end = kept.rfind("\n")
    kept = kept[:end] if end > len(kept) - LINE_CHARS_MAX else kept
    return kept.rstrip() + _ends(kept) + _CUT


def _ends(kept: str) -> str:
    """Of a code block and of what is folded, so that what follows is neither."""
    is_code = sum(line.startswith(_FENCE) for line in kept.splitlines()) % 2 == 1
    folds = max(0, kept.count(_FOLD) - kept.count(_FOLD_END))
    return (f"\n{_FENCE}" if is_code else "") + f"\n{_FOLD_END}" * min(folds, 8)


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
