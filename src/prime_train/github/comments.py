"""Comments that are updated instead of repeated: one per subject, found by its author and a hidden first
line.

That line alone proves nothing, because any user can write it. So a comment counts as prime-train's only if
this token's user or a workflow of the repository wrote it.
"""

from prime_train.errors import PermanentError
from prime_train.github.api import LISTED_MAX, GitHub, GitHubModel, parsed

BODY_CHARS_MAX = 65_536
LINE_CHARS_MAX = 8_192
"""Length in characters above which a line itself may be cut. Otherwise text is cut only at the end of a
line.
"""
ACTIONS = "github-actions[bot]"
"""The login under which GitHub shows comments that a workflow wrote with its own token."""
_CUT = "\n\n… truncated: a comment cannot be longer."
_FENCE, _FOLD, _FOLD_END = "```", "<details>", "</details>"
_ENDS_CHARS_MAX = 200
"""Characters reserved for closing the code block and the folds that are open where the text is cut."""


class _User(GitHubModel):
    login: str


class Comment(GitHubModel):
    """A comment. `user` is None if the account was deleted."""

    id: int
    html_url: str
    body: str | None = None
    user: _User | None = None


def hidden_line(name: str) -> str:
    """Return a line that is invisible in the rendered comment."""
    return f"<!-- prime-train:{name} -->"


def upsert_sticky(github: GitHub, issue: int, name: str, text: str) -> Comment:
    """Create or update the comment `name` on this issue or pull request, so that it contains `text`."""
    body = _cut(f"{hidden_line(name)}\n{text}")
    found = find_sticky(github, issue, name)
    if found is None:
        return github.send(Comment, "POST", f"issues/{issue}/comments", {"body": body})
    if found.body == body:
        return found
    return github.send(Comment, "PATCH", f"issues/comments/{found.id}", {"body": body})


def find_sticky(github: GitHub, issue: int, name: str) -> Comment | None:
    """Return prime-train's comment of that name, or None; the oldest one if two jobs wrote at once. Raises
    PermanentError if there are too many comments to search, since a new comment would then be written each
    time.
    """
    hidden, count = hidden_line(name), 0
    for comment in github.listed(Comment, f"issues/{issue}/comments"):
        if (
            (comment.body or "").startswith(hidden)
            and comment.user is not None
            and _is_ours(github, comment.user.login)
        ):
            return comment
        count += 1
    if count >= LISTED_MAX:
        raise PermanentError(
            f"#{issue} of {github.repository} has {count} comments or more: too many to find the one of "
            "prime-train"
        )
    return None


def delete_sticky(github: GitHub, issue: int, name: str) -> bool:
    """Delete prime-train's comment of that name. Return whether there was one."""
    found = find_sticky(github, issue, name)
    if found is not None:
        github.ask("DELETE", f"issues/comments/{found.id}")
    return found is not None


def react(github: GitHub, comment_id: int, content: str) -> None:
    """Add a reaction to a comment. `content`: +1, -1, eyes, rocket, confused ..."""
    github.ask("POST", f"issues/comments/{comment_id}/reactions", body={"content": content})


def login_of(github: GitHub) -> str:
    """Return the login that writes with this token: the configured one, a person, or, if the token is a
    workflow's own, its bot. Requested once.
    """
    if not github.login:
        try:
            github.login = parsed(_User, github.ask("GET", "/user")).login
        except PermanentError:
            github.login = ACTIONS
    return github.login


def _is_ours(github: GitHub, login: str) -> bool:
    return login == ACTIONS or login == login_of(github)


def _cut(body: str) -> str:
    """Cut the body to GitHub's limit, counted in UTF-16 units as the worst case."""
    if len(body.encode("utf-16-le")) // 2 <= BODY_CHARS_MAX:
        return body
    kept = body.encode("utf-16-le")[: 2 * (BODY_CHARS_MAX - len(_CUT) - _ENDS_CHARS_MAX)].decode(
        "utf-16-le", "ignore"
    )
    end = kept.rfind("\n")
    kept = kept[:end] if end > len(kept) - LINE_CHARS_MAX else kept
    return kept.rstrip() + _ends(kept) + _CUT


def _ends(kept: str) -> str:
    """Return the marks that close the code block and the folded sections which are open at the end of the
    text, so that a text appended to it is outside of them.
    """
    is_code = sum(line.startswith(_FENCE) for line in kept.splitlines()) % 2 == 1
    folds = max(0, kept.count(_FOLD) - kept.count(_FOLD_END))
    return (f"\n{_FENCE}" if is_code else "") + f"\n{_FOLD_END}" * min(folds, 8)
